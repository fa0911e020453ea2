"""Hold what a walk reads, and where in memory it writes."""

from __future__ import annotations

from typing import NamedTuple

from expecta.common.arrays import Floats
from expecta.engine.layers import Layers, WeightedLayers
from expecta.engine.pairing import Pairing


class Operands(NamedTuple):
    """A compiled pair, and g's parameters as an algebra reads them."""

    p: WeightedLayers
    g: Layers
    constants: Floats  # (edges of g, ...)
    pairs: Pairing


class Room(NamedTuple):
    """Where in a thread's memory a layer and the vectors it is computed with begin."""

    out: int
    elements: int
    halves: int
    small: int
