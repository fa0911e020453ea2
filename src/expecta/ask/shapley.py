"""Shapley values of the known columns, with the dependence between columns in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import comb

from expecta.ask.populations import table_of
from expecta.ask.printed_answer import PrintedAnswer
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.text import number
from expecta.expected.expected_output import Answer, ExpectedOutput
from expecta.tables.table import Table

if TYPE_CHECKING:
    from expecta.ask.displays import ShapleyDisplay

__all__ = ["Shapley", "shapley"]

ALL = 12  # known columns up to which all coalitions are asked
PAIRS = 8  # of permutations and their reverses, at a time
AT_ONCE = 1 << 16  # coalitions in one batch


@dataclass(frozen=True, eq=False)
class Shapley(PrintedAnswer):
    """What each known column of each row adds to the expected output.

    Attributes
    ----------
    name
        What is predicted.
    columns
        The columns, in the table's order.
    base
        The expected output when nothing is known.
    prediction
        The expected output of each row: the base and the row's values add up to it.  # (rows,)
    values, error
        Shapley value of each column, NaN where it is unknown, and its error.  # (rows, columns)
    known
        What each row has in each column, as text; empty where unknown.
    exact
        Whether all coalitions of a row's columns were asked.  # (rows,)
    """

    name: str
    columns: tuple[str, ...]
    base: float
    prediction: Floats
    values: Floats
    error: Floats
    known: tuple[tuple[str, ...], ...]
    exact: Bools
    exactness: str

    def lines(self) -> dict[str, Any]:
        """Return a line per row and known column, the largest first."""
        rows, places = [], []
        for row, values in enumerate(self.values):
            size = np.where(np.isnan(values), -1.0, np.abs(values))
            order = [
                place for place in np.argsort(-size, kind="stable").tolist() if size[place] >= 0
            ]
            rows += [row] * len(order)
            places += order
        return {
            "row": rows,
            "column": [self.columns[place] for place in places],
            "known": [self.known[row][place] for row, place in zip(rows, places, strict=True)],
            "adds": self.values[rows, places],
            "error": self.error[rows, places],
        }

    def plot(self, ax: Any = None) -> ShapleyDisplay:
        """Draw it, on axes of yours or on new ones; needs matplotlib."""
        from expecta.ask.displays import ShapleyDisplay

        return ShapleyDisplay(self).plot(ax)

    def head(self) -> list[str]:
        """Say what the values add up to."""
        said = [f"{self.name}: {number(self.base)} when nothing is known"]
        if len(self.prediction) == 1:
            said[0] += f", {number(self.prediction[0])} for the row"
        return said

    def notes(self) -> list[str]:
        """Say what is estimated."""
        guessed = int(np.count_nonzero(~self.exact))
        if not guessed:
            return []
        return [
            f"Estimated from permutations of the columns, with standard errors: {guessed} row(s)."
        ]


def shapley(
    subject: ExpectedOutput, rows: Any, seed: int = 0, rtol: float = 0.01, permutations: int = 512
) -> Shapley:
    """Compute conditional Shapley values: how the known columns share the expected output.

    The value of a coalition S is E[f | the columns in S], everything else unknown, as
    ``predict`` has it; so columns share what they tell together. A row's values and the
    base add up to its prediction.

    With up to 12 known columns all coalitions are asked, in batches: the values are as exact
    as means are (``exactness``), at a cost of 2^columns expectations for each row, of which
    equal ones are shared. With more, each column's value is the mean over random orders of
    the columns and their reverses of what it adds when it becomes known, with a standard
    error; orders are drawn until all errors are ``rtol`` times the row's largest value, or
    until there are ``permutations``. ``rows`` is a table, or one row as a mapping.
    """
    table = table_of(subject, rows)
    codes = subject.encoder.codes(table)
    known = codes >= 0
    shape = codes.shape
    values, error = np.full((2, *shape), np.nan)
    size = known.sum(axis=1)
    ask = _Coalitions(subject, table, known)
    for k in np.unique(size[size <= ALL]).tolist():
        some = np.flatnonzero(size == k)
        for part in np.array_split(some, 1 + (len(some) << k) // AT_ONCE):
            _all_coalitions(ask, part, k, values, error, subject.sampled)
    rng = np.random.default_rng(seed)
    for row in np.flatnonzero(size > ALL).tolist():
        places = np.flatnonzero(known[row])
        values[row, places], error[row, places] = _orders(ask, row, places, rng, rtol, permutations)
    prediction, _ = ask(np.arange(len(codes)), known)
    base, _ = ask(np.zeros(min(1, len(codes)), int), np.zeros((min(1, len(codes)), shape[1]), bool))
    labels = [column.labels for column in subject.encoder.columns_]
    shown = tuple(
        tuple(labels[v][code] if code >= 0 else "" for v, code in enumerate(row))
        for row in codes.tolist()
    )
    return Shapley(
        subject.name,
        tuple(subject.columns),
        float(base[0]) if len(base) else np.nan,
        prediction,
        values,
        error,
        shown,
        size <= ALL,
        subject.exactness,
    )


class _Coalitions:
    """The expected output when some of a row's columns are known."""

    def __init__(self, subject: ExpectedOutput, table: Table, known: Bools) -> None:
        self.subject, self.table, self.known = subject, table, known

    def __call__(self, rows: Ints, told: Bools) -> Answer:
        """Ask for rows of which only some columns are told.  # (coalitions, columns)."""
        return self.subject.of_table(self.table, rows, ~told)


def _all_coalitions(
    ask: _Coalitions, rows: Ints, k: int, values: Floats, error: Floats, sampled: bool
) -> None:
    """Set the values of rows with k known columns, from all coalitions of these."""
    if not len(rows):
        return
    masks = np.arange(1 << k)
    member = (masks[:, None] >> np.arange(k)) & 1 == 1  # (coalitions, k)
    places = np.nonzero(ask.known[rows])[1].reshape(len(rows), k)
    told = np.zeros((len(rows), len(masks), ask.known.shape[1]), np.bool_)
    np.put_along_axis(told, np.repeat(places[:, None], len(masks), 1), member[None], axis=2)
    worth, loose = ask(np.repeat(rows, len(masks)), told.reshape(-1, told.shape[-1]))
    worth, loose = worth.reshape(len(rows), -1), loose.reshape(len(rows), -1)
    size = member.sum(axis=1)
    for i in range(k):
        without = masks[~member[:, i]]
        weight = 1.0 / (k * comb(k - 1, size[without]))
        values[rows, places[:, i]] = (worth[:, without | 1 << i] - worth[:, without]) @ weight
        both = np.stack([loose[:, without | 1 << i], loose[:, without]])
        bound = np.sqrt((both**2).sum(axis=0) @ weight**2) if sampled else both.sum(axis=0) @ weight
        error[rows, places[:, i]] = bound


def _orders(
    ask: _Coalitions, row: int, places: Ints, rng: np.random.Generator, rtol: float, most: int
) -> tuple[Floats, Floats]:
    """Estimate the values of one row; an order and its reverse are one observation."""
    k = len(places)
    seen: list[Floats] = []
    while True:
        orders = np.array([rng.permutation(k) for _ in range(PAIRS)])
        orders = np.stack([orders, orders[:, ::-1]], axis=1).reshape(-1, k)
        rank = np.argsort(orders, axis=1)
        member = rank[:, None, :] < np.arange(k + 1)[:, None]  # (orders, k + 1, k)
        told = np.zeros((len(orders) * (k + 1), ask.known.shape[1]), np.bool_)
        told[:, places] = member.reshape(-1, k)
        worth, _ = ask(np.full(len(told), row), told)
        added = np.take_along_axis(np.diff(worth.reshape(len(orders), k + 1), axis=1), rank, axis=1)
        pairs = added.reshape(PAIRS, 2, k).mean(axis=1)
        seen.append(pairs)
        n = PAIRS * len(seen)
        pairs = np.concatenate(seen)
        mean = pairs.mean(axis=0)
        spread = pairs.std(axis=0, ddof=1) / np.sqrt(n)
        if not spread.max() > rtol * np.abs(mean).max() or 2 * n >= most:
            return mean, spread
