"""How the features that a model sees come from the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.readers import frames as raw
from expecta.readers.feature_sources import absent, follow
from expecta.readers.tree_builder import places
from expecta.tables.table import read_table

__all__ = ["Features"]

ROWS = 50  # that functions are tried on


@dataclass(frozen=True, eq=False)
class Features:
    """Features that are functions of one raw column each, computed by the user's transformers.

    Parameters
    ----------
    columns
        Names of the raw columns, in order.
    source
        The raw column of each feature, -1 if it is the same for all rows.  # (features,)
    monotone
        1 if a feature never falls as the raw number grows, -1 if it never rises, 0 if neither
        is known.  # (features,)
    steps
        The fitted transformers, in order.
    rows
        Complete raw rows; the first fills the columns that are not asked about.
    notes
        What a user should know, a sentence each.
    listed
        The categories of features that the model knows by their places in a list.
    marks
        What the user has in place of a missing category, by raw column: None or NaN.
    """

    columns: tuple[str, ...]
    source: Ints
    monotone: Ints
    steps: tuple[Any, ...]
    rows: Any
    notes: tuple[str, ...] = ()
    listed: Mapping[int, Sequence[Any]] = field(default_factory=dict)
    marks: Mapping[int, Any] = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        steps: Sequence[Any],
        rows: Any,
        listed: Mapping[int, Sequence[Any]] | None = None,
        marks: Mapping[int, Any] | None = None,
    ) -> Features:
        """Find out how fitted transformers make features.

        Parameters
        ----------
        steps
            Transformers, in order; see :func:`expecta.readers.unwrap.unwrap`.
        rows
            Some complete training rows: a frame of pandas or polars or an array, as the
            transformers take it. One is enough, but functions of users are tried on several.
        listed, marks
            See above.

        Raises
        ------
        Unreadable
            If a feature comes from several columns.

        >>> from sklearn.preprocessing import StandardScaler
        >>> rows = np.array([[1.0, 20.0], [3.0, 40.0]])
        >>> features = Features.read([StandardScaler().fit(rows)], rows)
        >>> features.source.tolist(), features.monotone.tolist()
        ([0, 1], [1, 1])
        >>> features.values(1, [20.0, 30.0]).tolist()
        [[-1.0], [0.0]]
        """
        if not (raw.is_pandas(rows) or raw.is_polars(rows)):
            rows = np.asarray(rows)
        columns = read_table(rows).names
        if not len(rows):
            raise DomainError("no rows: pass one complete training row or more")
        rows = data = raw.take(rows, np.arange(min(len(rows), ROWS)))
        notes: list[str] = []
        source, sign = np.arange(len(columns)), np.ones(len(columns), np.int64)
        for step in steps:
            links, data = follow(step, data, notes)
            # a feature that comes from none finds -1 at the end
            inputs = np.array([link.input for link in links], np.int64)
            source = np.append(source, -1)[inputs]
            sign = np.append(sign, 1)[inputs] * np.array([link.sign for link in links], np.int64)
        used = tuple(step for step in steps if not absent(step))
        made = cls(columns, source, sign, used, rows, tuple(notes), listed or {}, marks or {})
        made._numbers(data, range(made.n_features))  # complains of a feature that is none
        return made

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return len(self.source)

    def of(self, column: int) -> Ints:
        """Return the features that come from a raw column."""
        return np.flatnonzero(self.source == column)

    def values(self, column: int, values: Any) -> Floats:
        """Return the features of a raw column for some of its values.  # (values, features).

        They are in the order of :meth:`of`. Values are numbers, or what else the column holds.
        """
        own = self.of(column)
        if not len(values) or not len(own):
            return np.zeros((len(values), len(own)))
        if not self.steps:
            alone = raw.column(self.rows, column, raw.marked(values, self.marks.get(column)))
            return self._number(alone, column)[:, None]
        return self._numbers(self._made(self._filled({column: values})), own.tolist())

    def joint(self, values: Mapping[int, Any]) -> Floats:
        """Return all features for values of several raw columns at once.  # (values, features).

        The columns have as many values each. A feature depends on its own column only, so
        this is as if they were asked about one by one, and takes the time of one.
        """
        return self._numbers(self._made(self._filled(values)), range(self.n_features))

    def _filled(self, values: Mapping[int, Any]) -> Any:
        """Return raw rows with these values, and those of the first row in other columns."""
        (size,) = {len(given) for given in values.values()}
        data = raw.take(self.rows, np.zeros(size, np.int64))
        for column, given in values.items():
            data = raw.put(data, column, raw.marked(given, self.marks.get(column)))
        return data

    def __call__(self, X: Any) -> Floats:
        """Return all features of complete rows.  # (rows, features)."""
        return self._numbers(self._made(X), range(self.n_features))

    def _numbers(self, data: Any, features: Sequence[int]) -> Floats:
        """Return some features as the numbers that the model computes with."""
        if not self.listed:
            return raw.numbers(data, list(features))
        return np.stack([self._number(raw.pick(data, [j], flat=True), j) for j in features], axis=1)

    def _number(self, column: Any, feature: int) -> Floats:
        if feature in self.listed:
            return places(column.tolist(), self.listed[feature])
        return raw.numbers(column)[:, 0]

    def _made(self, data: Any) -> Any:
        for step in self.steps:
            data = raw.transformed(step, data)
        return data
