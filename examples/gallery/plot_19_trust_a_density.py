"""
Can answers under this density be trusted?
==========================================

Sums over a density are exact, and no better than the density. ``check`` compares it with rows
that it did not learn from: likelihood, every pair of columns, means over groups.
"""

import matplotlib.pyplot as plt

from expecta import Independent, LatentTree
from expecta.datasets import load_insurance

table = load_insurance()
train, test = table[:900], table[900:]

# %%
# A density of independent columns is wrong, and is told so:
print(Independent().fit(train).check(test))

# %%
check = LatentTree(random_state=0).fit(train).check(test)
print(check)

# %%
check.pairs.plot()
plt.gcf().set_size_inches(6, 5)
