"""
Digits with missing pixels
==========================

A classifier of small images (8 × 8, from scikit-learn) that is asked with a growing share of
the pixels unknown: the paper's third experiment, in seconds.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from expecta import ExpectedPredictor, LatentTree

digits = load_digits()
chosen = np.isin(digits.target, (3, 8))
X = (digits.data[chosen] > 7).astype(int)  # pixels as bits
y = (digits.target[chosen] == 8).astype(int)
train, test = slice(0, 250), slice(250, None)
model = LogisticRegression(max_iter=1000).fit(X[train], y[train])
expected = ExpectedPredictor(model, LatentTree(states=8, random_state=0)).fit(X[train])

# %%
# Hide pixels; -1 among integers means unknown.
rng = np.random.default_rng(0)
most_frequent = np.round(X[train].mean(axis=0)).astype(int)
shares = (0, 0.3, 0.5, 0.7, 0.9)
accuracy = {"expectation": [], "most frequent value filled in": []}
for share in shares:
    hidden = rng.random(X[test].shape) < share
    rows = np.where(hidden, -1, X[test])
    accuracy["expectation"].append(np.mean(expected.predict(rows) == y[test]))
    filled = np.where(hidden, most_frequent, X[test])
    accuracy["most frequent value filled in"].append(np.mean(model.predict(filled) == y[test]))

# %%
figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(9, 3), width_ratios=[1, 1, 2.4], layout="constrained"
)
image = X[test][0].reshape(8, 8)
left.imshow(image, cmap="Greys")
middle.imshow(np.where(rng.random((8, 8)) < 0.7, np.nan, image), cmap="Greys", vmin=0, vmax=1)
middle.set_facecolor("lightblue")
for ax, title in ((left, "a digit"), (middle, "70% unknown")):
    ax.set(title=title, xticks=[], yticks=[])
for name, line in accuracy.items():
    right.plot(np.multiply(100, shares), line, "o-", label=name)
right.set(xlabel="% of the pixels unknown", ylabel="accuracy, 3 against 8")
right.legend()
