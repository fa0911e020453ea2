"""Compare the dependence of every pair of columns in rows with that in a density."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from expecta.ask.checks.chance import beyond_chance, standard_errors, worst_first
from expecta.ask.checks.checked_rows import CheckedRows
from expecta.ask.checks.group_posteriors import group_posteriors
from expecta.ask.checks.pair_scores import ScoredColumn, compare_tables
from expecta.ask.printed_answer import PrintedAnswer, plain
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.progress import Progress
from expecta.common.text import counted, figure
from expecta.densities.density import Density

IN_KIND = 1.5  # times the difference of two sizes: that of the dependences themselves
LARGE = 0.1  # a difference of dependences that matters


@dataclass(frozen=True, eq=False)
class PairCheck(PrintedAnswer):
    """Dependence of pairs of columns in rows and under a density; the worst first.

    Attributes
    ----------
    columns
        Names of the columns whose pairs were compared.
    first, second
        Indices of the two columns of each pair.  # (pairs,)
    rows, density
        Dependence, from 0 to 1: the correlation of normal scores of two numbers, the correlation
        ratio of a number and a category, Cramér's V of two categories. It is a correlation from
        -1 to 1 where both are numbers or have two values, the second of which counts as larger.
        Other dependence in the rows is corrected for chance.  # (pairs,)
    difference
        Rows less density where these are correlations; else the size of the difference in the
        same unit, also of what differs in kind, as which category has the larger numbers.
    error
        Standard error of the difference under the rows: its size where only chance is at work.
    apart
        How many standard errors the two are apart.
    beyond
        Whether that is beyond chance: of such pairs at most 5% are expected to be chance.
    """

    columns: tuple[str, ...]
    first: Ints
    second: Ints
    rows: Floats
    density: Floats
    difference: Floats
    error: Floats
    apart: Floats
    beyond: Bools
    remarks: tuple[str, ...] = ()
    exactness: str = (
        "Sums over the density are exact; those over rows have the standard errors shown."
    )

    display = "PairCheckDisplay"

    def head(self) -> list[str]:
        """Return the sentence before the table."""
        return [
            f"{counted(self.count, 'pair')} of columns, {int(self.beyond.sum()):,} beyond chance"
        ]

    @property
    def count(self) -> int:
        """How many pairs could be compared."""
        return int(np.sum(~np.isnan(self.apart)))

    @property
    def large(self) -> Bools:
        """Which pairs differ beyond chance, and by a dependence of 0.1 or more."""
        return self.beyond & (np.abs(self.difference) >= LARGE)

    def lines(self) -> Mapping[str, Sequence[Any]]:
        """Return a line for each pair."""
        return {
            "first": [self.columns[i] for i in self.first.tolist()],
            "second": [self.columns[i] for i in self.second.tolist()],
            "rows": self.rows.tolist(),
            "density": self.density.tolist(),
            "difference": self.difference.tolist(),
            "se": self.error.tolist(),
            "apart": self.apart.tolist(),
            "beyond chance": self.beyond.tolist(),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the table as what JSON holds; NaN is None."""
        return {**plain(self.lines()), "remarks": plain(self.remarks)}

    def sentence(self, pair: int) -> str:
        """Say how one pair differs."""
        names = f"{self.columns[self.first[pair]]} and {self.columns[self.second[pair]]}"
        rows, density = _short(self.rows[pair]), _short(self.density[pair])
        sizes = f"dependence {rows} in the rows, {density} under the"
        apart = f"{self._in_kind(pair)}{figure(float(self.apart[pair].round(1)))} standard errors"
        return f"{names}: {sizes} density, {apart} apart"

    def _in_kind(self, pair: int) -> str:
        """Say the difference where it is more than that of the two sizes."""
        size = abs(float(self.difference[pair]))
        more = size > IN_KIND * abs(float(self.rows[pair] - self.density[pair])) + 0.01
        return f"which differ in kind by {size:.2f}, " if more else ""

    def sorted_by(self, what: str = "size") -> PairCheck:
        """Return the pairs by "size" of what is beyond chance, or by standard "errors" apart."""
        return self._take(worst_first(what, self.difference, self.apart, self.beyond))

    def _take(self, order: Ints) -> PairCheck:
        return replace(self, **{name: getattr(self, name)[order] for name in _PER_PAIR})


def _short(dependence: float) -> str:
    return f"{round(dependence, 2) + 0.0:.2f}"  # no -0.00


_PER_PAIR = "first", "second", "rows", "density", "difference", "error", "apart", "beyond"


def check_pairs(
    density: Density, rows: CheckedRows, variables: Sequence[int], noise: float
) -> PairCheck:
    """Compare the dependence of all pairs of some columns.

    Cost: two passes over the density's circuit for each group of each column (at most 16),
    and for each pair a pass over the rows.
    """
    encoder = density.encoder_
    scored = {
        v: ScoredColumn.of(encoder.columns_[v], rows.codes[:, v], rows.weight) for v in variables
    }
    tables = _joint_tables(density, scored)
    pairs = [(v, w) for i, v in enumerate(variables) for w in variables[i + 1 :]]
    per_weight = rows.per_weight
    differences = []
    with Progress("pairs", len(pairs)) as progress:
        for v, w in pairs:
            a, b = scored[v], scored[w]
            both = (a.known >= 0) & (b.known >= 0)
            cell = a.known[both] * b.size + b.known[both]
            counts = per_weight * np.bincount(cell, rows.weight[both], a.size * b.size)
            table = counts.reshape(a.size, b.size)
            differences.append(compare_tables(table, tables[v, w], a, b, noise))
            progress.advance()
    in_rows, in_density, difference, error, p = np.array(differences).reshape(-1, 5).T
    position = {v: i for i, v in enumerate(variables)}
    check = PairCheck(
        tuple(encoder.columns_[v].name for v in variables),
        np.array([position[v] for v, _ in pairs], np.int64),
        np.array([position[w] for _, w in pairs], np.int64),
        in_rows,
        in_density,
        difference,
        error,
        standard_errors(p),
        beyond_chance(p),
    )
    return check.sorted_by("size")


def _joint_tables(
    density: Density, scored: Mapping[int, ScoredColumn]
) -> dict[tuple[int, int], Floats]:
    """Return the probability of each combination of groups of each two columns. Exact."""
    whole = group_posteriors(density, [[]], list(scored), "pairs")
    share = {v: column.onto().T @ whole[v][0] for v, column in scored.items()}
    facts = [[(v, column.onto()[:, g])] for v, column in scored.items() for g in range(column.size)]
    posteriors = group_posteriors(density, facts, list(scored), "pairs")
    tables, start = {}, 0
    for v, first in scored.items():
        rows = slice(start, start + first.size)
        start += first.size
        for w, second in scored.items():
            if v < w:
                given = np.nan_to_num(posteriors[w][rows]) @ second.onto()
                tables[v, w] = share[v][:, None] * given
    return tables
