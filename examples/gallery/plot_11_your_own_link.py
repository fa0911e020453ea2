"""
Your own link: the expectation of a function of the model
=========================================================

E[f(g)] is not f(E[g]). Logistic, probit, tanh and exp are computed within a bound or exactly;
for any other function, give its derivatives, and Taylor's formula takes them with exact
moments.
"""

import matplotlib.pyplot as plt
import numpy as np

from expecta import Link, Pair, Vtree
from expecta.circuits import independent, linear

vtree = Vtree.balanced(8)
rng = np.random.default_rng(0)
p = independent(vtree, [[0.5, 0.5]] * 8)
g = linear(vtree, [[0, weight] for weight in rng.normal(0, 0.25, 8)])
pair = Pair(p, g)
nothing = np.full((1, 8), -1)

# %%
# The utility 1 − exp(−a g) of somebody who avoids risk, with the derivatives that Taylor's
# formula needs:
a = 0.7


def derivatives(x, order):
    values = [1 - np.exp(-a * x)]
    values += [-((-a) ** k) * np.exp(-a * x) for k in range(1, order + 1)]
    return np.stack(values)


utility = Link(derivatives)

# %%
# The sum over all 256 rows is the truth here.
rows = np.array(list(np.ndindex(*[2] * 8)))
truth = np.mean(1 - np.exp(-a * g(rows)))
orders = range(1, 9)
errors = [
    abs(pair.expected(nothing, utility, method="taylor", order=order).value[0] - truth)
    for order in orders
]
naive = abs(1 - np.exp(-a * pair.expectation(nothing)[0]) - truth)

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.semilogy(orders, errors, "o-", label="Taylor's formula with exact moments")
ax.axhline(naive, color="grey", linestyle="--", label="f(E[g])")
ax.set(xlabel="order", ylabel="absolute error of E[f(g)]")
ax.legend()
