"""Where everything goes: rows of items, and channels of wires between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from expecta.circuits.drawing.diagram import Diagram, Item, Wire
from expecta.circuits.drawing.order import ordered_rows
from expecta.circuits.drawing.route import Net, Route, clear, routed
from expecta.circuits.drawing.shapes import Box, Shape, shape_of

__all__ = ["Layout", "Spot", "lay_out", "nearest_in_order"]

GAP = 10.0  # between neighbours of a row that enter the same gate
WIDE_GAP = 22.0  # and between those that do not
STUB = 14.0  # the wire that leaves the root
DECIMALS = 3  # of an x, so that those meant to be equal are
SWEEPS = 40
LAST_SWEEPS = 20
STIFFNESS = 100.0  # how far a straight wire may be pulled before it gives way


@dataclass(frozen=True)
class Spot:
    """An item in its place: ``x`` and ``top`` are where its output leaves."""

    item: Item
    shape: Shape
    x: float
    top: float

    @property
    def box(self) -> Box:
        """All the room that the item takes, its labels included."""
        return Box.around(self.x, self.top, self.shape.width, self.shape.height)


@dataclass(frozen=True)
class Layout:
    """Spots in the order of the diagram's items, and the routes of the wires."""

    spots: list[Spot]
    routes: list[Route]
    width: float
    height: float


def lay_out(diagram: Diagram) -> Layout:
    """Place a diagram, its root on top, from the point (0, 0) rightwards and downwards."""
    rows = ordered_rows(diagram)
    inputs = _inputs(diagram, rows)
    shapes = [
        shape_of(item, [wire.label for wire in wires])
        for item, wires in zip(diagram.items, inputs, strict=True)
    ]
    x = _columns(rows, inputs, shapes)
    top = [0.0] * len(diagram.items)
    routes: list[Route] = []
    y = STUB
    for row in rows:
        # Outputs are level along a row; the channel below begins where the tallest ends.
        for item in row:
            top[item] = y
        y += max(shapes[item].height for item in row)
        sources = {wire.source: x[wire.source] for item in row for wire in inputs[item]}
        ends: dict[int, list[tuple[float, float]]] = {source: [] for source in sources}
        for item in row:
            own = [sources[wire.source] for wire in inputs[item]]
            shape = shapes[item] = shapes[item].shifted(
                [
                    clear(x[item] + port, source, sources.values()) - x[item] - port
                    for port, source in zip(shapes[item].ports, own, strict=False)
                ]
            )
            for wire, port in zip(inputs[item], shape.ports, strict=False):
                end = round(x[item] + port, DECIMALS), top[item] + shape.foot
                ends[wire.source].append(end)
        if ends:
            found, height = routed([Net(sources[s], tuple(e)) for s, e in ends.items()], y)
            routes += found
            y += height
    spots = [
        Spot(item, shape, x_of_item, top_of_item)
        for item, shape, x_of_item, top_of_item in zip(diagram.items, shapes, x, top, strict=True)
    ]
    return Layout(spots, routes, max(spot.box.right for spot in spots), y)


def _inputs(diagram: Diagram, rows: Sequence[Sequence[int]]) -> list[list[Wire]]:
    """List the wires into each item from left to right.

    An AND gate's left input stays on the left; an OR gate takes its inputs as they come.
    """
    position = {item: i for row in rows for i, item in enumerate(row)}
    inputs: list[list[Wire]] = [[] for _ in diagram.items]
    for wire in diagram.wires:
        inputs[wire.target].append(wire)
    for item, wires in zip(diagram.items, inputs, strict=True):
        if item.kind == "and":
            wires.sort(key=lambda wire: wire.port)
        else:
            wires.sort(key=lambda wire: position[wire.source])
    return inputs


def _columns(
    rows: Sequence[Sequence[int]], inputs: Sequence[Sequence[Wire]], shapes: Sequence[Shape]
) -> list[float]:
    """Choose the x of every item: wires as upright as the order within rows allows.

    Row after row, up and down, each row takes the places that minimise the squares of its
    wires' sideways runs while the other rows stand still. Squares balance a picture but
    bend every wire a little; the last sweeps make almost straight wires quite straight,
    by giving those weight.
    """
    x = [0.0] * len(shapes)
    # For each item its neighbours, and how far from their x its own would be upright.
    above: list[list[tuple[int, float]]] = [[] for _ in shapes]
    below: list[list[tuple[int, float]]] = [[] for _ in shapes]
    for target, wires in enumerate(inputs):
        for wire, port in zip(wires, shapes[target].ports, strict=False):
            above[wire.source].append((target, port))
            below[target].append((wire.source, -port))
    apart = [
        [
            (shapes[a].width + shapes[b].width) / 2 + (GAP if _siblings(above, a, b) else WIDE_GAP)
            for a, b in pairwise(row)
        ]
        for row in rows
    ]
    for row, distances in zip(rows, apart, strict=True):
        for (before, item), distance in zip(pairwise(row), distances, strict=True):
            x[item] = x[before] + distance

    def settle(
        number: int, stiffness: float, *sides: Sequence[Sequence[tuple[int, float]]]
    ) -> None:
        wished, weights = [], []
        for item in rows[number]:
            pulls = [x[other] + shift for side in sides for other, shift in side[item]]
            strengths = [1.0 + stiffness / (1.0 + abs(pull - x[item])) for pull in pulls]
            weight = sum(strengths)
            total = sum(pull * strength for pull, strength in zip(pulls, strengths, strict=True))
            wished.append(total / weight if pulls else x[item])
            weights.append(weight if pulls else 1e-6)
        places = nearest_in_order(wished, weights, apart[number])
        for item, place in zip(rows[number], places, strict=True):
            x[item] = place

    downwards = range(len(rows))
    for number in reversed(downwards):
        settle(number, 0.0, below)
    for sweep in range(SWEEPS + LAST_SWEEPS):
        stiffness = STIFFNESS if sweep >= SWEEPS else 0.0
        for number in downwards if sweep % 2 == 0 else reversed(downwards):
            settle(number, stiffness, above, below)
    left = min(place - shape.width / 2 for place, shape in zip(x, shapes, strict=True))
    return [round(place - left, DECIMALS) for place in x]


def _siblings(above: Sequence[Sequence[tuple[int, float]]], one: int, other: int) -> bool:
    return not {gate for gate, _ in above[one]}.isdisjoint(gate for gate, _ in above[other])


def nearest_in_order(
    wished: Sequence[float], weights: Sequence[float], apart: Sequence[float]
) -> list[float]:
    """Return the places nearest to those wished for, each ``apart`` from the one before.

    Weighted least squares; after taking the distances off, it is isotonic regression,
    which pooling neighbours that violate the order solves exactly.

    >>> nearest_in_order([0.0, 0.0, 9.0], [1.0, 1.0, 1.0], [4.0, 4.0])
    [-2.0, 2.0, 9.0]
    """
    offsets = [0.0]
    for distance in apart:
        offsets.append(offsets[-1] + distance)
    pools: list[tuple[float, float, int]] = []  # (mean, weight, how many places)
    for wish, weight, offset in zip(wished, weights, offsets, strict=True):
        mean, total, size = wish - offset, weight, 1
        while pools and pools[-1][0] > mean:
            other, other_total, other_size = pools.pop()
            mean = (mean * total + other * other_total) / (total + other_total)
            total, size = total + other_total, size + other_size
        pools.append((mean, total, size))
    means = [mean for mean, _, size in pools for _ in range(size)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]
