"""
Which question should be asked next, and is it worth its cost?
==============================================================

For a person of whom little is known, each unknown column takes some of the doubt away. A column
that tells more may also cost more to find out.
"""

import matplotlib.pyplot as plt

from expecta import CircuitRegressor
from expecta.datasets import load_insurance

table = load_insurance()
charges = table.pop("charges")
model = CircuitRegressor(calibration_rows=0, random_state=0).fit(table, charges)

# %%
# The share of the output's variance that knowing a column is expected to take away:
someone = {"age": 45, "sex": None, "bmi": None, "children": None, "smoker": None, "region": None}
answer = model.next_question(someone)
print(answer)

# %%
# Without costs:
answer.plot()
plt.gcf().set_size_inches(7, 3.2)

# %%
# With costs, columns are ordered by what they tell per unit of cost. Here to measure the
# body-mass index takes twenty minutes, and a question takes one.
cost = {"bmi": 20, "sex": 1, "children": 1, "smoker": 1, "region": 1}
print(model.next_question(someone, cost=cost))
