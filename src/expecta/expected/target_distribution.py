"""Distributions of the target: on its scale, and among its values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Bools, Floats
from expecta.expected.calibrated_distribution import CalibratedDistribution
from expecta.expected.row_distributions import RowDistributions, interval_levels
from expecta.expected.target_scale import TargetScale
from expecta.expected.target_values import ANY_NUMBER, TargetValues
from expecta.queries.output_distribution import Distribution


class TargetDistribution(RowDistributions):
    """Distributions of a margin, as distributions of the target.

    Parameters
    ----------
    base
        Distribution of each row's margin.
    scale
        What the target is of the margin.
    values
        What the target can be. Where that is not every number, a value has all of the
        distribution that is nearer to it than to others; the density stays that of numbers.
    """

    def __init__(
        self,
        base: Distribution | RowDistributions,
        scale: TargetScale,
        values: TargetValues = ANY_NUMBER,
    ) -> None:
        self.base, self.scale, self.values = base, scale, values

    def cdf(self, c: npt.ArrayLike) -> Floats:
        """P(y <= c)."""
        margin = self.scale.margin(self.values.border(np.asarray(c, np.float64)))
        finite = np.isfinite(margin)
        below = self.base.cdf(np.where(finite, margin, 0.0))
        known = np.where(np.isnan(below), np.nan, 1.0)
        return np.where(finite, below, known * (margin > 0))

    def density(self, y: npt.ArrayLike) -> Floats:
        """Slope of the cdf by y."""
        at = np.asarray(y, np.float64)
        margin = self.scale.margin(at)
        inside = np.where(np.isfinite(margin), margin, 0.0)
        return self.base.density(inside) * self.scale.slope(at)

    def quantile(self, q: npt.ArrayLike) -> Floats:
        """Least c with P(y <= c) >= q."""
        answer = self.scale.value(self.base.quantile(q))
        return answer if self.values.any_number else self.values.nearest(answer)

    def beyond(self, q: Floats) -> Bools:
        """Which levels held-out rows cannot tell, for each row.  # (rows, levels)."""
        if isinstance(self.base, CalibratedDistribution):
            return self.base.beyond(q)
        return np.zeros((1, len(q)), np.bool_)

    @property
    def limits(self) -> Floats:
        """The least and greatest y that there can be, as far as training rows tell."""
        ends = self.scale.value(np.array([-np.inf, np.inf]))
        return np.maximum(ends, 0.0) if self.values.kind == "positive" else ends

    def interval(self, coverage: float = 0.9) -> tuple[Floats, Floats]:
        """Return the ends of the central interval that holds y with this probability.

        Of values that have neighbours the last at either end belongs to it if more than half of
        its probability would: so it holds neither more nor less, on average over rows.
        """
        low, high = super().interval(coverage)
        if not self.values.discrete:
            return low, high
        levels = interval_levels(coverage)
        ends = []
        for end, level, step in ((low, levels[0], 1), (high, levels[1], -1)):
            before = self.values.neighbour(end, -1)
            first = before == end  # the least of few values, or zero, has nothing below
            below = np.where(first, 0.0, self.cdf(before[:, None])[:, 0])
            middle = 0.5 * (below + self.cdf(end[:, None])[:, 0])
            out = (level - middle) * step > 0
            ends.append(np.where(out, self.values.neighbour(end, step), end))
        return ends[0], ends[1]
