"""
Compare groups of people
========================

What does the model say of groups, by how much does it tell them apart, and does the plain
average of the training rows agree?
"""

import matplotlib.pyplot as plt

from expecta import CircuitRegressor
from expecta.datasets import load_insurance

table = load_insurance()
charges = table.pop("charges")
model = CircuitRegressor(calibration_rows=0, random_state=0).fit(table, charges)

# %%
print(model.ask("smoker == 'yes' and 30 <= age < 40"))

# %%
both = model.compare("smoker == 'yes' and bmi >= 30", "smoker == 'yes' and bmi < 30")
print(both)

# %%
parts = model.split("smoker", "age", bins=3)
print(parts)

# %%
both.plot()
plt.gcf().set_size_inches(7, 3.2)
