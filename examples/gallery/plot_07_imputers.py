"""
Imputers in a pipeline, and what one filled-in value forgets
============================================================

Where something needs complete rows, a density fills them in: with conditional means, with
draws, or with the most probable row. Means are best for one number per cell; draws keep the
spread.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from expecta import ConditionalMeanImputer, ConditionalSampler

rng = np.random.default_rng(0)
height = rng.normal(170, 10, 600)
weight = 0.9 * (height - 100) + rng.normal(0, 8, 600)
X = np.column_stack([height, weight])
y = 0.5 * height + weight + rng.normal(0, 5, 600)
rows = X.copy()
rows[rng.random(600) < 0.5, 1] = np.nan  # half of the weights are missing

# %%
# An imputer is a step of a pipeline.
pipeline = make_pipeline(ConditionalMeanImputer(random_state=0), Ridge()).fit(rows, y)
print(pipeline.predict(rows[:3]).round(1))

# %%
# One draw per missing cell keeps the spread; ``draws`` gives several completed tables.
filled = ConditionalMeanImputer(random_state=0).fit(rows).transform(rows)
drawn = ConditionalSampler(random_state=0).fit(rows).transform(rows)
missing = np.isnan(rows[:, 1])

figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
for ax, table, title in zip(axes, (filled, drawn), ("means", "draws"), strict=True):
    ax.plot(*X[~missing].T, ".", color="lightgrey", label="known")
    ax.plot(*np.asarray(table)[missing].T, ".", label="filled in")
    ax.set(title=f"conditional {title}", xlabel="height, cm")
axes[0].set_ylabel("weight, kg")
axes[0].legend()
