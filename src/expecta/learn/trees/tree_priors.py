"""Turn expected counts into parameters: what the distributions of a tree are drawn towards.

A prior adds rows to every distribution. Where states are hidden, it adds to

- a row of transitions, half a prior's rows to the same state as the parent's and half as the
  states are distributed at the node;
- the categories of a state, the distribution of the whole column;
- the bins of numbers of a state, a *normal curve of its own* in the column's normal scores. Bin b
  lies between the scores e_b and e_(b+1) that follow from the column's cumulative distribution,
  and u_b is its mean score. With expected counts c_b of sum n

      m = Σ c_b u_b / (n + 0.1)        s² = (Σ c_b (u_b − m)² + 4 v) / (n + 4)

  where v is the mean variance within states; ``smoothing`` rows are then spread as
  Φ((e_(b+1) − m) / s) − Φ((e_b − m) / s). So many bins cost two parameters where rows are few,
  and are free where rows are many. A *spike*, a single number that far more rows have than others
  (zeros, for example), is no part of the curve: it keeps its share of the state's rows.

The first K states are shared by all nodes. A node with more has *clamped* states: each emits one
value for certain, and keeps it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import ndtri

from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.kernels import helper, kernel
from expecta.learn.trees.layout import TreeLayout

SAME_STATE = 0.5  # share of a transition's prior that stays in the state
MEAN_ROWS, SPREAD_ROWS = 0.1, 4.0  # added to a state's mean (at zero) and variance
MIN_SPREAD = 1e-4  # variance of normal scores within states


class TreePrior(Protocol):
    """What parameters are drawn towards."""

    def maximise(self, counts: Floats, theta: Floats) -> Floats:
        """Return parameters from expected counts under θ: the M step."""


@dataclass(frozen=True, eq=False)
class AddedCounts:
    """Rows that are added to every distribution, the same whatever was counted."""

    layout: TreeLayout
    counts: Floats  # laid out like θ

    def maximise(self, counts: Floats, theta: Floats) -> Floats:
        """Return the counts and those added, divided by their sums."""
        return self.layout.normalised(counts + self.counts)

    @classmethod
    def visible(
        cls, layout: TreeLayout, marginals: Sequence[Floats], pseudo_count: float
    ) -> AddedCounts:
        """Return rows to add where the states are the values: these stay what they are.

        ``marginals`` are the distributions of the columns, in the order of the tree's nodes.
        """
        prior = np.empty(layout.size)
        for node, marginal in enumerate(marginals):
            layout.transitions(prior, node)[:] = pseudo_count * marginal
            layout.values(prior, node)[:] = np.eye(len(marginal))
        return cls(layout, prior)

    @classmethod
    def single(
        cls, layout: TreeLayout, marginals: Sequence[Floats], pseudo_count: float
    ) -> AddedCounts:
        """Return rows to add where every node has one state."""
        ones = np.ones(len(layout.tree))
        return cls(layout, np.concatenate([ones, *(pseudo_count * m for m in marginals)]))


class _Curves(NamedTuple):
    """Of the values of all nodes, one after the other."""

    start: Ints  # (nodes + 1,)
    ordered: Ints  # how many values are bins of numbers, 0 where none are smooth  # (nodes,)
    marginal: Floats
    score: Floats  # mean normal score of a bin
    edge: Floats  # normal score of its upper end
    spike: Bools  # which values are no part of a curve


class _Strengths(NamedTuple):
    shared: int
    pseudo_count: float
    smoothing: float


@dataclass(frozen=True, eq=False)
class LatentPrior:
    """The prior of hidden states; see the top of this file.

    Parameters
    ----------
    layout
        The tables; a node with more than the least number of states is clamped.
    marginals
        The distributions of the columns, in the order of the tree's nodes.
    ordered
        How many of a node's values are bins of numbers, the first ones; 0 for
        categories.  # (nodes,)
    pseudo_count
        Rows added to transitions and categories.
    smoothing
        Rows added to bins of numbers.
    spikes
        Which values of each node hold one number that many rows have, in the nodes' order.
    """

    layout: TreeLayout
    marginals: Sequence[Floats]
    ordered: Ints
    pseudo_count: float
    smoothing: float
    spikes: Sequence[Bools]

    def maximise(self, counts: Floats, theta: Floats) -> Floats:
        """Return parameters. Cost: linear in their number."""
        layout, out = self.layout, np.empty(len(theta))
        strengths = _Strengths(layout.shared, self.pseudo_count, self.smoothing)
        states, above = layout.states.astype(np.int64), layout.above.astype(np.int64)
        sizes = states, above, layout.a_start, layout.b_start
        _maximise(sizes, self._curves, strengths, counts, theta, out)
        return out

    @cached_property
    def _curves(self) -> _Curves:
        ordered = np.asarray(self.ordered, np.int64).tolist()
        of_node = map(_normal_scores, self.marginals, ordered, self.spikes)
        edges, scores = zip(*of_node, strict=True)
        return _Curves(
            start=np.concatenate([[0], np.cumsum([len(m) for m in self.marginals])]),
            ordered=np.array(ordered),
            marginal=np.concatenate(self.marginals),
            score=np.concatenate(scores),
            edge=np.concatenate(edges),
            spike=np.concatenate(self.spikes),
        )


def _normal_scores(marginal: Floats, ordered: int, spike: Bools) -> tuple[Floats, Floats]:
    """Return the normal scores of the bins' upper ends, and their mean scores, without spikes."""
    edge, score = np.zeros((2, len(marginal)))
    if ordered:
        share = np.where(spike, 0.0, marginal)[:ordered]
        share /= share.sum()
        edge[:ordered] = ndtri(np.minimum(np.cumsum(share), 1.0))
        edge[np.flatnonzero(share)[-1] : ordered] = np.inf
        height = np.exp(-(edge[:ordered] ** 2) / 2) / math.sqrt(2 * math.pi)
        gain = -np.diff(height, prepend=0.0)
        np.divide(gain, share, out=score[:ordered], where=share > 0)
    return edge, score


@kernel
def _maximise(
    sizes: tuple[Ints, Ints, Ints, Ints],
    curves: _Curves,
    strengths: _Strengths,
    counts: Floats,
    theta: Floats,
    out: Floats,
) -> None:
    """Write counts and prior of all tables, each row divided by its sum."""
    states, above, a_start, b_start = sizes
    for v in range(len(states)):
        k, first, ordered = states[v], curves.start[v], curves.ordered[v]
        card = curves.start[v + 1] - first
        table = counts[a_start[v] : a_start[v + 1]].reshape(above[v], k)
        to = out[a_start[v] : a_start[v + 1]].reshape(above[v], k)
        _transitions(table, strengths, to)
        _divide(to)
        table = counts[b_start[v] : b_start[v + 1]].reshape(k, card)
        to = out[b_start[v] : b_start[v + 1]].reshape(k, card)
        marginal = curves.marginal[first : first + card]
        if k > strengths.shared:
            for b in range(b_start[v], b_start[v + 1]):
                out[b] = theta[b]
            continue
        for s in range(k):
            for b in range(card):
                to[s, b] = table[s, b] + strengths.pseudo_count * marginal[b]
        if ordered and k > 1:
            bins = slice(first, first + ordered)
            shape = curves.score[bins], curves.edge[bins], curves.spike[bins]
            _smooth(table, shape, strengths.smoothing, to)
        _divide(to)


@helper
def _divide(table: Floats) -> None:
    """Divide every row by its sum; a row of zeros becomes even."""
    rows, k = table.shape
    for i in range(rows):
        total = 0.0
        for s in range(k):
            total += table[i, s]
        for s in range(k):
            table[i, s] = table[i, s] / total if total > 0.0 else 1.0 / k


@helper
def _transitions(counts: Floats, strengths: _Strengths, out: Floats) -> None:
    """Add the prior of transitions: the same state, and the states as they are distributed."""
    above, k = counts.shape
    share = np.zeros(k)
    for i in range(above):
        for s in range(k):
            share[s] += counts[i, s]
    total = share.sum() + MEAN_ROWS
    for i in range(above):
        same = SAME_STATE if above > 1 and i < strengths.shared else 0.0
        for s in range(k):
            mean = (1.0 - same) * (share[s] + MEAN_ROWS / k) / total
            if s == i:
                mean += same
            out[i, s] = counts[i, s] + strengths.pseudo_count * mean


@helper
def _smooth(
    counts: Floats, shape: tuple[Floats, Floats, Bools], smoothing: float, out: Floats
) -> None:
    """Add to the bins of each state a normal curve with the state's mean and spread.

    Spikes and other values, such as "missing", keep their share of the state's rows.
    """
    score, edge, spike = shape
    (k, card), n_bins = counts.shape, len(score)
    rows, mean, spread = np.zeros(k), np.zeros(k), np.zeros(k)
    for s in range(k):
        for b in range(n_bins):
            if not spike[b]:
                rows[s] += counts[s, b]
                mean[s] += counts[s, b] * score[b]
        mean[s] /= rows[s] + MEAN_ROWS
        for b in range(n_bins):
            if not spike[b]:
                spread[s] += counts[s, b] * (score[b] - mean[s]) ** 2
    total = rows.sum()
    pooled = max(spread.sum() / total, MIN_SPREAD) if total > 0.0 else 1.0
    for s in range(k):
        variance = (spread[s] + SPREAD_ROWS * pooled) / (rows[s] + SPREAD_ROWS)
        scale = 1.0 / math.sqrt(2.0 * variance)
        others = 0.0
        for b in range(card):
            if b >= n_bins or spike[b]:
                others += counts[s, b]
        per_row = smoothing / max(rows[s] + others, 1.0)
        for b in range(card):
            if b >= n_bins or spike[b]:
                out[s, b] += per_row * counts[s, b]
        left, below = smoothing - per_row * others, 0.0
        for b in range(n_bins):
            up_to = 0.5 * math.erfc((mean[s] - edge[b]) * scale)
            out[s, b] += left * (up_to - below)
            below = up_to
