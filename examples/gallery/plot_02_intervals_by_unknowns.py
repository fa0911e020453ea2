"""
Prediction intervals by number of missing values
================================================

The fewer features are known of a row, the wider its interval, and its coverage holds: quantiles are
calibrated on held-out rows for each number of unknown columns.
"""

import matplotlib.pyplot as plt
import numpy as np

from expecta import CircuitRegressor
from expecta.datasets import load_insurance

table = load_insurance()
train, test = table[:1000].copy(), table[1000:].copy()
y_train, y_test = train.pop("charges"), test.pop("charges").to_numpy()
model = CircuitRegressor(random_state=0).fit(train, y_train)

# %%
# Hide 0 to 5 of the six columns of every test row, at random.
rng = np.random.default_rng(0)
coverage, width = [], []
for unknown in range(6):
    hidden = np.argsort(rng.random(test.shape), axis=1) < unknown
    low, high = model.predict_interval(test.astype(object).mask(hidden), coverage=0.9).T
    coverage.append(np.mean((low <= y_test) & (y_test <= high)))
    width.append(np.mean(high - low))

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
left.bar(range(6), width)
left.set(xlabel="unknown columns of six", ylabel="mean width of the 90% interval, dollars")
right.plot(range(6), coverage, "o-")
right.axhline(0.9, color="grey", linestyle="--")
right.set(xlabel="unknown columns of six", ylabel="share of charges inside", ylim=(0.7, 1))
