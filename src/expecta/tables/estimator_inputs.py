"""Read what estimators take: tables of any kind, targets, weights and penalties."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import column_or_1d

from expecta.common.arrays import Floats
from expecta.common.errors import DomainError
from expecta.tables.row_reader import with_all_columns
from expecta.tables.table import Table, check_size, read_table

if TYPE_CHECKING:
    from expecta.tables.encoder import Encoder

MAX_TARGET = 1e146  # absolute value: sums of its square by weight are numbers too
MAX_TOTAL_WEIGHT = 1e12  # of all rows: a row of weight 1 beside it is more than rounding


def read_inputs(X: Any, *, coded: bool | None = None) -> Table:
    """Read a table; integers of an array are numbers, unless all are zeros and ones.

    ``coded`` says whether integers are codes, -1 for unknown; None lets the array decide.
    """
    table = read_table(X)
    refuse_infinity(table)
    array = table.array
    if array is None or array.dtype.kind not in "iub":
        return table
    if coded is None:
        check_size(table)
        coded = array.dtype.kind == "b" or bool(np.all((array == 0) | (array == 1)))
    return table if coded else read_table(array.astype(np.float64))


def read_rows(X: Any, encoder: Encoder, name: str = "Encoder") -> Table:
    """Read rows for what learned with an encoder: the same forms for every verb.

    Integers of an array are codes where training had codes. Columns of frames, dicts and records
    are found by name, and those that are absent are unknown (`with_all_columns`); an array has as
    many columns as training had, or the error tells the estimator's ``name``.
    """
    table = read_inputs(encoder.read(X), coded=encoder.source_ == "codes")
    columns = encoder.feature_names_in_.tolist()
    if table.named:
        return with_all_columns(table, columns)
    if len(table.names) != len(columns):
        raise DomainError(
            f"X has {len(table.names)} features, but {name} is expecting {len(columns)} features "
            f"as input"
        )
    return replace(table, names=tuple(columns))


def refuse_infinity(table: Table) -> None:
    """Refuse an infinite number, which is neither known nor unknown."""
    if table.array is not None and table.array.dtype.kind in "iub":
        return
    for position, name in enumerate(table.names):
        numbers = table.column(position).numbers
        if numbers is not None and np.any(np.isinf(numbers)):
            raise DomainError(
                f"column {name!r} has an infinite number (inf) in row "
                f"{int(np.argmax(np.isinf(numbers)))}; use NaN if it is unknown"
            )


def refuse_rounding(table: Table) -> None:
    """Refuse different integers that become the same float."""
    if table.array is not None and table.array.dtype.kind in "fb":
        return
    for position, name in enumerate(table.names):
        if table.column(position).rounded:
            raise DomainError(
                f"column {name!r} has integers beyond 2^53 that become the same float; subtract "
                f"the smallest of them, or leave the column out if it only names rows"
            )


def read_weights(given: npt.ArrayLike | None, rows: int) -> Floats:
    """Read sample weights; none given is one each."""
    if given is None:
        return np.ones(rows)
    try:
        weight = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        weight = np.zeros(0)
    if weight.shape != (rows,) or not np.all(np.isfinite(weight) & (weight >= 0)):
        raise DomainError(f"sample_weight must be {rows} finite numbers of at least 0")
    return weight


def read_training_weights(given: npt.ArrayLike | None, rows: int) -> Floats:
    """Read sample weights to learn with: one at least is above zero, their sum is limited."""
    weight = read_weights(given, rows)
    if rows and not np.any(weight > 0):
        raise DomainError("all weights are zero, so there is nothing to learn from")
    if np.sum(weight / MAX_TOTAL_WEIGHT) > 1.0:
        raise DomainError(
            f"the weights sum to more than {MAX_TOTAL_WEIGHT:g}, and a weight of w counts as w "
            f"rows; divide them by their mean"
        )
    return weight


def read_target(y: Any) -> Floats:
    """Read the targets: finite numbers."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    try:
        given = column_or_1d(y, warn=True)
        if np.asarray(given).dtype.kind in "mM":
            raise TypeError("dates and durations have no unit; divide them by one, such as a day")
        target = np.asarray(given, np.float64)
    except (TypeError, ValueError) as problem:
        raise DomainError(f"y is a column of numbers: {problem}") from None
    if not np.all(np.isfinite(target)):
        raise DomainError(
            "y has unknown or infinite values (NaN or inf); "
            "leave out the rows whose target is missing"
        )
    if np.any(np.abs(target) > MAX_TARGET):
        raise DomainError(
            f"y has numbers beyond {MAX_TARGET:g}; divide it by a constant of that size"
        )
    return target


def check_penalties(given: Any) -> list[float]:
    """Return the penalties to choose from: a finite number above 0, or several."""
    try:
        penalties = [float(p) for p in np.atleast_1d(np.asarray(given, np.float64))]
    except (TypeError, ValueError, OverflowError):
        penalties = []
    if not penalties or not all(0 < p < np.inf for p in penalties):
        raise ValueError(f"penalties are finite numbers above 0, not {given!r:.60}")
    return penalties
