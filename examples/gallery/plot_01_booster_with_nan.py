"""
XGBoost with missing values: expectation against its own NaN
============================================================

A booster that was fitted to complete rows sends NaN down a default branch. Its expectation over
what the missing values could be has a lower error, the more so the more cells are unknown. On
this table, means that are filled in come close.
"""

import matplotlib.pyplot as plt
import numpy as np
import xgboost
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from expecta import ExpectedPredictor

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
booster = xgboost.XGBRegressor(n_estimators=60, max_depth=2, learning_rate=0.1, random_state=0)
booster.fit(X_train, y_train)

# %%
# The density is learned from the same complete rows; the booster stays as it is.
expected = ExpectedPredictor(booster).fit(X_train)

# %%
# Hide more and more cells of the test rows.
rng = np.random.default_rng(0)
shares = np.linspace(0, 0.8, 5)
means = X_train.mean(axis=0)
errors = {"expectation": [], "NaN given to XGBoost": [], "means filled in": []}
for share in shares:
    rows = np.where(rng.random(X_test.shape) < share, np.nan, X_test)
    predictions = (
        expected.predict(rows),
        booster.predict(rows),
        booster.predict(np.where(np.isnan(rows), means, rows)),
    )
    for name, predicted in zip(errors, predictions, strict=True):
        errors[name].append(np.sqrt(np.mean((predicted - y_test) ** 2)))

# %%
figure, ax = plt.subplots(layout="constrained")
for name, line in errors.items():
    ax.plot(100 * shares, line, "o-", label=name)
ax.set(xlabel="% of the cells unknown", ylabel="root mean squared error")
ax.legend()
