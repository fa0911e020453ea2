"""Define array types, and the one way an array becomes immutable."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from expecta.common.errors import StructureError

Ints: TypeAlias = npt.NDArray[np.integer[Any]]
Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Bools: TypeAlias = npt.NDArray[np.bool_]
Complexes: TypeAlias = npt.NDArray[np.complexfloating[Any, Any]]


def frozen(values: npt.ArrayLike, dtype: npt.DTypeLike, ndim: int, name: str) -> npt.NDArray[Any]:
    """Copy to a contiguous, read-only array of the given type; refuse what does not fit."""
    array = np.asarray(values)
    if array.ndim != ndim:
        raise StructureError(f"{name} must have {ndim} dimension(s), not {array.ndim}")
    kinds = "iub" if np.issubdtype(dtype, np.integer) else "iubf"
    if array.size and array.dtype.kind not in kinds:
        raise StructureError(f"{name} cannot hold values of type {array.dtype}")
    if array.size and np.issubdtype(dtype, np.integer):
        limits = np.iinfo(np.dtype(dtype))
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise StructureError(f"{name} holds a number that is out of range")
    out = np.array(array, dtype=dtype, order="C", copy=True)
    out.setflags(write=False)
    return out


def within(values: Ints, low: Ints | int, high: Ints | int) -> bool:
    """Whether ``low <= values < high`` everywhere."""
    return bool(np.all((values >= low) & (values < high)))
