"""The slow, obvious truth: circuits evaluated gate by gate on every complete row."""

from __future__ import annotations

import itertools

import numpy as np


def complete_rows(cardinalities):
    """Every complete row."""
    return np.array(list(itertools.product(*(range(c) for c in cardinalities))), dtype=int)


def probability(p, x):
    """p(x) by Equation 2."""
    s, values = p.structure, {}
    for n in range(s.n_nodes):
        variable = s.vtree.variable[s.layer_of_node[n]]
        total = 0.0
        for k in range(s.edge_start[n], s.edge_start[n + 1]):
            t = s.target[k]
            if variable >= 0:
                child = 1.0 if x[variable] == t else 0.0
            else:
                child = values[s.left[t]] * values[s.right[t]]
            total += np.exp(p.log_weight[k]) * child
        values[n] = total
    return values[s.root]


def prediction(g, x):
    """g(x) by Equation 3, and whether x satisfies g's formula."""
    s, values, holds = g.structure, {}, {}
    for n in range(s.n_nodes):
        variable = s.vtree.variable[s.layer_of_node[n]]
        values[n], holds[n] = np.zeros(g.n_outputs), False
        for k in range(s.edge_start[n], s.edge_start[n + 1]):
            t = s.target[k]
            if variable >= 0:
                hot, below = x[variable] == t, 0.0
            else:
                hot = holds[s.left[t]] and holds[s.right[t]]
                below = values[s.left[t]] + values[s.right[t]]
            if hot:
                assert not holds[n], "not deterministic"
                holds[n] = True
                values[n] = g.weight[k] + below
    return values[s.root] + g.bias, holds[s.root]


class Truth:
    """Tables of p and g over all complete rows."""

    def __init__(self, p, g):
        self.rows = complete_rows(p.cardinalities)
        self.p = np.array([probability(p, x) for x in self.rows])
        found = [prediction(g, x) for x in self.rows]
        self.g = np.array([value for value, _ in found])  # (complete rows, outputs)
        self.holds = np.array([h for _, h in found])

    def weights(self, evidence):
        """Posterior weight of every complete row under each row of evidence, unnormalised."""
        out = np.tile(self.p, (len(evidence), 1))
        for variable in range(self.rows.shape[1]):
            out *= evidence.weights(variable)[:, self.rows[:, variable]]
        return out  # (rows, complete rows)

    def posterior(self, evidence):
        w = self.weights(evidence)
        total = w.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            return w / total


def draw(p, rows, rng):
    """Complete rows drawn from p, one gate after the other."""
    s = p.structure
    out = np.zeros((rows, s.n_variables), dtype=int)
    for row in out:
        todo = [s.root]
        while todo:
            n = todo.pop()
            edges = range(s.edge_start[n], s.edge_start[n + 1])
            weights = np.exp(p.log_weight[edges.start : edges.stop])
            target = s.target[rng.choice(edges, p=weights / weights.sum())]
            variable = s.vtree.variable[s.layer_of_node[n]]
            if variable >= 0:
                row[variable] = target
            else:
                todo += [s.left[target], s.right[target]]
    return out
