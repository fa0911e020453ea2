"""
The paper's Figure 1, written by hand
=====================================

A distribution p and a function g over three bits, as circuits over one vtree (Khosravi and
others, NeurIPS 2019). All moments of g under p are exact.
"""

import matplotlib.pyplot as plt
import numpy as np

from expecta import Pair, ProbabilisticCircuit, RegressionCircuit, Vtree
from expecta.circuits import leaf, literal, node

vtree = Vtree.from_nested((0, (1, 2)))
(not_1, is_1), (not_2, is_2), (not_3, is_3) = ((literal(v, 0), literal(v, 1)) for v in range(3))

# %%
# An OR gate is ``node((parameter, left, right), ...)``.
same = node((0.6, is_2, is_3), (0.4, not_2, not_3))
free = node((1.0, is_2, leaf(2, [0.5, 0.5])))
p = ProbabilisticCircuit.build(vtree, node((0.2, is_1, same), (0.8, not_1, free)))
high = node((-5.3, is_2, is_3), (2.0, is_2, not_3), (6.1, not_2, leaf(2, [0.5, -0.3])))
low = node((3.0, is_2, leaf(2, [2.8, 1.7])), (-1.1, not_2, is_3), (-4.3, not_2, not_3))
g = RegressionCircuit.build(vtree, node((-1.6, is_1, high), (2.1, not_1, low)))

# %%
# With nothing known, the expectation is 5.452, and E[g²] 51.1732.
pair = Pair(p, g)
nothing = [[-1, -1, -1]]
print(pair.moments(nothing, 3).round(6))

# %%
# The same by the sum over all eight rows:
rows = np.array(list(np.ndindex(2, 2, 2)))
weights = np.exp(p.log_prob(rows))
print([float((weights * g(rows) ** k).sum().round(6)) for k in range(4)])

# %%
# Every value that g takes, with its probability, and the expectation as more becomes known:
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.stem(g(rows), weights, basefmt=" ")
for known, label in (
    (nothing, "nothing known"),
    ([[1, -1, -1]], "X1 = 1"),
    ([[0, -1, 1]], "X1 = 0, X3 = 1"),
):
    mean = pair.expectation(known)[0]
    ax.axvline(
        mean,
        linestyle="--",
        color=f"C{1 + len(ax.lines) % 4}",
        label=f"E[g | {label}] = {mean:.3f}",
    )
ax.set(xlabel="g", ylabel="probability")
ax.legend(fontsize="small")
