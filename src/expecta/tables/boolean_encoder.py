"""Encode a table as the paper does: a bit for every category and bin that occurs in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from expecta.common.arrays import Ints
from expecta.common.checks import check_integer
from expecta.common.text import suggestion
from expecta.tables.cells import Cells
from expecta.tables.row_reader import with_all_columns
from expecta.tables.scalars import key
from expecta.tables.table import TableTransformer, check_size, find_columns, read_table


class BooleanEncoder(TableTransformer):
    """Turn a table into Booleans, one-hot, as the paper's data sets are.

    The range of a numeric column in training is cut into bins of equal width, and its
    maximum is in a further bin of its own, with everything above. Every bin and every
    category that occurs in training is a bit. The bits of discrete columns come first,
    then those of numeric ones. A value that has no bit leaves those of its column at 0;
    all bits of a missing cell are unknown, -1.

    Prefer `Encoder` unless you need these very bits: with one-hot bits a learned
    distribution can give probability to two categories at once.

    Parameters
    ----------
    discrete
        The discrete columns, in the order of their bits; by default all columns of texts,
        categories and Booleans, in the order of the table.
    n_bins
        Number of bins of equal width.

    Attributes
    ----------
    groups_
        For every bit the number of its column in ``features_``.
    features_
        The columns in the order of their bits.
    cardinalities_
        2 for every bit.

    Examples
    --------
    >>> table = {"age": [20, 30, 40], "smoker": ["no", "yes", "no"]}
    >>> encoder = BooleanEncoder(n_bins=2).fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['smoker = no', 'smoker = yes', '20 <= age < 30', '30 <= age < 40', 'age >= 40']
    >>> encoder.transform({"age": [35, None], "smoker": ["yes", "sometimes"]}).tolist()
    [[0, 1, 0, 1, 0], [0, 0, -1, -1, -1]]
    """

    def __init__(self, *, discrete: Sequence[str] | None = None, n_bins: int = 10) -> None:
        self.discrete = discrete
        self.n_bins = n_bins

    def fit(self, X: Any, y: object = None) -> BooleanEncoder:
        """Learn which bins and categories occur.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        y
            Ignored.

        Returns
        -------
        self
            The same, which has learned.
        """
        table = read_table(X)
        check_size(table)
        check_integer("n_bins", self.n_bins, 1)
        columns = {name: table.column(position) for position, name in enumerate(table.names)}
        discrete = self.discrete
        if discrete is None:
            discrete = [name for name in columns if columns[name].kind in ("category", "boolean")]
        for name in discrete:
            if name not in columns:
                raise ValueError(
                    f"there is no column {name!r}; {suggestion(name, columns, 'the table has')}"
                )
        self.features_ = [*discrete, *(name for name in columns if name not in set(discrete))]
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array(table.names, object)
        self.bits_ = [self._bits(columns[name], name in set(discrete)) for name in self.features_]
        sizes = [len(used) for _, used, _ in self.bits_]
        self.groups_ = np.repeat(np.arange(len(sizes)), sizes)
        self.cardinalities_ = np.full(len(self.groups_), 2, np.int32)
        return self

    def transform(self, X: Any) -> Ints:
        """Return the bits of a table's rows.  # (rows, bits) int8.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        """
        check_is_fitted(self, "bits_")
        table = with_all_columns(read_table(X), self.feature_names_in_.tolist())
        out = np.zeros((table.n_rows, len(self.groups_)), np.int8)
        position = dict(zip(self.feature_names_in_, find_columns(table, self), strict=True))
        for group, name in enumerate(self.features_):
            cells = table.column(position[name])
            levels, used, _ = self.bits_[group]
            numeric = isinstance(levels, np.ndarray)
            values = _bins(cells, levels) if numeric else _categories(cells, levels)
            bits = (values[:, None] == used[None, :]).astype(np.int8)
            bits[values < 0] = -1
            out[:, self.groups_ == group] = bits
        return out

    def get_feature_names_out(self, input_features: object = None) -> npt.NDArray[np.object_]:
        """Return what every bit says.

        Parameters
        ----------
        input_features
            Ignored.
        """
        check_is_fitted(self, "bits_")
        return np.array([name for _, _, names in self.bits_ for name in names], object)

    def _bits(self, cells: Cells, discrete: bool) -> tuple[Any, Ints, list[str]]:
        """Return a column's categories or edges, those that have a bit, and their names."""
        name = cells.name
        if discrete:
            codes, levels = cells.as_levels()
            used = np.unique(codes[codes >= 0])
            index = {key(level): i for i, level in enumerate(levels)}
            return index, used, [f"{name} = {levels[i]}" for i in used.tolist()]
        numbers = cells.as_numbers(cells.kind, cells.zone)
        finite = numbers[np.isfinite(numbers)]
        if not len(finite):
            return np.zeros(1), np.zeros(0, np.int64), []
        edges = np.linspace(np.min(finite), np.max(finite), int(self.n_bins) + 1)
        bins = _bins(cells, edges)
        used = np.unique(bins[bins > 0])
        ends = [f"{edge:.6g}" for edge in edges.tolist()]
        names = [
            f"{name} >= {ends[-1]}" if i == len(edges) else f"{ends[i - 1]} <= {name} < {ends[i]}"
            for i in used.tolist()
        ]
        return edges, used, names


def _bins(cells: Cells, edges: npt.NDArray[Any]) -> Ints:
    """Return the bin of every number: 0 below the range, the last from its maximum on."""
    kind = cells.kind if cells.numbers is not None else "number"
    numbers = cells.as_numbers(kind, cells.zone)
    return np.where(np.isnan(numbers), -1, np.searchsorted(edges, numbers, side="right"))


def _categories(cells: Cells, index: dict[Any, int]) -> Ints:
    """Return the index of every category, one past the last where it is a new one."""
    codes, levels = cells.as_levels()
    table = np.array([*(index.get(key(level), len(index)) for level in levels), -1])
    return table[codes]
