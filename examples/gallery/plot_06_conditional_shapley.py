"""
Conditional Shapley values, alone and with shap
===============================================

Shapley values need the model's prediction where only some inputs are known. Most explainers put
in values of other rows, as if columns were independent. Here an unknown input stays unknown.
"""

import matplotlib.pyplot as plt
import numpy as np
import shap
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

from expecta import ExpectedPredictor

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = X[["bmi", "bp", "s1", "s2"]]  # s1 and s2, two measures of cholesterol, go together
model = GradientBoostingRegressor(n_estimators=20, max_depth=2, random_state=0).fit(X, y)
expected = ExpectedPredictor(model).fit(X)

# %%
# What the method says of one patient:
patient = X.iloc[[3]]
ours = expected.shapley(patient)
print(ours)

# %%
# shap does the same if its background is one row of which nothing is known.
nothing = np.full((1, X.shape[1]), np.nan)


def predict(rows):
    return expected.predict(dict(zip(X, np.asarray(rows, float).T, strict=True)))


explainer = shap.explainers.Exact(predict, shap.maskers.Independent(nothing))
theirs = explainer(patient.to_numpy(float)).values[0]
print("greatest difference:", np.abs(ours.values[0] - theirs).max().round(6))

# %%
# Beside the *interventional* values of shap's explainer of trees, which breaks dependences:
interventional = shap.TreeExplainer(model, X).shap_values(patient)[0]
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
positions = np.arange(X.shape[1])
ax.bar(positions - 0.2, ours.values[0], 0.4, label="conditional")
ax.bar(positions + 0.2, interventional, 0.4, label="interventional (shap)")
ax.set_xticks(positions, list(X))
ax.set_ylabel("added to the prediction")
ax.legend()
