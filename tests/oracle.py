"""The truth in 30 digits: p and g summed over all completions of a row, nothing rounded."""

from __future__ import annotations

from itertools import product

from mpmath import mp, mpf

DIGITS = 30


class Oracle:
    """The completions of one row of evidence: their posterior weights and values of g.

    A sum over gates, layer by layer from the leaves of the vtree, for every combination of
    values that is possible below. It shares nothing with the engine.
    """

    def __init__(self, p, g, evidence):
        mp.dps = DIGITS
        tree = p.vtree
        chance, value = {}, {}  # of the nodes of a layer, for each combination of values below
        weight = {}
        for v in range(len(tree)):
            variable = int(tree.variable[v])
            if variable >= 0:
                table = evidence.weights(variable)[0]
                possible = [x for x in range(len(table)) if table[x] > 0]
                weight[v] = [mpf(table[x]) for x in possible]
                chance[v] = _leaf(p, v, possible, lambda k: mp.exp(mpf(p.log_weight[k])))
                value[v] = _leaf(g, v, possible, lambda k: [mpf(w) for w in g.weight[k]])
                continue
            a, b = int(tree.left[v]), int(tree.right[v])
            pairs = list(product(range(len(weight[a])), range(len(weight[b]))))
            weight[v] = [weight[a][i] * weight[b][j] for i, j in pairs]
            chance[v] = _mixed(p, v, pairs, chance[a], chance[b])
            value[v] = _chosen(g, v, pairs, value[a], value[b])
            for layer in (chance, value, weight):
                del layer[a], layer[b]
        joint = [w * c for w, c in zip(weight[tree.root], chance[tree.root][0], strict=True)]
        total = mp.fsum(joint)
        kept = [k for k, part in enumerate(joint) if part > 0]
        self.probability = total
        self.weight = [joint[k] / total for k in kept] if total > 0 else []
        zero = [mpf(0)] * g.n_outputs
        bias = [mpf(b) for b in g.bias]
        there = value[tree.root][0]
        self.g = [[x + y for x, y in zip(there[k] or zero, bias, strict=True)] for k in kept]
        self.holds = [there[k] is not None for k in kept]

    def expected(self, function, output=0):
        """E[function(g)]."""
        return mp.fsum(w * function(g[output]) for w, g in zip(self.weight, self.g, strict=True))

    def central(self, order, output=0):
        """The mean, and the moment of an order about it."""
        mean = self.expected(lambda g: g, output)
        return mean, self.expected(lambda g: (g - mean) ** order, output)

    def below(self, c, noise=0.0, output=0):
        """P(g + noise <= c)."""
        if noise:
            return self.expected(lambda g: normal((mpf(c) - g) / mpf(noise)), output)
        return self.expected(lambda g: mpf(1) if g <= mpf(c) else mpf(0), output)


def normal(z):
    """The normal distribution function; 40 standard deviations are certain to 300 digits."""
    return mp.ncdf(z) if abs(z) < 40 else mpf(z > 0)


def _edges(circuit, v):
    """The edges of each node of a layer."""
    s = circuit.structure
    for n in range(s.node_start[v], s.node_start[v + 1]):
        yield range(s.edge_start[n], s.edge_start[n + 1])


def _leaf(circuit, v, possible, parameter):
    s = circuit.structure
    tables = [{int(s.target[k]): parameter(k) for k in edges} for edges in _edges(circuit, v)]
    empty = mpf(0) if hasattr(circuit, "log_weight") else None
    return [[table.get(x, empty) for x in possible] for table in tables]


def _ends(circuit, v, k):
    """The nodes that an edge's element joins, counted in their layers."""
    s = circuit.structure
    e, tree = s.target[k], s.vtree
    left = s.left[e] - s.node_start[tree.left[v]]
    right = s.right[e] - s.node_start[tree.right[v]]
    return int(left), int(right)


def _mixed(p, v, pairs, left, right):
    out = []
    for edges in _edges(p, v):
        total = [mpf(0)] * len(pairs)
        for k in edges:
            theta = mp.exp(mpf(p.log_weight[k]))
            a, b = _ends(p, v, k)
            x, y = left[a], right[b]
            for number, (i, j) in enumerate(pairs):
                if x[i] and y[j]:
                    total[number] += theta * x[i] * y[j]
        out.append(total)
    return out


def _chosen(g, v, pairs, left, right):
    out = []
    for edges in _edges(g, v):
        values = [None] * len(pairs)
        for k in edges:
            phi = [mpf(w) for w in g.weight[k]]
            a, b = _ends(g, v, k)
            x, y = left[a], right[b]
            for number, (i, j) in enumerate(pairs):
                if x[i] is not None and y[j] is not None:
                    assert values[number] is None, "not deterministic"
                    values[number] = [sum(z) for z in zip(phi, x[i], y[j], strict=True)]
        out.append(values)
    return out
