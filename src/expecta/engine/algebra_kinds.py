"""Compile one walk for all algebras: which it is, is a number that each layer looks at.

The control flow of the walk and the probabilities under p are the same in every algebra, and take
most of the time to compile. So they are compiled once, and branch once for each layer of a vtree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from expecta.common.arrays import Bools, Floats
from expecta.common.kernels import plain_helper
from expecta.engine.algebras.algebra_operations import width
from expecta.engine.algebras.expectation_algebra import Expectation
from expecta.engine.algebras.exponential_algebra import Exponential
from expecta.engine.algebras.extremes_algebra import Extremes
from expecta.engine.algebras.moments_algebra import Moments
from expecta.engine.algebras.spectrum_algebra import Spectrum
from expecta.engine.operands import Operands, Room
from expecta.engine.pair_states import states_of_layer, states_of_node
from expecta.engine.probabilities import Children

EXPECTATION, MOMENTS, SPECTRUM, EXTREMES, EXPONENTIAL = range(5)
CODES = {
    Expectation: EXPECTATION,
    Moments: MOMENTS,
    Spectrum: SPECTRUM,
    Extremes: EXTREMES,
    Exponential: EXPONENTIAL,
}


class AlgebraKind(NamedTuple):
    """An algebra as numbers: of the same type for all of them."""

    code: int
    width: int
    order: int  # of moments; else 1
    channels: int  # or outputs

    @classmethod
    def of(cls, algebra: Any) -> AlgebraKind:
        """Describe an algebra, whose last field is the number of channels."""
        order = algebra.order if isinstance(algebra, Moments) else 1
        return cls(CODES[type(algebra)], width(algebra), order, algebra[-1])


@plain_helper
def leaf_states(
    kind: AlgebraKind,
    pair: Operands,
    v: int,
    n: int,
    next_pair: int,
    possible: Bools,
    z: Floats,
    room: Room,
    lanes: int,
) -> int:
    """Compute the pairs of a leaf's node in the algebra of this kind; see `states_of_node`."""
    k, c = kind.code, kind.channels
    if k == EXPECTATION:
        return states_of_node(Expectation(c), pair, v, n, next_pair, possible, z, room, lanes)
    if k == MOMENTS:
        moments = Moments(kind.order, c)
        return states_of_node(moments, pair, v, n, next_pair, possible, z, room, lanes)
    if k == SPECTRUM:
        return states_of_node(Spectrum(c), pair, v, n, next_pair, possible, z, room, lanes)
    if k == EXTREMES:
        return states_of_node(Extremes(c), pair, v, n, next_pair, possible, z, room, lanes)
    return states_of_node(Exponential(c), pair, v, n, next_pair, possible, z, room, lanes)


@plain_helper
def inner_states(
    kind: AlgebraKind,
    pair: Operands,
    v: int,
    z: Floats,
    children: Children,
    room: Room,
    scaled: bool,
    lanes: int,
) -> None:
    """Compute the pairs of an inner layer in the algebra of this kind; see `states_of_layer`."""
    k, c = kind.code, kind.channels
    if k == EXPECTATION and lanes == 1:  # a literal: compiled without loops over lanes
        states_of_layer(Expectation(c), pair, v, z, children, room, scaled, 1)
    elif k == EXPECTATION:
        states_of_layer(Expectation(c), pair, v, z, children, room, scaled, lanes)
    elif k == MOMENTS:
        states_of_layer(Moments(kind.order, c), pair, v, z, children, room, scaled, lanes)
    elif k == SPECTRUM:
        states_of_layer(Spectrum(c), pair, v, z, children, room, scaled, lanes)
    elif k == EXTREMES:
        states_of_layer(Extremes(c), pair, v, z, children, room, scaled, lanes)
    else:
        states_of_layer(Exponential(c), pair, v, z, children, room, scaled, lanes)
