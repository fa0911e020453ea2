"""
A fairness audit with missing sensitive values
==============================================

Whether a model treats groups alike has to be found out although many people did not state the
sensitive attribute. Rows without it count by its probability given the rest, and gaps have
standard errors.
"""

import matplotlib.pyplot as plt
import numpy as np

from expecta import CircuitRegressor
from expecta.datasets import load_insurance

table = load_insurance()
charges = table.pop("charges")
rng = np.random.default_rng(0)
table["sex"] = table["sex"].astype(object).mask(rng.random(len(table)) < 0.4)  # 40% did not say
model = CircuitRegressor(calibration_rows=0, random_state=0).fit(table, charges)

# %%
# How much does disclosing one's sex move the prediction, in groups by one or two facts?
audit = model.disparities(["sex"], delta=300)
print(audit)

# %%
# The same question about two groups:
print(model.compare("sex == 'female' and smoker == 'yes'", "sex == 'male' and smoker == 'yes'"))

# %%
audit.plot()
plt.gcf().set_size_inches(8, 4)
