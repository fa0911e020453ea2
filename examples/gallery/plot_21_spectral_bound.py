"""
The expectation of a sigmoid, and its proved bound
==================================================

E[σ(g)] is NP-hard in general. The spectral method integrates the exact characteristic function,
and its error stays below a bound that it reports. Taylor's formula, the paper's method, does not
converge where g is wide.
"""

import matplotlib.pyplot as plt
import numpy as np

from expecta import Pair, Vtree, random_probabilistic, random_regression

vtree = Vtree.random(12, seed=0)
p = random_probabilistic(vtree, units=4, seed=0)
g = random_regression(vtree, units=4, scale=1.5, seed=1)
pair = Pair(p, g)
nothing = np.full((1, 12), -1)
low, high = pair.range(nothing)
print(f"g lies between {low[0]:.1f} and {high[0]:.1f}")

# %%
# The truth is a sum over 4,096 rows.
rows = np.array(list(np.ndindex(*[2] * 12)))
truth = np.exp(p.log_prob(rows)) @ (1 / (1 + np.exp(-g(rows))))

# %%
# Ask for ever smaller tolerances.
tolerances = 10.0 ** -np.arange(1, 13)
spectral = [pair.expected(nothing, tol=tol) for tol in tolerances]
errors = [max(abs(answer.value[0] - truth), 1e-17) for answer in spectral]
bounds = [answer.error[0] for answer in spectral]
taylor = [
    abs(pair.expected(nothing, method="taylor", order=order).value[0] - truth)
    for order in range(1, 8)
]

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
left.loglog(tolerances, bounds, "k--", label="bound")
left.loglog(tolerances, errors, "o", label="error")
left.invert_xaxis()
left.set(xlabel="tolerance asked for", ylabel="absolute error of E[σ(g)]", title="spectral")
left.legend()
right.semilogy(range(1, 8), taylor, "o-")
right.set(xlabel="order", title="Taylor's formula")
assert all(error <= bound + 1e-15 for error, bound in zip(errors, bounds, strict=True))
