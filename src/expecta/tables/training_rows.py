"""Keep the training rows, so that answers stand beside plain averages of the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.text import number
from expecta.files import schema
from expecta.tables.category_column import CategoryColumn
from expecta.tables.cells import Cells
from expecta.tables.column import Column
from expecta.tables.encoder import Encoder
from expecta.tables.estimator_inputs import MAX_TARGET, read_target, read_training_weights
from expecta.tables.number_column import NumberColumn
from expecta.tables.table import Table, find_columns

Array = npt.NDArray[Any]
LEVEL = 0.95  # confidence of the interval of an average


@dataclass(frozen=True)
class Average:
    """A plain average of the target over training rows, with a 95% interval.

    The interval of a mean is Student's; that of a share is Wilson's, which stays between 0 and 1
    and has a width where all rows agree.
    """

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{number(self.mean)} ({number(self.low)} to {number(self.high)})"


def average_from_sums(
    weight: float,
    weight_squares: float,
    total: float,
    squares: float,
    center: float,
    is_share: bool,
) -> Average:
    """Return an average and its interval by sums over rows: of the weights, their squares, ...

    ... the weighted outcome less a center, and the square of that. Rows of unequal weight count as
    many as there are rows of equal weight that say as much (Kish).
    """
    from scipy.special import ndtri, stdtrit

    size, mean = weight**2 / weight_squares, total / weight
    if is_share:
        share, z = min(max(center + mean, 0.0), 1.0), float(ndtri(0.5 + LEVEL / 2))
        middle = (share + z**2 / (2 * size)) / (1 + z**2 / size)
        half = z * np.sqrt(share * (1 - share) / size + (z / (2 * size)) ** 2) / (1 + z**2 / size)
        low, high = max(0.0, middle - half), min(1.0, middle + half)
        return Average(share, min(low, share), max(high, share))  # to rounding, where all agree
    half = np.nan  # all the weight may be that of one row
    if size > 1.0:
        spread = max(squares / weight - mean**2, 0.0) / (1.0 - 1.0 / size)
        half = float(stdtrit(size - 1.0, 0.5 + LEVEL / 2) * np.sqrt(spread / size))
    return Average(center + mean, center + mean - half, center + mean + half)


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Training rows as they were.

    Attributes
    ----------
    columns
        By column of the encoder: numbers (float64, NaN where unknown; times in
        microseconds), or for all that are not numbers the codes of values (integers, -1
        where unknown).  # (rows,) each
    target
        The target of each row: a number, or the index of its class; None if it was not given.
    weight
        How much each row counted.
    name
        What the target is called.
    """

    columns: tuple[Array, ...]
    target: Floats | None
    weight: Floats
    name: str

    @classmethod
    def from_table(
        cls, table: Table, encoder: Encoder, target: Floats | None, weight: Floats, name: str
    ) -> TrainingRows:
        """Keep a table's columns that an encoder knows, with a target and weights as read."""
        columns = []
        for whole, position in zip(encoder.columns_, find_columns(table, encoder), strict=True):
            column, cells = whole.plain, table.column(position)
            if isinstance(column, NumberColumn):
                columns.append(np.array(cells.as_numbers(column.kind, column.zone), np.float64))
            else:
                columns.append(_narrow(column, column.encode(cells)))
        return cls(tuple(columns), target, np.asarray(weight, np.float64), name)

    @classmethod
    def from_inputs(
        cls,
        table: Table,
        encoder: Encoder,
        y: Any,
        weight: npt.ArrayLike | None,
        classes: Array | None,
    ) -> TrainingRows:
        """Read the target, if it is a column of y, and the weights of a table's rows; keep all."""
        target = None
        if y is not None and np.ndim(y) == 1:
            target = read_target(y) if classes is None else _class_indices(y, classes)
            if len(target) != table.n_rows:
                raise DomainError(f"X has {table.n_rows} rows and y {len(target)}")
        weights = read_training_weights(weight, table.n_rows)
        return cls.from_table(table, encoder, target, weights, target_name(y))

    def to_table(self, encoder: Encoder) -> Table:
        """Return the rows as a table, which can be encoded, asked and matched."""
        pairs = zip(encoder.columns_, self.columns, strict=True)
        columns = tuple(_cells(column.plain, values) for column, values in pairs)
        return Table("dict", tuple(cells.name for cells in columns), len(self), columns)

    def codes(self, column: Column, variable: int) -> Ints:
        """Return the value of each row in a column of the encoder, -1 where it is unknown."""
        return column.encode(_cells(column.plain, self.columns[variable]))

    def __len__(self) -> int:
        return len(self.weight)

    def outcome(self, of_class: int | None) -> Floats | None:
        """Return what averages are of: the target, or whether it is a class."""
        if self.target is None or of_class is None:
            return self.target
        return (self.target == of_class).astype(np.float64)

    def average(self, rows: Bools, of_class: int | None) -> Average | None:
        """Average the target, or the share of a class, over some rows by weight.

        None for fewer than two rows of weight.
        """
        outcome = self.outcome(of_class)
        if outcome is None:
            return None
        weight, value = self.weight[rows], outcome[rows]
        weight, value = weight[weight > 0], value[weight > 0]
        if len(value) < 2:
            return None
        center = float(np.average(value, weights=weight))
        total, squares = (float(weight @ (value - center) ** power) for power in (1, 2))
        sums = float(weight.sum()), float(weight @ weight), total, squares
        return average_from_sums(*sums, center, of_class is not None)

    def missing_share(self, variable: int) -> float:
        """Return the share of the rows, by weight, in which a column is missing."""
        values = self.columns[variable]
        missing = np.isnan(values) if values.dtype == np.float64 else values < 0
        return float(self.weight[missing].sum() / self.weight.sum())

    def class_shares(self, n_classes: int) -> Floats | None:
        """Return the share of each class in the target; None without a target."""
        if self.target is None:
            return None
        counts = np.bincount(self.target.astype(int), self.weight, n_classes)
        return counts / counts.sum()

    @classmethod
    def from_file(
        cls, fields: Mapping[str, Any], encoder: Encoder, n_classes: int | None
    ) -> TrainingRows:
        """Make rows of what a file holds, or raise a DomainError that says what is wrong."""
        weight, target = fields["weight"], fields["target"]
        read_training_weights(weight, len(weight))
        classes = target is not None and n_classes is not None
        if classes and not np.all((target >= 0) & (target < n_classes) & (target % 1 == 0)):
            raise DomainError("the targets of its training rows are not among its classes")
        numbers, codes = iter(fields["numbers"]), iter(fields["codes"])
        columns: list[Array] = []
        for column in (column.plain for column in encoder.columns_):
            is_number = isinstance(column, NumberColumn)
            values = next(numbers if is_number else codes, None)
            if values is None:
                raise DomainError(f"its training rows have no column {column.name!r:.60}")
            if not is_number and np.any(values >= column.cardinality):
                raise DomainError(
                    f"column {column.name!r:.60} of its training rows has no such value"
                )
            columns.append(values if is_number else _narrow(column, values))
        if [*numbers, *codes] or not len(weight):
            raise DomainError("its training rows have other columns than its density, or no rows")
        return cls(tuple(columns), target, weight, fields["name"])


def _file_parts(rows: TrainingRows) -> dict[str, Any]:
    return {
        **vars(rows),
        "numbers": [column for column in rows.columns if column.dtype == np.float64],
        "codes": [column for column in rows.columns if column.dtype != np.float64],
    }


# What they are the values of is known to an encoder: what is read is for TrainingRows.from_file.
TRAINING_ROWS = schema.Record(
    {
        "name": schema.Scalar(str),
        "weight": schema.Array("float64", "rows", low=0),
        "target": schema.Maybe(schema.Array("float64", "rows", low=-MAX_TARGET, high=MAX_TARGET)),
        "numbers": schema.Many(schema.Array("float64", "rows", finite=False)),
        "codes": schema.Many(schema.Array("int32", "rows", low=-1)),
    },
    parts=_file_parts,
)


def _narrow(column: Column, codes: Array) -> Array:
    """Return codes in as few bytes as hold them."""
    return codes.astype(np.min_scalar_type(-max(column.cardinality, 1)))


def target_name(y: Any) -> str:
    """Return what a target is called: the name of a series, if it has one."""
    name = getattr(y, "name", None)
    return name if isinstance(name, str) else "prediction"


def _class_indices(y: Any, classes: Array) -> Floats:
    """Return the index of each label among the classes."""
    labels, which = np.unique(np.asarray(y), return_inverse=True)
    index = {label: i for i, label in enumerate(classes.tolist())}
    for label in labels.tolist():
        if label not in index:
            raise DomainError(f"y has the class {label!r:.60}, which the model does not know")
    return np.array([index[label] for label in labels.tolist()], np.float64)[which.ravel()]


def _cells(column: Column, values: Array) -> Cells:
    """Return the cells of a column as a table has them."""
    if isinstance(column, NumberColumn):
        return Cells(column.name, column.kind, column.dtype, numbers=values, zone=column.zone)
    if isinstance(column, CategoryColumn):
        levels = (*column.values, *column.labels[len(column.values) :])
        return Cells(column.name, column.kind, column.dtype, codes=values, levels=levels)
    kind = "unknown" if column.kind == "unknown" else "integer"
    numbers = np.where(values < 0, np.nan, values.astype(np.float64))
    return Cells(column.name, kind, column.dtype, numbers=numbers)
