"""Learn vtrees from data: variables that tell much about each other are put close together."""

from __future__ import annotations

from typing import Any

import numpy as np

from expecta.circuits.vtree import Nested, Vtree
from expecta.common.arrays import Bools, Floats, Ints
from expecta.learn.information import mutual_information
from expecta.learn.trees.tree import RootedTree

HOWS = ("chow-liu", "bottom-up", "top-down")


def learn_vtree(X: Any, how: str = "bottom-up", *, encoder: Any = None) -> Vtree:
    """Return a vtree over the columns of a table, by their mutual information.

    Parameters
    ----------
    X
        A table or an array; an array of integers holds values 0, 1, 2, ..., -1 for unknown.
    how
        "bottom-up": balanced, pairs that tell most about each other are joined first.
        "top-down": balanced, halves that tell least about each other are parted first.
        "chow-liu": the shape of the Chow-Liu tree, as trees of states have it.
    encoder
        How to read tables; by default ``Encoder()``.

    Examples
    --------
    >>> x = np.random.default_rng(0).integers(2, size=(100, 2))
    >>> learn_vtree(np.column_stack([x, x]))
    Vtree(((0, 2), (1, 3)))
    """
    from sklearn.base import clone

    from expecta.tables import Encoder

    if how not in HOWS:
        raise ValueError(f"how is one of {', '.join(HOWS)}, not {how!r}")
    encoder = Encoder() if encoder is None else clone(encoder)
    codes = encoder.fit_transform(X)
    information = mutual_information(codes, encoder.cardinalities_)
    if how == "chow-liu":
        return RootedTree.greatest(information).vtree
    return balanced_by_information(information, how)


def balanced_by_information(information: Floats, how: str = "bottom-up") -> Vtree:
    """Return a balanced vtree from the mutual information of all pairs; see `learn_vtree`.

    Cost: about variables² log variables (bottom-up) or variables³ (top-down).
    """
    if how == "bottom-up":
        return Vtree.from_nested(_bottom_up(information))
    return Vtree.from_nested(_top_down(information, np.arange(len(information))))


def _bottom_up(information: Floats) -> Nested:
    """Join clusters in pairs, those of greatest mean information first, until one is left."""
    clusters: list[Nested] = list(range(len(information)))
    size = np.ones(len(clusters))
    between = information.copy()  # sum over the pairs of two clusters
    while len(clusters) > 1:
        first, second = np.triu_indices(len(clusters), 1)
        mean = between[first, second] / (size[first] * size[second])
        free = np.ones(len(clusters), np.bool_)
        groups: list[list[int]] = []
        for pair in np.argsort(-mean, kind="stable").tolist():
            a, b = int(first[pair]), int(second[pair])
            if free[a] and free[b]:
                free[a] = free[b] = False
                groups.append([a, b])
                if len(groups) == len(clusters) // 2:
                    break
        groups += [[i] for i in np.flatnonzero(free).tolist()]
        belongs = np.zeros((len(groups), len(clusters)))
        for row, group in enumerate(groups):
            belongs[row, group] = 1.0
        between = belongs @ between @ belongs.T
        size = belongs @ size
        clusters = [
            clusters[g[0]] if len(g) == 1 else (clusters[g[0]], clusters[g[1]]) for g in groups
        ]
    return clusters[0]


def _top_down(information: Floats, variables: Ints) -> Nested:
    """Part variables in halves with little information between them, again and again."""
    if len(variables) == 1:
        return int(variables[0])
    left = _bisection(information[np.ix_(variables, variables)])
    return (_top_down(information, variables[left]), _top_down(information, variables[~left]))


def _bisection(information: Floats) -> Bools:
    """Choose half of the variables, by the second eigenvector and then by the best exchanges.

    The sum of information across the cut falls with every exchange (Kernighan and Lin).
    """
    n = len(information)
    laplacian = np.diag(information.sum(axis=0)) - information
    order = np.argsort(np.linalg.eigh(laplacian)[1][:, 1], kind="stable")
    is_left = np.zeros(n, np.bool_)
    is_left[order[: n // 2]] = True
    for _ in range(n):
        # what moving a variable to the other side would take off the cut
        gain = information @ np.where(is_left, -1.0, 1.0) * np.where(is_left, 1.0, -1.0)
        left, right = np.flatnonzero(is_left), np.flatnonzero(~is_left)
        both = gain[left][:, None] + gain[right] - 2.0 * information[np.ix_(left, right)]
        best = int(np.argmax(both))
        a, b = divmod(best, len(right))
        if both[a, b] <= 1e-12:
            break
        is_left[left[a]], is_left[right[b]] = False, True
    return is_left
