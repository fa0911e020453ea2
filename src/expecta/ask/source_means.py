"""Put the means of groups by density and by training rows together, as a question asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr

from expecta.ask.checks.chance import beyond_chance
from expecta.ask.credibility import SPREAD_ROWS, CombinedMeans, RowMoments, difference_errors
from expecta.ask.training_outputs import credibility_of
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.text import number, suggestion
from expecta.expected.expected_output import ExpectedOutput

POPULATIONS = ("both", "rows", "density")
WHOLE = 1e-6  # how far shares may add up to other than 1
MAX_NAMED = 3  # groups that a remark names
NO_ROWS = (
    "this model has no training rows, so population='rows' has no answer; ask with "
    "population='density'"
)


def check_population(population: str, subject: ExpectedOutput) -> str:
    """Complain of a population that is none, or that the model knows nothing of."""
    if population not in POPULATIONS:
        raise DomainError(
            f"there is no population {population!r:.40}; {suggestion(population, POPULATIONS)}"
        )
    if population == "rows" and subject.training_rows is None:
        raise DomainError(NO_ROWS)
    return population


class SourceMeans(NamedTuple):
    """Means of groups, and what they are made of.  # (groups,) each.

    Attributes
    ----------
    mean, standard_error
        The mean that was asked for, and its standard error; NaN where nothing is known of rows.
    density_mean, density_error
        The mean under the density, and its standard error by what is typical of the density.
    rows_output, rows_error
        The mean of the model's output over the training rows in the group, and its standard
        error by the spread of those rows; NaN where there are none.
    weight
        The weight of the rows in the mean.
    p
        How probable a gap as large between the sources is by chance; NaN without rows.
    rows_variance
        What chance in the rows alone adds to the square of the standard error.
    shared
        The correlation of the density's errors in disjoint groups.
    """

    mean: Floats
    standard_error: Floats
    density_mean: Floats
    density_error: Floats
    rows_output: Floats
    rows_error: Floats
    weight: Floats
    p: Floats
    rows_variance: Floats
    shared: float

    def at(self, which: Ints) -> SourceMeans:
        """Return some of the groups."""
        arrays = {name: part[which] for name, part in self._asdict().items() if name != "shared"}
        return SourceMeans(**arrays, shared=self.shared)

    def agree_with_whole(self, share: Floats, whole: float, is_share: bool) -> SourceMeans:
        """Shift the means of parts so that their mean by ``share`` is that of the whole.

        Each is shifted by its share and its variance, as small-area estimates are benchmarked:
        what is known best moves least, and shares of a class stay between 0 and 1. Parts that are
        no whole stay as they are.
        """
        low, high = (0.0, 1.0) if is_share else (-np.inf, np.inf)
        variance, mean = np.nan_to_num(share * self.standard_error**2), self.mean
        if not abs(share.sum() - 1.0) < WHOLE:
            return self
        for _ in range(len(mean)):  # one at least comes to an end of what is possible in each round
            total = float(share @ variance)
            gap = whole - float(share @ np.nan_to_num(mean))
            if not (total > 0 and np.isfinite(gap)):
                break
            mean = mean + variance / total * gap
            beyond = (mean < low) | (mean > high)
            if not np.any(beyond):
                break
            mean, variance = np.clip(mean, low, high), np.where(beyond, 0.0, variance)
        return self._replace(mean=mean)

    def difference_error(self, other: SourceMeans, overlap: Floats) -> Floats:
        """Return the standard errors of the differences between these means and others.

        ``overlap`` is the probability of both groups over the root of the product of each.
        """
        return difference_errors(
            self.standard_error**2,
            self.rows_variance,
            other.standard_error**2,
            other.rows_variance,
            overlap,
            self.shared,
        )


def disagreements(means: SourceMeans, labels: Sequence[str]) -> list[str]:
    """Write in which of several groups density and rows disagree beyond chance, the worst first.

    Of those reported, at most 5% are expected to do so by chance; those that differ by less than
    what is printed are not reported.
    """
    texts = [
        (number(float(density)), number(float(rows)))
        for density, rows in zip(means.density_mean, means.rows_output, strict=True)
    ]
    differ = np.array([density != rows for density, rows in texts], np.bool_)
    beyond = np.flatnonzero(beyond_chance(means.p) & differ)
    if not len(beyond):
        return []
    worst = beyond[np.argsort(means.p[beyond], kind="stable")][:MAX_NAMED]
    named = "; ".join(f"{labels[i]} ({' and '.join(texts[i])})" for i in worst.tolist())
    more = "; ..." if len(beyond) > len(worst) else ""
    return [
        f"Density and training rows disagree beyond chance in {len(beyond)} of {len(labels)} "
        f"groups: {named}{more}."
    ]


def source_means(
    subject: ExpectedOutput,
    population: str,
    mean: Floats,
    numerical_error: Floats,
    variance: Floats,
    rows: RowMoments | None,
    share: Floats,
) -> SourceMeans:
    """Combine what the density says of groups with what rows say, as ``population`` asks.

    ``rows`` is None where nothing is known of the rows in the groups; ``share`` is the groups'
    probability, which then says about how many the density learned from.
    """
    nothing, zero = np.full(len(mean), np.nan), np.zeros(len(mean))
    credibility = credibility_of(subject)
    if credibility is None or subject.training_rows is None:
        unknown = nothing, nothing, nothing, zero, nothing, zero
        return SourceMeans(mean, nothing, mean, *unknown, 0.0)
    known = RowMoments(zero, nothing, zero) if rows is None else rows
    both = credibility.combine(mean, variance, known)
    if rows is None:
        typical = credibility.density_error(variance, share * len(subject.training_rows))
        both = both._replace(error=typical, density_error=typical)
    both = both._replace(
        error=np.hypot(both.error, (1.0 - both.weight) * numerical_error),
        density_error=np.hypot(both.density_error, numerical_error),
    )
    p = 2.0 * stdtr(known.size + SPREAD_ROWS - 1.0, -np.abs(both.apart))
    value, error, weight, by_rows = _asked(population, both, mean, known)
    parts = both.density_error, known.mean, known.error, weight, p, by_rows
    return SourceMeans(value, error, mean, *parts, credibility.shared)


def _asked(
    population: str, both: CombinedMeans, mean: Floats, rows: RowMoments
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return mean, standard error, weight of the rows, and the variance that is theirs alone."""
    if population == "density":
        return mean, both.density_error, 0.0 * mean, 0.0 * mean
    if population == "rows":
        return rows.mean, rows.error, np.ones_like(mean), rows.error**2
    return both.mean, both.error, both.weight, both.rows_variance
