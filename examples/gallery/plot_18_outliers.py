"""
Outliers in rows with missing values
====================================

The log-probability of what is known of a row needs no complete rows. It is compared with that
of random rows known in the same columns, and the most surprising cell is named.
"""

import matplotlib.pyplot as plt

from expecta import CircuitRegressor
from expecta.datasets import load_insurance

table = load_insurance()
charges = table.pop("charges")
model = CircuitRegressor(calibration_rows=0, random_state=0).fit(table, charges)

rows = {
    "age": [19, 64, 25, None, 40],
    "sex": ["male", "female", None, None, "male"],
    "bmi": [22.0, 24.0, 52.0, 17.0, 30.0],
    "children": [0, 5, 0, None, 2],
    "smoker": ["no", "no", "yes", None, "no"],
    "region": ["southeast", None, "northwest", None, "southwest"],
}

# %%
answer = model.outliers(rows)
print(answer)

# %%
answer.plot()
plt.gcf().set_size_inches(7, 3.2)
