"""
Dependence on a column: given it, or with it alone changed
==========================================================

The expectation given a column takes along the columns that vary with it. Partial dependence
changes the column alone, and so also asks about rows that do not exist.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import GradientBoostingRegressor

from expecta import ExpectedPredictor

rng = np.random.default_rng(0)
size = rng.gamma(8, 14, 1500)
rooms = np.round(size / 28 + rng.normal(0, 0.7, 1500)).clip(1)
X = {"size": size, "rooms": rooms}
price = 3 * size - 10 * rooms + rng.normal(0, 20, 1500)  # more rooms of the same size: cheaper

# %%
model = GradientBoostingRegressor(random_state=0).fit(np.column_stack([size, rooms]), price)
expected = ExpectedPredictor(model).fit(np.column_stack([size, rooms]))
first, second = (
    expected.feature_names_in_ if hasattr(expected, "feature_names_in_") else ("x0", "x1")
)
answer = expected.dependence(str(second))
print(answer)

# %%
# Homes with more rooms cost more, since they are larger; a room more at the same size costs less.
answer.plot()
plt.gcf().set_size_inches(7, 3.4)
