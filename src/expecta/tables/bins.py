"""Choose where to cut a column of numbers into bins.

A column is cut at inner edges ``e_0 < e_1 < ...``: value ``j`` of the variable stands for
``e_(j-1) <= x < e_j``, and the first and last bins have no outer end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from expecta.common.arrays import Bools, Floats

METHODS = ("quantile", "tails", "width", "adaptive")
LONG = 2.0  # times the width of its neighbour: an end bin worth cutting
TAIL_CUTS = 3  # of each end at most: an eighth of its weight is left at the end
MIN_TAIL_ROWS = 20.0  # of a bin that such a cut makes
FALLBACK_BINS = 10  # of equal width, where the adaptive rule finds no structure
MAX_CANDIDATES = 256  # positions where an adaptive bin may end; the cost is their square


@dataclass(frozen=True)
class Sample:
    """Distinct finite numbers in order, and the weight of each."""

    values: Floats
    mass: Floats

    @classmethod
    def from_numbers(cls, numbers: Floats, weight: Floats | None) -> Sample:
        """Gather a column's numbers; what is missing, infinite or has no weight is left out."""
        kept = np.isfinite(numbers) if weight is None else np.isfinite(numbers) & (weight > 0)
        # minus zero is zero
        values, inverse = np.unique(numbers[kept] + 0.0, return_inverse=True)
        mass = np.bincount(inverse, None if weight is None else weight[kept], len(values))
        return cls(values, mass.astype(np.float64))


def bin_edges(
    sample: Sample,
    method: str | npt.ArrayLike,
    max_bins: int,
    thresholds: Sequence[float] | Floats = (),
) -> Floats:
    """Return the inner edges for a column, those for the thresholds among them.

    ``x <= t`` and ``x > t`` never share a bin for a threshold t: its edge is the next
    float after t. An edge of the method that tells no more training values apart than
    some threshold does is left out.
    """
    if isinstance(method, str):
        methods = {"quantile": _quantile, "tails": _tails, "width": _width, "adaptive": _adaptive}
        edges = methods[method](sample, max_bins)
    else:
        edges = np.asarray(method, np.float64)[1:-1]
    if not len(thresholds):
        return edges
    wanted = np.nextafter(np.unique(np.asarray(thresholds, np.float64)), np.inf)
    wanted = wanted[np.isfinite(wanted)]
    if isinstance(method, str):
        below = np.searchsorted(sample.values, edges)
        edges = edges[~np.isin(below, np.searchsorted(sample.values, wanted))]
    return np.union1d(edges, wanted)


def edges_after(sample: Sample, last: Bools) -> Floats:
    """Return an edge after every value that is the last of its bin."""
    end = np.flatnonzero(last[:-1])
    low, high = sample.values[end], sample.values[end + 1]
    middle = low / 2 + high / 2
    return np.where(middle > low, middle, high)


def _quantile(sample: Sample, max_bins: int) -> Floats:
    """Cut into bins of about equal weight.

    A value that weighs as much as a bin gets one of its own, and the rest share what bins
    are left; so no bin is empty, and a heavy value does not use up the resolution.
    """
    size = len(sample.values)
    if size <= max_bins:
        return edges_after(sample, np.ones(size, np.bool_))
    if max_bins == 1:
        return np.zeros(0)
    heavy = np.zeros(size, np.bool_)
    while True:
        rest = np.where(heavy, 0.0, sample.mass)
        left = max_bins - int(heavy.sum())
        share = rest.sum() / left
        fresh = ~heavy & (sample.mass > share)
        if not np.any(fresh):
            break
        heavy |= fresh
    slot = np.floor((np.cumsum(rest) - rest / 2) / share)
    last = np.append(heavy[1:] | heavy[:-1] | (slot[1:] != slot[:-1]), True)
    ends = np.flatnonzero(last)
    starts = np.append(0, ends[:-1] + 1)
    weight = np.add.reduceat(sample.mass, starts).tolist()
    alone = heavy[starts].tolist()
    kept = ends.tolist()
    while len(kept) > max_bins:  # heavy values split bins in two: join the lightest neighbours
        cost = [(alone[i] or alone[i + 1], weight[i] + weight[i + 1]) for i in range(len(kept) - 1)]
        i = cost.index(min(cost))
        weight[i : i + 2] = [weight[i] + weight[i + 1]]
        alone[i : i + 2] = [alone[i] or alone[i + 1]]
        del kept[i]
    final = np.zeros(size, np.bool_)
    final[kept] = True
    return edges_after(sample, final)


def _tails(sample: Sample, max_bins: int) -> Floats:
    """Cut into bins of about equal weight, and long end bins again: each cut halves what is left.

    An end bin is long if it is `LONG` times as wide as its neighbour. There are at most `TAIL_CUTS`
    cuts at each end, and none that leaves less than the weight of `MIN_TAIL_ROWS` rows.
    """
    edges = _quantile(sample, max_bins)
    above = _upper_cuts(sample.values, sample.mass, edges)
    below = _upper_cuts(-sample.values[::-1], sample.mass[::-1], -edges[::-1])
    return np.concatenate([-below[::-1], edges, above])


def _upper_cuts(values: Floats, mass: Floats, edges: Floats) -> Floats:
    cuts: list[float] = []
    ends = [float(values[0]), *edges[-2:].tolist()]
    while len(ends) > 1 and len(cuts) < TAIL_CUTS:
        first = int(np.searchsorted(values, ends[-1]))
        weight = np.cumsum(mass[first:])
        last = int(np.searchsorted(weight, weight[-1] / 2))  # of the inner half
        if min(weight[last], weight[-1] - weight[last]) < MIN_TAIL_ROWS:
            break
        if values[-1] / 2 - ends[-1] / 2 < LONG * (ends[-1] / 2 - ends[-2] / 2):  # no overflow
            break
        low, high = float(values[first + last]), float(values[first + last + 1])
        cuts.append(max(low / 2 + high / 2, float(np.nextafter(low, np.inf))))
        ends.append(cuts[-1])
    return np.array(cuts)


def _width(sample: Sample, max_bins: int) -> Floats:
    """Cut the range into bins of equal width; some may hold nothing."""
    low, high = sample.values[0], sample.values[-1]
    part = np.arange(1, max_bins) / max_bins
    edges: Floats = np.unique(low * (1 - part) + high * part)
    return edges[(edges > low) & (edges <= high)]


def _adaptive(sample: Sample, max_bins: int) -> Floats:
    """Cut where the penalised likelihood is largest; ten equal bins where that is a single bin.

    Rozenholc, Mildenberger and Gather (2010) choose the number and the edges of the bins
    that maximise the likelihood of the histogram less a penalty for what they could choose:

        sum_j N_j log(N_j / (n w_j)) - log binom(n - 1, D - 1) - (D - 1) - log(D)^2.5

    for D bins with N_j of n observations in a bin of width w_j (their penalty B).
    """
    cuts = _best_histogram(sample.values, sample.mass, max_bins)
    return _width(sample, min(FALLBACK_BINS, max_bins)) if cuts is None else cuts


def _best_histogram(values: Floats, mass: Floats, max_bins: int) -> Floats | None:
    """Return the inner edges of the best histogram, None where it is a single bin."""
    span = float(values[-1]) - float(values[0])
    n = float(mass.sum())
    if len(values) < 3 or max_bins < 2 or not np.isfinite(span) or n < 3:
        return None
    grid = _candidates(values, mass, span * float(np.log(n) / n))
    if len(grid) < 3:
        return None
    below = np.concatenate([[0.0], np.cumsum(mass)])
    count = below[np.searchsorted(values, grid, side="left")]
    count[-1] = n
    # gain[i, j]: log-likelihood of one bin from candidate i to candidate j.
    inside = count[None, :] - count[:, None]
    width = (grid[None, :] - grid[:, None]) / span
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(inside > 0, inside * np.log(inside / (n * width)), 0.0)
    gain[width <= 0] = -np.inf

    last = len(grid) - 1
    best = gain[0]  # best likelihood of a histogram up to each candidate
    came_from = []
    scores = [best[last]]
    for _ in range(2, min(max_bins, last) + 1):
        total = best[:, None] + gain  # (where the last bin starts, where it ends)
        start = np.argmax(total, axis=0)
        came_from.append(start)
        best = total[start, np.arange(last + 1)]
        scores.append(best[last])
    bins = np.arange(1, len(scores) + 1)
    choices = gammaln(n) - gammaln(bins) - gammaln(np.maximum(n - bins + 1, 1.0))
    chosen = int(np.argmax(np.array(scores) - choices - (bins - 1) - np.log(bins) ** 2.5)) + 1
    if chosen == 1:
        return None
    cuts, end = [], last
    for start in reversed(came_from[: chosen - 1]):
        end = int(start[end])
        cuts.append(grid[end])
    return np.array(cuts[::-1])


def _candidates(values: Floats, mass: Floats, min_width: float) -> Floats:
    """Return the ends, and cuts at quantiles that lie at least ``min_width`` apart.

    Without a smallest width a bin around one repeated value would have any likelihood.
    """
    middles = values[:-1] / 2 + values[1:] / 2
    rank = np.cumsum(mass)[:-1] / mass.sum() * MAX_CANDIDATES
    fresh = np.diff(np.floor(rank), prepend=-1.0) > 0
    kept = [float(values[0])]
    for cut in middles[fresh].tolist():
        if cut - kept[-1] >= min_width and values[-1] - cut >= min_width:
            kept.append(cut)
    return np.array([*kept, float(values[-1])])
