"""Find out what a FunctionTransformer does: known for some functions, tried on rows for others."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

from expecta.common.arrays import Bools
from expecta.readers import Unreadable, frames

# Those that never fall, wherever they are defined.
GROWING = frozenset(
    {np.log, np.log2, np.log10, np.log1p, np.exp, np.exp2, np.expm1, np.sqrt, np.cbrt}
    | {np.sinh, np.tanh, np.arcsinh, np.arctan, np.arcsin, np.arctanh, np.arccosh}
    | {np.floor, np.ceil, np.trunc, np.rint, np.sign, np.positive, np.deg2rad, np.rad2deg}
    | {special.expit, special.logit, special.log_expit, special.ndtr, special.ndtri}
    | {special.erf, special.log1p, special.expm1, special.cbrt, special.exp2, special.exp10}
)
FALLING = frozenset({np.negative, np.arccos, special.erfc})


def function_signs(step: Any, data: Any, tried: list[str]) -> list[int]:
    """Return a sign for each output of a FunctionTransformer.

    With one input all outputs come from it. With several, each comes from the input at its
    position. A function that is not known to be like that is tried on the rows, and added to
    what was ``tried``: a trial can refute it but not prove it.
    """
    width, function = frames.width(data), step.func
    if function is None:
        return [1] * width
    if _is_library_ufunc(function) and function.nin == function.nout == 1 and not step.kw_args:
        return [int(function in GROWING) - int(function in FALLING)] * width
    name = getattr(function, "__name__", type(function).__name__)
    try:
        outputs = _tried(step, data, name)
    except Unreadable:
        raise
    except Exception as problem:
        raise Unreadable(
            f"the function {name!r} of a FunctionTransformer cannot be tried on single rows "
            f"({problem}); sampling is used instead"
        ) from problem
    tried.append(
        f"the function {name!r} of a FunctionTransformer is taken to treat each row"
        + (" and each column" if width > 1 else "")
        + " by itself"
    )
    return [0] * outputs.shape[1]


def _is_library_ufunc(function: Any) -> bool:
    """Whether a function treats each number by itself, and is not made of somebody's own."""
    return isinstance(function, np.ufunc) and function.types != ["O->O"]  # np.frompyfunc


def _tried(step: Any, data: Any, name: str) -> npt.NDArray[np.str_]:
    """Return the outputs, if those of a row depend on nothing but their input in that row."""
    rows, width = int(data.shape[0]), frames.width(data)
    if rows < 2:
        raise Unreadable(
            f"the function {name!r} of a FunctionTransformer can be anything; pass two or more "
            f"training rows, so that it is tried on them"
        )
    order = np.arange(rows)
    together = _cells(frames.transformed(step, data))
    apart = [
        _cells(frames.transformed(step, frames.take(data, part))) for part in (order[:1], order[1:])
    ]
    if not np.all(_equal(np.concatenate(apart), together)):
        raise Unreadable(
            f"the function {name!r} of a FunctionTransformer computes a row from other rows; "
            f"sampling is used instead"
        )
    if width == 1:
        return together
    if together.shape[1] != width:
        raise _mixed(name)
    moved = frames.take(data, np.roll(order, 1))
    for j in range(width):
        other = frames.put(data, j, frames.pick(moved, [j], flat=True))
        same = _equal(_cells(frames.transformed(step, other)), together).all(axis=0)
        if not np.all(np.delete(same, j)):
            raise _mixed(name)
    return together


def _mixed(name: str) -> Unreadable:
    return Unreadable(
        f"the function {name!r} of a FunctionTransformer mixes columns; sampling is used instead"
    )


def _cells(output: Any) -> npt.NDArray[Any]:
    """Return an output as an array, of numbers where it can be, else of text."""
    output = output.toarray() if sparse.issparse(output) else output
    try:
        return frames.numbers(output)
    except Unreadable:
        cells = np.asarray(output, dtype=object).reshape(len(output), -1)
        return np.array([[repr(cell) for cell in row] for row in cells.tolist()], dtype=np.str_)


def _equal(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> Bools:
    if a.dtype.kind == b.dtype.kind == "f":
        return np.asarray(np.isclose(a, b, rtol=1e-12, atol=0.0, equal_nan=True), np.bool_)
    return np.asarray(a == b, np.bool_)
