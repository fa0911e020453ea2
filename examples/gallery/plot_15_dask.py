"""
Predictions on a Dask frame
===========================

Results are lazy and have the partitions and the index of the frame. The model goes to each
worker once.
"""

import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np

from expecta import CircuitRegressor
from expecta.dask import ask, predict, predict_interval
from expecta.datasets import load_insurance

table = load_insurance()
model = CircuitRegressor(random_state=0).fit(table.drop(columns="charges"), table["charges"])

# %%
# A frame of four partitions, in which a third of the cells is missing.
rng = np.random.default_rng(0)
rows = table.drop(columns="charges").astype(object)
rows = rows.mask(rng.random(rows.shape) < 0.3).astype(
    {"age": float, "bmi": float, "children": float}
)
frame = dd.from_pandas(rows, npartitions=4)
predicted = predict(model, frame, std=True)
print(predicted)  # nothing is computed yet

# %%
ends = predict_interval(model, frame, 0.9)
both = frame.join(predicted).join(ends).compute(scheduler="synchronous")
print(both[["age", "smoker", "charges_predicted", "charges_low", "charges_high"]].head())

# %%
# The mean of the model's output over the rows of the frame that are in a group for certain:
group = ask(model, frame, "smoker == 'yes'").compute(scheduler="synchronous")
print(group)

figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for value, part in both.assign(smoker=both["smoker"].fillna("unknown")).groupby("smoker"):
    ax.plot(part["charges_predicted"], part["charges_std"], ".", label=f"smoker: {value}")
ax.set(xlabel="expected charges", ylabel="spread over what is unknown")
ax.legend()
