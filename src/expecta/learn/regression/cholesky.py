"""Factor and invert symmetric matrices with LAPACK, without holding other threads up.

SciPy's wrappers keep Python's lock and copy matrices by rows. These take matrices by rows, of which
only the upper triangle counts, and work in place: what is an upper triangle by rows is a lower one
by columns, as LAPACK has it.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from expecta.common.arrays import Floats

LOWER, NO = ctypes.c_char_p(b"L"), ctypes.c_char_p(b"N")


@lru_cache
def _routine(name: str) -> Any:
    """Return a routine of the LAPACK that SciPy has: it takes pointers only."""
    from scipy.linalg import cython_lapack

    capsule, api = cython_lapack.__pyx_capi__[name], ctypes.pythonapi
    get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    return ctypes.CFUNCTYPE(None)(get_pointer(capsule, get_name(capsule)))


def _size(matrix: Floats) -> tuple[Any, Any, Any]:
    """Return the number of rows, the matrix, and where LAPACK says what failed."""
    return ctypes.byref(ctypes.c_int(len(matrix))), _pointer(matrix), ctypes.c_int(0)


def _pointer(array: Floats) -> Any:
    """Return where an array of doubles is; one that is not contiguous by rows is refused."""
    return ctypes.byref(ctypes.c_double.from_buffer(array.data))


def factor(matrix: Floats) -> Floats:
    """Replace a matrix by U, UᵀU = matrix; its lower triangle stays what it is. Cost: n³/3."""
    n, numbers, failed = _size(matrix)
    _routine("dpotrf")(LOWER, n, numbers, n, ctypes.byref(failed))
    if failed.value:
        raise np.linalg.LinAlgError("a matrix that should be positive definite is not")
    return matrix


def invert_root(upper: Floats) -> Floats:
    """Replace U by U⁻¹; its lower triangle stays what it is. Cost: n³/3."""
    n, numbers, failed = _size(upper)
    _routine("dtrtri")(LOWER, NO, n, numbers, n, ctypes.byref(failed))
    return upper


def invert_factored(upper: Floats) -> Floats:
    """Replace U by the upper triangle of (UᵀU)⁻¹. Cost: 2n³/3."""
    n, numbers, failed = _size(upper)
    _routine("dpotri")(LOWER, n, numbers, n, ctypes.byref(failed))
    return upper
