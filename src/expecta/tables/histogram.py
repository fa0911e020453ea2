"""Irregular histograms by penalised likelihood.

Rozenholc, Mildenberger and Gather (2010) choose the number and the places of the bins
that maximise the likelihood of the histogram less a penalty for what they could choose:

    sum_j N_j log(N_j / (n w_j)) - log binom(n - 1, D - 1) - (D - 1) - log(D)^2.5

for D bins with N_j of n observations in a bin of width w_j (their penalty B).
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from expecta.common.arrays import Floats

__all__ = ["adaptive_cuts"]

CANDIDATES = 256  # places where a bin may end; the optimum costs their square


def adaptive_cuts(values: Floats, mass: Floats, most: int) -> Floats | None:
    """Return the cuts of the best histogram with at most ``most`` bins.

    ``values`` are sorted and distinct, ``mass`` is how often each occurs. Returns None
    where the best histogram is a single bin, or there is none.
    """
    span = float(values[-1]) - float(values[0])
    n = float(mass.sum())
    if len(values) < 3 or most < 2 or not np.isfinite(span) or n < 3:
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
    for _ in range(2, min(most, last) + 1):
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


def _candidates(values: Floats, mass: Floats, least: float) -> Floats:
    """Return the ends, and cuts at quantiles that lie at least some way apart.

    Without a least width a bin around one repeated value would have any likelihood.
    """
    middles = values[:-1] / 2 + values[1:] / 2
    rank = np.cumsum(mass)[:-1] / mass.sum() * CANDIDATES
    fresh = np.diff(np.floor(rank), prepend=-1.0) > 0
    kept = [float(values[0])]
    for cut in middles[fresh].tolist():
        if cut - kept[-1] >= least and values[-1] - cut >= least:
            kept.append(cut)
    return np.array([*kept, float(values[-1])])
