"""What g is likely to be: ends that hold all but a little of its probability."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Floats
from expecta.queries.exponentials import log_exponential_of
from expecta.queries.spectral import coarse

if TYPE_CHECKING:
    from expecta.queries.pair import Pair

__all__ = ["likely"]

RATES = np.array([4.0, 1.0, 0.25])  # of exponentials, per unit
FAR = 30.0  # a range of g, in units, beyond which it pays to ask what is likely
WIDE = 64.0  # a range beyond which the unit is a part of the range


def likely(
    pair: Pair,
    evidence: Evidence,
    low: Floats,
    high: Floats,
    unit: Floats,
    share: float,
    only: int | None = None,
) -> tuple[Floats, Floats]:
    """Return ends between ``low`` and ``high``, beyond which g lies with probability ``share``.

    The range of g counts what is possible, however improbable, and frequencies cost in
    proportion to it. E[exp(λ g)] is exact and bounds a tail, P(g > r) <= E[exp(λ g)] exp(-λ r)
    (Chernoff). The rates λ suit a g that spreads over some units; others leave wider ends.

    Parameters
    ----------
    low, high
        The range of g: (rows, outputs), or (rows, 1) if one output is the ``only`` one asked for.
    unit
        What a range costs frequencies by: the width of a link or of noise.  # (rows,)

    Cost: that of six frequencies, for rows whose range is far beyond their unit.
    """
    low, high = low.copy(), high.copy()
    width = (high - low).max(axis=1, initial=0.0)
    unit = coarse(np.maximum(unit, width / WIDE))
    far = width > FAR * unit
    for group in np.unique(unit[far]):
        rows = np.flatnonzero(far & (unit == group))
        ends = []
        for rates in (RATES / group, -RATES / group):
            bound = log_exponential_of(pair, evidence[rows], rates, only) + np.log(2.0 / share)
            ends.append(np.where(np.isfinite(bound), bound / rates, np.sign(rates) * np.inf))
        # each tail holds less than half of what there is, so that the ends cannot cross
        high[rows] = np.minimum(high[rows], ends[0].min(axis=2))
        low[rows] = np.maximum(low[rows], ends[1].max(axis=2))
    return low, high
