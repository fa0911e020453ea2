"""
Moments, and the whole distribution of an output
================================================

A mean and a standard deviation hide that an output can have two peaks: with the smoking status
unknown, charges are low or high, and hardly ever in between.
"""

import matplotlib.pyplot as plt
import numpy as np

from expecta import CircuitRegressor
from expecta.datasets import load_insurance

table = load_insurance()
charges = table.pop("charges")
model = CircuitRegressor(random_state=0).fit(table, charges)

# %%
# A man of 50 with a body-mass index of 34; whether he smokes is unknown.
row = {"age": 50, "sex": "male", "bmi": 34, "children": 1, "smoker": None, "region": "southeast"}
print("mean and standard deviation:", model.predict(row, return_std=True))
print("central moments:", model.predict_moments(row, 4, central=True).round())

# %%
# The distribution of the model's output plus normal noise is exact, given the learned density;
# that of the charges themselves is calibrated on held-out rows.
grid = np.linspace(0, 60_000, 400)
output = model.predict_distribution(row, noise=1_000)
outcome = model.predict_distribution(row)
print("P(charges > 30,000):", outcome.above(30_000).round(3))

figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
ax.plot(grid, np.ravel(output.cdf(grid)), label="output + N(0, 1,000²)")
ax.plot(grid, np.ravel(outcome.cdf(grid)), label="charges, calibrated")
mean, spread = model.predict(row, return_std=True)
ax.axvline(mean[0], color="grey", linestyle="--", label="mean of the output")
ax.set(xlabel="dollars", ylabel="cumulative probability")
ax.legend()
