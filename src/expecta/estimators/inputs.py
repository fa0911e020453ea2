"""What estimators take: tables of any kind, as scikit-learn's users pass them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.arrays import Floats
from expecta.encoding.tables import Table, check_size, read_table
from expecta.encoding.weights import weights_for
from expecta.errors import DomainError

__all__ = ["read", "refuse_infinity", "row_weights"]


def read(X: Any, *, coded: bool | None = None) -> Table:  # noqa: ANN401
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


def refuse_infinity(table: Table) -> None:
    """Complain of a number that is infinite: it is neither known nor unknown."""
    if table.array is not None and table.array.dtype.kind in "iub":
        return
    for place, name in enumerate(table.names):
        numbers = table.column(place).numbers
        if numbers is not None and np.any(np.isinf(numbers)):
            raise DomainError(
                f"column {name!r} has an infinite number (inf) in row "
                f"{int(np.argmax(np.isinf(numbers)))}; use NaN if it is unknown"
            )


def row_weights(given: npt.ArrayLike | None, rows: int) -> Floats:
    """Read sample weights, of which one at least is above zero."""
    weight = weights_for(given, rows)
    if rows and not np.any(weight > 0):
        raise DomainError("the weight of every row is zero, so there is nothing to learn from")
    return weight
