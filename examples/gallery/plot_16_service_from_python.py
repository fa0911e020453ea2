"""
The service from Python
=======================

``expecta serve`` answers over HTTP. ``expecta.serve.app`` is the same as an ASGI application,
which a test client asks without a network.
"""

import matplotlib.pyplot as plt
from fastapi.testclient import TestClient

from expecta import CircuitRegressor
from expecta.datasets import load_insurance
from expecta.serve import ServeOptions, app

table = load_insurance()
model = CircuitRegressor(random_state=0).fit(table.drop(columns="charges"), table["charges"])
application = app({"charges": model}, ServeOptions(warm_first=True))

# %%
# A cell may be a value, ``null``, an interval or a set.
with TestClient(application) as client:
    question = {
        "rows": [{"age": age, "smoker": "yes"} for age in range(20, 65, 5)],
        "interval": 0.9,
    }
    rows = client.post("/models/charges/predict", json=question).json()["predictions"]
    group = client.post(
        "/models/charges/ask", json={"query": "smoker == 'yes' and age < 30"}
    ).json()
print(rows[0])
print({name: group[name] for name in ("mean", "standard_error", "share") if name in group})

# %%
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
ages = list(range(20, 65, 5))
ax.fill_between(
    ages, *zip(*(row["interval"] for row in rows), strict=True), alpha=0.3, label="90% interval"
)
ax.plot(ages, [row["prediction"] for row in rows], "o-", label="expected charges")
ax.set(xlabel="age of a smoker of whom nothing else is known", ylabel="dollars")
ax.legend()
