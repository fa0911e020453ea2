"""Compute a tile of a matrix product: four sums of eight lanes each, kept in registers."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from expecta.common.arrays import Floats

DOWN, ACROSS = 4, 8  # sums, and lanes of each
_LANES = ir.VectorType(ir.DoubleType(), ACROSS)
_FIRST = ir.Constant(ir.VectorType(ir.IntType(32), ACROSS), None)


@intrinsic  # type: ignore[untyped-decorator]
def _tile(
    _context: Any,
    z: Any,
    out: Any,
    out_step: Any,
    x: Any,
    x_step: Any,
    theta: Any,
    first: Any,
    step: Any,
    terms: Any,
) -> Any:
    """Set z[out + k out_step] to Σ_a θ[first + k step + a] z[x + a x_step], k = 0 .. 3.

    Written in LLVM's own terms: places of one array may overlap for all that a compiler
    knows, so that from loops it makes code that stores a sum after every few terms. Three
    times as fast; every lane adds in the order of the terms.
    """
    whole = types.int64
    signature = types.void(z, whole, whole, whole, whole, theta, whole, whole, whole)

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        z_at, theta_at = (
            context.make_array(signature.args[k])(context, builder, given[k]).data for k in (0, 5)
        )
        out, out_step, x, x_step, _, first, step, terms = given[1:]

        def times(k: int, step: Any) -> Any:
            return builder.mul(step, ir.Constant(step.type, k))

        def lanes(at: Any) -> Any:
            return builder.bitcast(builder.gep(z_at, [at]), _LANES.as_pointer())

        zero = ir.Constant(_LANES, None)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(DOWN)]
        for total in sums:
            builder.store(zero, total)
        with cgutils.for_range(builder, terms) as loop:
            factor = builder.load(lanes(builder.add(x, builder.mul(loop.index, x_step))), align=8)
            edge = builder.add(first, loop.index)
            for k, total in enumerate(sums):
                weight = builder.load(builder.gep(theta_at, [builder.add(edge, times(k, step))]))
                one = builder.insert_element(zero, weight, ir.Constant(ir.IntType(32), 0))
                product = builder.fmul(builder.shuffle_vector(one, zero, _FIRST), factor)
                builder.store(builder.fadd(builder.load(total), product), total)
        for k, total in enumerate(sums):
            to = lanes(builder.add(out, times(k, out_step)))
            builder.store(builder.load(total), to, align=8)
        return context.get_dummy_value()

    return signature, generate


def _tile_in_python(
    z: Floats,
    out: int,
    out_step: int,
    x: int,
    x_step: int,
    theta: Floats,
    first: int,
    step: int,
    terms: int,
) -> None:
    for k in range(DOWN):
        sums = np.zeros(ACROSS)
        for a in range(terms):
            at = x + a * x_step
            sums += theta[first + k * step + a] * z[at : at + ACROSS]
        z[out + k * out_step : out + k * out_step + ACROSS] = sums


tile = _tile_in_python if config.DISABLE_JIT else _tile
