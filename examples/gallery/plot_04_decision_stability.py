"""
Will a decision stand once everything is known?
===============================================

A decision by a threshold on an expected prediction may turn over when the missing values come
in. The probability that it stands tells which cases can be decided now, and which should wait.
"""

import matplotlib.pyplot as plt

from expecta import CircuitRegressor
from expecta.datasets import load_insurance

table = load_insurance()
charges = table.pop("charges")
model = CircuitRegressor(calibration_rows=0, random_state=0).fit(table, charges)

# %%
# Six people, of whom more and more is unknown, and the decision "expected charges are at least
# 15,000".
cases = {
    "age": [60, 60, 60, 30, 30, None],
    "smoker": ["yes", "no", None, "yes", None, None],
    "bmi": [35, 35, 35, None, None, None],
}
unknown = dict.fromkeys(("sex", "children", "region"), [None] * 6)
answer = model.stability({**cases, **unknown}, threshold=15_000)
print(answer)

# %%
# Which facts are enough for a decision? For a complete row, the fewest columns that keep it:
complete = {name: values.iloc[0] for name, values in table.items()}
print(model.sufficient(complete, 15_000, probability=0.95))

# %%
answer.plot()
plt.gcf().set_size_inches(7, 3.2)
