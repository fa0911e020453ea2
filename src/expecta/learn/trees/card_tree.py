"""List what the passes of a tree on a card look up: levels, children, and whose lane is whose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from expecta.common.arrays import Bools, Ints
from expecta.learn.trees.patterns import SharedPatterns
from expecta.learn.trees.tree import RootedTree


@dataclass(frozen=True, eq=False)
class CardTree:
    """A tree, the patterns that rows share, and the rows, as lists.

    Levels of shared nodes come first, then those of the others, each from below. A *map* says
    which lane of a child belongs to a lane of its parent: a row of ``codes`` for rows, a place in
    ``pattern_codes`` and a step for patterns, -1 where both have the same lanes.
    """

    shared: Bools
    n_patterns: Ints  # of each node, 0 where it is not shared  # (nodes,)
    nodes_by_level: Ints
    level_start: Ints  # into it
    shared_levels: range
    row_levels: range
    links: Ints  # (links, 3): child, map, step
    link_start: Ints  # (nodes + 1,)
    value_map: Ints  # of each node's values, as other maps  # (nodes,)
    bins: Ints  # (bins, 3): what lanes of a node are added up by: node, map, step
    bin_to: Ints  # a node's values, or, from the number of nodes on, the patterns of a child
    bin_start: Ints  # (levels + 1,)
    codes: Ints  # values at nodes that are not shared, and rows' patterns  # (maps, rows)
    pattern_codes: Ints
    root_map: int  # of rows, where the root is shared

    @property
    def n_rows(self) -> int:
        """How many rows the table has."""
        return self.codes.shape[1]

    @property
    def most_patterns(self) -> int:
        """The greatest number of patterns of a node."""
        return int(self.n_patterns.max())

    @classmethod
    def of(cls, tree: RootedTree, patterns: SharedPatterns, columns: Ints) -> CardTree:
        """List a tree. Cost: linear in nodes, patterns and rows."""
        shared, n = patterns.shared, len(tree)
        own = np.flatnonzero(~shared)
        column = np.cumsum(~shared) - 1  # of the nodes that are not shared, in codes
        value_map = np.where(shared, patterns.start[:-1], column)
        height = np.zeros(n, np.int64)  # within the shared nodes, or within the others
        links: list[tuple[int, int, int]] = []
        link_start = [0]
        for v, children in enumerate(tree.children):
            for j, c in enumerate(children):
                if shared[c] == shared[v]:
                    height[v] = max(height[v], height[c] + 1)
                if shared[v]:
                    at = len(patterns.value) + int(patterns.child_start[v]) + j
                    links.append((c, at, len(children)))
                elif shared[c]:
                    links.append((c, len(own) + int(patterns.boundary[c]), 1))
                else:
                    links.append((c, -1, 1))
            link_start.append(len(links))
        n_shared = int(height[shared].max(initial=-1)) + 1
        level = np.where(shared, height, n_shared + height)
        nodes = np.argsort(level, kind="stable")
        n_levels = int(level.max()) + 1
        bins, to = [], []
        for v in nodes.tolist():
            bins.append((v, int(value_map[v]), 1))
            to.append(v)
            for c, at, step in links[link_start[v] : link_start[v + 1]]:
                if shared[c]:
                    bins.append((v, at, step))
                    to.append(n + c)
        table = np.array(bins, np.int64)
        return cls(
            shared=shared,
            n_patterns=np.diff(patterns.start),
            nodes_by_level=nodes.astype(np.int32),
            level_start=np.searchsorted(level[nodes], np.arange(n_levels + 1)),
            shared_levels=range(n_shared),
            row_levels=range(n_shared, n_levels),
            links=np.array(links, np.int64).reshape(-1, 3),
            link_start=np.array(link_start),
            value_map=value_map,
            bins=table,
            bin_to=np.array(to),
            bin_start=np.searchsorted(level[table[:, 0]], np.arange(n_levels + 1)),
            codes=np.concatenate([columns[own], patterns.of_row]),
            pattern_codes=np.concatenate([patterns.value, patterns.child]).astype(np.int32),
            root_map=len(own) + int(patterns.boundary[-1]) if shared[-1] else -1,
        )
