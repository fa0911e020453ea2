"""
PSDD against latent tree: which density fits?
=============================================

Both are circuits. A latent tree is smooth and fits small tables well; a PSDD is deterministic,
so that its most probable rows and its entropy are exact.
"""

import matplotlib.pyplot as plt
import numpy as np

from expecta import PSDD, ChowLiu, Independent, LatentTree
from expecta.datasets import load_insurance

table = load_insurance()
rng = np.random.default_rng(0)
held_out = rng.random(len(table)) < 0.25
train, test = table[~held_out], table[held_out]

# %%
# Scores are comparable where the bins are the same, so that all learn from one encoding.
from expecta import Encoder

encoder = Encoder(max_bins=12).fit(train)
densities = {
    "independent": Independent(encoder=encoder),
    "Chow-Liu tree": ChowLiu(encoder=encoder),
    "PSDD": PSDD(encoder=encoder, max_seconds=3),
    "latent tree": LatentTree(encoder=encoder, random_state=0),
}
scores = {name: density.fit(train).score(test) for name, density in densities.items()}
for name, score in scores.items():
    print(f"{name:14} {score:8.3f} nats per row")

# %%
# What only the deterministic one answers exactly: the most probable person who smokes.
smoker = {name: [None] for name in table} | {"smoker": ["yes"]}
print(densities["PSDD"].mpe(smoker))

figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
ax.barh(list(scores), list(scores.values()))
ax.set(
    xlabel="mean log-probability of a held-out row, nats", xlim=(min(scores.values()) - 0.3, None)
)
