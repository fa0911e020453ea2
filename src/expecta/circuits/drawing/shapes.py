"""How large things are: gates with their labels, literals, tables.

A shape includes every label that belongs to its item, each in a slot of its own, so
that labels cannot meet gates or other labels wherever the shapes are put.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from expecta.circuits.drawing.diagram import Alternative, Item
from expecta.circuits.drawing.labels import text_width
from expecta.circuits.drawing.route import NEAR

__all__ = ["Box", "Label", "Shape", "shape_of", "table_lines"]

GATE_WIDTH = 36.0
GATE_HEIGHT = 30.0
AND_PORT = 9.0  # distance of an AND gate's two inputs from its middle
LABEL_SIZE = 11.0
LABEL_HEIGHT = 14.0
LABEL_GAP = 10.0  # wire between an OR gate and the labels below it
LITERAL_SIZE = 12.0
LITERAL_HEIGHT = 21.0
LITERAL_GAP = 6.0  # wire between a label and the literal below it
TABLE_LINE = 15.0
TABLE_LENGTH = 10  # lines of a table before it is cut short


@dataclass(frozen=True)
class Box:
    """A rectangle; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, x: float, top: float, width: float, height: float) -> Box:
        """Make the box whose upper edge has its middle at ``x``."""
        return cls(x - width / 2, top, x + width / 2, top + height)

    @property
    def middle(self) -> tuple[float, float]:
        """The centre."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def overlaps(self, other: Box) -> bool:
        """Whether two boxes share more than an edge."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def moved(self, x: float, y: float) -> Box:
        """Return the box at another place."""
        return Box(self.left + x, self.top + y, self.right + x, self.bottom + y)


@dataclass(frozen=True)
class Label:
    """A text and the room kept for it."""

    text: str
    box: Box


@dataclass(frozen=True)
class Shape:
    """The size of an item, relative to the middle of its upper edge, where its output is.

    ``parameters`` and ``literals`` are the texts to draw; ``gate`` is the gate among
    them, if there is one; wires come in at the ``ports``, at the height ``foot``.
    """

    width: float
    height: float
    gate: Box | None = None
    ports: tuple[float, ...] = ()
    foot: float = 0.0
    parameters: tuple[Label, ...] = ()
    literals: tuple[Label, ...] = ()

    def shifted(self, shifts: Sequence[float]) -> Shape:
        """Return the shape with its ports, and the labels above them, shifted sideways."""
        if not shifts:
            return self
        return replace(
            self,
            ports=tuple(port + by for port, by in zip(self.ports, shifts, strict=True)),
            parameters=tuple(
                Label(label.text, label.box.moved(by, 0.0))
                for label, by in zip(self.parameters, shifts, strict=False)
            ),
        )


def shape_of(item: Item, labels: Sequence[str]) -> Shape:
    """Size an item up; ``labels`` are those of its inputs, from left to right."""
    if item.kind == "and":
        gate = Box.around(0.0, 0.0, GATE_WIDTH, GATE_HEIGHT)
        return Shape(GATE_WIDTH, GATE_HEIGHT, gate, (-AND_PORT, AND_PORT), GATE_HEIGHT)
    if item.kind == "or":
        return _fan([Alternative("", label) for label in labels])
    if item.kind == "values":
        return _fan(item.choices)
    if item.kind == "literal":
        return _literal(item.choices[0])
    lines = table_lines(item)
    width = max(text_width(f"{value}  {parameter}", LABEL_SIZE) for value, parameter in lines)
    width = max(width + 24, text_width(item.variable, LITERAL_SIZE) + 16)
    return Shape(width, LITERAL_HEIGHT + TABLE_LINE * len(lines) + 4)


def table_lines(item: Item) -> list[tuple[str, str]]:
    """Return the lines of a leaf's table: values and parameters, cut short when too many."""
    lines = [(choice.literal, choice.parameter) for choice in item.choices]
    if len(lines) > TABLE_LENGTH:
        more = len(lines) - TABLE_LENGTH + 1
        lines[TABLE_LENGTH - 1 :] = [("…", f"{more} more")]
    return lines


def _fan(choices: Sequence[Alternative]) -> Shape:
    """Size an OR gate up, with a slot below it for each input: its label, and its literal."""
    at_leaf = bool(choices[0].literal)
    # Wires from below may be shifted by NEAR to either side, and take their labels along.
    margin = 6.0 if at_leaf else 2 * NEAR
    slots = [max(_label_width(c.parameter), _literal_width(c.literal)) + margin for c in choices]
    width = max(GATE_WIDTH, sum(slots))
    x = -sum(slots) / 2
    ports = []
    for slot in slots:
        ports.append(x + slot / 2)
        x += slot
    # The gate reaches over its inputs, so that all of them enter it from right below.
    gate_width = max(GATE_WIDTH, ports[-1] - ports[0] + 20)
    label_top = GATE_HEIGHT + LABEL_GAP
    foot = label_top + LABEL_HEIGHT
    literal_top = foot + LITERAL_GAP
    return Shape(
        width=max(width, gate_width),
        height=literal_top + LITERAL_HEIGHT if at_leaf else foot,
        gate=Box.around(0.0, 0.0, gate_width, GATE_HEIGHT),
        ports=tuple(ports),
        foot=foot,
        parameters=tuple(
            _parameter(c.parameter, port, label_top) for c, port in zip(choices, ports, strict=True)
        ),
        literals=tuple(
            Label(c.literal, _literal_box(c.literal, port, literal_top))
            for c, port in zip(choices, ports, strict=True)
            if at_leaf
        ),
    )


def _literal(choice: Alternative) -> Shape:
    """Size a literal up, with its parameter, if it has one to show, on the wire above it."""
    top = 0.0
    parameters: tuple[Label, ...] = ()
    if choice.parameter:
        parameters = (_parameter(choice.parameter, 0.0, LITERAL_GAP),)
        top = LITERAL_GAP + LABEL_HEIGHT + LITERAL_GAP
    box = _literal_box(choice.literal, 0.0, top)
    width = max(box.right - box.left, _label_width(choice.parameter))
    literals = (Label(choice.literal, box),)
    return Shape(width, top + LITERAL_HEIGHT, parameters=parameters, literals=literals)


def _label_width(text: str) -> float:
    return text_width(text, LABEL_SIZE)


def _literal_width(text: str) -> float:
    return text_width(text, LITERAL_SIZE) + 12 if text else 0.0


def _parameter(text: str, x: float, top: float) -> Label:
    return Label(text, Box.around(x, top, _label_width(text), LABEL_HEIGHT))


def _literal_box(text: str, x: float, top: float) -> Box:
    return Box.around(x, top, max(_literal_width(text), 24.0), LITERAL_HEIGHT)
