"""Draw random circuits of every kind, for tests, benchmarks and play."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from expecta.circuits.builders import Draft, Parameter
from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.regression import RegressionCircuit
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Ints
from expecta.common.errors import StructureError


def random_probabilistic(
    vtree: Vtree,
    cardinalities: Sequence[int] | None = None,
    *,
    units: int = 4,
    deterministic: bool = False,
    seed: int | np.random.Generator | None = None,
) -> ProbabilisticCircuit:
    """Draw a distribution: dense layers of ``units`` nodes, or a deterministic circuit.

    Parameters
    ----------
    vtree
        Which variables are joined where.
    cardinalities
        How many values each variable has; two each by default.
    units
        Nodes per layer.
    deterministic
        Whether to draw a deterministic circuit.
    seed
        Seed, or a generator of random numbers.

    Returns
    -------
    ProbabilisticCircuit
        Normalised.

    Examples
    --------
    >>> p = random_probabilistic(Vtree.balanced(6), units=3, seed=0)
    >>> p.properties.normalised.holds, p.properties.deterministic.holds
    (True, False)
    """
    rng = np.random.default_rng(seed)
    cards = _cards(vtree, cardinalities)
    if deterministic:
        draft, root = _partitioned(vtree, cards, units, rng, coverage=1.0)
    else:
        draft, root = _dense(vtree, cards, units, rng)
    structure, _ = draft.finish(root)
    weight = rng.gamma(1.0, size=structure.n_edges) + 1e-3
    weight /= np.add.reduceat(weight, structure.edge_start[:-1])[structure.node_of_edge]
    return ProbabilisticCircuit(structure, np.log(weight))


def random_regression(
    vtree: Vtree,
    cardinalities: Sequence[int] | None = None,
    *,
    units: int = 4,
    outputs: int = 1,
    coverage: float = 1.0,
    scale: float = 1.0,
    seed: int | np.random.Generator | None = None,
) -> RegressionCircuit:
    """Draw a deterministic function; ``coverage`` < 1 leaves some rows off its support.

    Parameters
    ----------
    vtree
        Which variables are joined where.
    cardinalities
        How many values each variable has; two each by default.
    units
        Nodes per layer.
    outputs
        Number of outputs.
    coverage
        Share of the elements that are kept.
    scale
        Standard deviation of the parameters.
    seed
        Seed, or a generator of random numbers.

    Returns
    -------
    RegressionCircuit
        Deterministic.

    Examples
    --------
    >>> g = random_regression(Vtree.balanced(6), outputs=2, seed=0)
    >>> g.properties.deterministic.holds, g.covers_everything
    (True, True)
    """
    rng = np.random.default_rng(seed)
    cards = _cards(vtree, cardinalities)
    draft, root = _partitioned(vtree, cards, units, rng, coverage=coverage)
    structure, _ = draft.finish(root)
    weight = rng.normal(scale=scale, size=(structure.n_edges, outputs))
    return RegressionCircuit(structure, weight, rng.normal(scale=scale, size=outputs))


def _cards(vtree: Vtree, cardinalities: Sequence[int] | None) -> Ints:
    cards = np.full(vtree.n_variables, 2) if cardinalities is None else np.asarray(cardinalities)
    if len(cards) != vtree.n_variables:
        raise StructureError(f"{len(cards)} cardinalities for {vtree.n_variables} variables")
    return cards


def _dense(vtree: Vtree, cards: Ints, units: int, rng: np.random.Generator) -> tuple[Draft, int]:
    """Every node of a layer mixes the same random elements."""
    draft = Draft(vtree, cards)
    layers: list[list[int]] = []
    for v in range(len(vtree)):
        n = 1 if v == vtree.root else units
        variable = int(vtree.variable[v])
        if variable >= 0:
            every: list[tuple[int, Parameter | None]] = [(x, None) for x in range(cards[variable])]
            layers.append([draft.add_leaf(v, variable, every) for _ in range(n)])
            continue
        below, beside = layers[vtree.left[v]], layers[vtree.right[v]]
        first = rng.permutation(len(below))[np.arange(units) % len(below)]
        second = rng.permutation(len(beside))[np.arange(units) % len(beside)]
        chosen = sorted({(below[a], beside[b]) for a, b in zip(first, second, strict=True)})
        elements: list[tuple[int, int, Parameter | None]] = [(a, b, None) for a, b in chosen]
        layers.append([draft.add_node(v, elements) for _ in range(n)])
    return draft, layers[vtree.root][0]


def _partitioned(
    vtree: Vtree, cards: Ints, units: int, rng: np.random.Generator, coverage: float
) -> tuple[Draft, int]:
    """Build deterministic layers: every layer holds a few partitions of its space.

    A partition of an inner node pairs each part of a left partition with the parts
    of some right partition, and deals these elements out to its own parts.
    """
    draft = Draft(vtree, cards)
    pools: list[list[list[int]]] = []  # per vtree node: partitions, each a list of nodes
    for v in range(len(vtree)):
        variable = int(vtree.variable[v])
        pool: list[list[int]] = []
        for number in range(1 if v == vtree.root else 2):
            # The first partition of every pool has one part, so that circuits stay small.
            parts = 1 if number == 0 else int(rng.integers(1, units + 1))
            if variable >= 0:
                values = rng.permutation(cards[variable])
                groups = [values[i::parts] for i in range(min(parts, len(values)))]
                pool.append(
                    [draft.add_leaf(v, variable, [(int(x), None) for x in g]) for g in groups]
                )
                continue
            elements: list[tuple[int, int, Parameter | None]] = []
            lefts = pools[vtree.left[v]]
            rights = pools[vtree.right[v]]
            for a in lefts[int(rng.integers(len(lefts)))]:
                for b in rights[int(rng.integers(len(rights)))]:
                    if not elements or rng.random() < coverage:
                        elements.append((a, b, None))
            rng.shuffle(elements)
            dealt = [elements[i::parts] for i in range(min(parts, len(elements)))]
            pool.append([draft.add_node(v, part) for part in dealt])
        pools.append(pool)
    return draft, pools[vtree.root][0][0]
