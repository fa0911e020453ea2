"""EC2 as the paper writes it: a recursion over pairs of gates with a cache, one row at a time.

Slow and obvious. The benchmark checks the engine against it before it prints a figure.
"""

from __future__ import annotations

import sys

import numpy as np


def expectation(p, g, x):
    """Return E[g | x] for one row in which -1 is unknown."""
    sys.setrecursionlimit(100_000)
    a, b = p.structure, g.structure
    theta = np.exp(p.log_weight)
    possible, total = {}, {}

    def edges(s, n):
        return range(s.edge_start[n], s.edge_start[n + 1])

    def seen(variable, value):
        return x[variable] < 0 or x[variable] == value

    def probability(n):  # of the evidence below n
        if n not in possible:
            variable = a.vtree.variable[a.layer_of_node[n]]
            possible[n] = sum(
                theta[k]
                * (
                    seen(variable, a.target[k])
                    if variable >= 0
                    else probability(a.left[a.target[k]]) * probability(a.right[a.target[k]])
                )
                for k in edges(a, n)
            )
        return possible[n]

    def both(n, m):  # Pr(n, m) and M_1(g_m, p_n), evidence included
        if (n, m) in total:
            return total[n, m]
        variable = a.vtree.variable[a.layer_of_node[n]]
        pr, mean = 0.0, np.zeros(g.n_outputs)
        for i in edges(a, n):
            for j in edges(b, m):
                s, t = a.target[i], b.target[j]
                if variable >= 0:
                    here, below = float(s == t and seen(variable, s)), 0.0
                else:
                    left, right = both(a.left[s], b.left[t]), both(a.right[s], b.right[t])
                    here = left[0] * right[0]
                    below = left[0] * right[1] + right[0] * left[1]
                pr += theta[i] * here
                mean = mean + theta[i] * (below + g.weight[j] * here)
        total[n, m] = (pr, mean)
        return total[n, m]

    return g.bias + both(a.root, b.root)[1] / probability(a.root)
