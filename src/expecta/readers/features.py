"""Compute the features that a model sees, each from one raw column of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.readers import frames
from expecta.readers.feature_sources import does_nothing, follow_all
from expecta.readers.forms import Categories
from expecta.readers.tree_builder import category_positions
from expecta.tables.table import read_table

MAX_ROWS = 500  # that functions of users are tried on


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
    tried
        What was tried on rows and is not known from the transformers' code, a reason each.
    categories
        The categories of features that the model sees as positions in these lists.
    marks
        What the user has in place of a missing category, by raw column: None or NaN.
    """

    columns: tuple[str, ...]
    source: Ints
    monotone: Ints
    steps: tuple[Any, ...]
    rows: Any
    tried: tuple[str, ...] = ()
    categories: Categories = field(default_factory=dict)
    marks: Mapping[int, Any] = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        steps: Sequence[Any],
        rows: Any,
        categories: Categories | None = None,
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
        categories, marks
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
        if not (frames.is_pandas(rows) or frames.is_polars(rows)):
            rows = np.asarray(rows)
        columns = read_table(rows).names
        if not len(rows):
            raise DomainError("no rows: pass one complete training row or more")
        rows = data = frames.take(rows, np.arange(min(len(rows), MAX_ROWS)))
        tried: list[str] = []
        sources, data = follow_all(steps, data, tried)
        made = cls(
            columns,
            np.array([source.input for source in sources], np.int64),
            np.array([source.sign for source in sources], np.int64),
            tuple(step for step in steps if not does_nothing(step)),
            rows,
            tuple(tried),
            categories or {},
            marks or {},
        )
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
        """Return the features of a raw column for given values of it.  # (values, features).

        They are in the order of :meth:`of`. Values are numbers, or what else the column holds.
        """
        features = self.of(column)
        if not len(values) or not len(features):
            return np.zeros((len(values), len(features)))
        values = frames.marked(values, self.marks.get(column))
        if not self.steps:
            return self._number(frames.column(self.rows, column, values), column)[:, None]
        # the other columns have the values of the first row
        data = frames.take(self.rows, np.zeros(len(values), np.int64))
        return self._numbers(self._transformed(frames.put(data, column, values)), features.tolist())

    def __call__(self, X: Any) -> Floats:
        """Return all features of complete rows.  # (rows, features)."""
        return self._numbers(self._transformed(X), range(self.n_features))

    def _numbers(self, data: Any, features: Sequence[int]) -> Floats:
        """Return features as the numbers that the model computes with."""
        if not self.categories:
            return frames.numbers(data, list(features))
        columns = [self._number(frames.pick(data, [j], flat=True), j) for j in features]
        return np.stack(columns, axis=1)

    def _number(self, column: Any, feature: int) -> Floats:
        if feature in self.categories:
            return category_positions(column.tolist(), self.categories[feature])
        return frames.numbers(column)[:, 0]

    def _transformed(self, data: Any) -> Any:
        for step in self.steps:
            data = frames.transformed(step, data)
        return data
