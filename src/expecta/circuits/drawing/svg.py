"""SVG, written by hand: gates, wires, boxes and words.

Colours are plain attributes on an opaque light ground, so that a picture looks the
same in a light or a dark notebook, in a browser and in print. There are no ids, which
would clash between two pictures in one page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr

from expecta.circuits.drawing.layout import Layout, Spot
from expecta.circuits.drawing.shapes import (
    LABEL_SIZE,
    LITERAL_HEIGHT,
    LITERAL_SIZE,
    TABLE_LINE,
    Box,
    Label,
    table_lines,
)
from expecta.circuits.drawing.tree import RADIUS, Tree

__all__ = ["GROUND", "circuit_body", "document", "moved", "text", "tree_body"]

INK = "#24292f"
WIRE = "#5b636d"
GROUND = "#ffffff"
PADDING = 18.0


def document(body: Iterable[str], width: float, height: float, title: str) -> str:
    """Wrap a body that takes (0, 0) to (width, height) into a whole SVG file."""
    outer = (_number(width + 2 * PADDING), _number(height + 2 * PADDING))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{outer[0]}" height="{outer[1]}" '
            f'viewBox="0 0 {outer[0]} {outer[1]}" role="img" aria-label={quoteattr(title)} '
            f'font-family="Helvetica, Arial, DejaVu Sans, sans-serif">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{outer[0]}" height="{outer[1]}" rx="8" fill="{GROUND}"/>',
            moved(body, PADDING, PADDING),
            "</svg>",
            "",
        ]
    )


def moved(parts: Iterable[str], x: float, y: float) -> str:
    """Join parts into one, at another place."""
    return "\n".join([f'<g transform="translate({_number(x)} {_number(y)})">', *parts, "</g>"])


def text(x: float, y: float, words: str, size: float, anchor: str = "middle") -> str:
    """Write words whose middle line is at ``y``."""
    # A third of the size below the middle is where capitals and digits look centred;
    # dominant-baseline would say it directly, but not every renderer knows it.
    return (
        f'<text x="{_number(x)}" y="{_number(y + size * 0.36)}" font-size="{_number(size)}" '
        f'text-anchor="{anchor}" fill="{INK}">{escape(words)}</text>'
    )


def _line(corners: Sequence[tuple[float, float]], width: float = 1.3) -> str:
    """Draw a wire through its corners."""
    points = " ".join(f"{_point(x, y)}" for x, y in corners)
    return (
        f'<polyline points="{points}" fill="none" stroke="{WIRE}" stroke-width="{_number(width)}" '
        f'stroke-linejoin="round"/>'
    )


def _circle(x: float, y: float, radius: float, fill: str) -> str:
    """Draw a disc."""
    return f'<circle cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}" fill="{fill}"/>'


def circuit_body(layout: Layout, fills: Sequence[str], tips: Sequence[str]) -> list[str]:
    """Draw a circuit: wires first, so that gates cover their ends.

    ``fills`` and ``tips`` hold the colour and the tip of each spot.
    """
    parts = [_line(corners) for route in layout.routes for corners in route.lines]
    parts += [_circle(x, y, 2.4, WIRE) for route in layout.routes for x, y in route.dots]
    root = layout.spots[0]
    parts.append(_line([(root.x, 0.0), (root.x, root.top + 1)]))
    for spot, fill, tip in zip(layout.spots, fills, tips, strict=True):
        # A title within a group is the tip that shows when the pointer rests on it.
        parts += ["<g>", f"<title>{escape(tip)}</title>", *_spot(spot, fill), "</g>"]
    return parts


def tree_body(tree: Tree, fills: dict[int, str]) -> list[str]:
    """Draw a vtree; ``fills`` has the colours of the inner nodes."""
    parts = [_line(corners) for corners in tree.lines]
    for v, (x, y) in enumerate(tree.places):
        if v in fills:
            parts.append(_circle(x, y, RADIUS, fills[v]))
    parts += [
        text(label.box.left, label.box.middle[1], label.text, LITERAL_SIZE, "start")
        for label in tree.labels
    ]
    return parts


def _spot(spot: Spot, fill: str) -> list[str]:
    kind, shape = spot.item.kind, spot.shape
    if kind == "table":
        return _table(spot)
    parts = []
    labels = [Label(p.text, p.box.moved(spot.x, spot.top)) for p in shape.parameters]
    literals = [Label(p.text, p.box.moved(spot.x, spot.top)) for p in shape.literals]
    for label in labels:
        x, y = label.box.middle
        above = spot.top if shape.gate is None else spot.top + shape.gate.bottom - 8
        parts += [_line([(x, above), (x, label.box.top)]), text(x, y, label.text, LABEL_SIZE)]
    for label, literal in zip(labels, literals, strict=False):
        x, _ = literal.box.middle
        parts.append(_line([(x, label.box.bottom), (x, literal.box.top)]))
    if shape.gate is not None:
        gate = shape.gate.moved(spot.x, spot.top)
        parts.append(_and_gate(gate, fill) if kind == "and" else _or_gate(gate, fill))
    for literal in literals:
        parts += [_rectangle(literal.box), text(*literal.box.middle, literal.text, LITERAL_SIZE)]
    return parts


def _and_gate(gate: Box, fill: str) -> str:
    """Draw a dome on a flat base."""
    radius = (gate.right - gate.left) / 2
    shoulder = gate.top + radius
    outline = (
        f"M{_point(gate.left, gate.bottom)} V{_number(shoulder)} "
        f"A{_point(radius, radius)} 0 0 1 {_point(gate.right, shoulder)} V{_number(gate.bottom)} Z"
    )
    return _path(outline, fill)


def _or_gate(gate: Box, fill: str) -> str:
    """Draw a pointed arch on a hollow base."""
    x, _ = gate.middle
    height, lean = gate.bottom - gate.top, 0.2 * (gate.right - gate.left)
    bend, shoulder = gate.bottom - 0.5 * height, gate.top + 0.1 * height
    left, right = _point(gate.left, gate.bottom), _point(gate.right, gate.bottom)
    outline = (
        f"M{left} Q{_point(x, bend)} {right} "
        f"C{_point(gate.right, bend)} {_point(x + lean, shoulder)} {_point(x, gate.top)} "
        f"C{_point(x - lean, shoulder)} {_point(gate.left, bend)} {left} Z"
    )
    return _path(outline, fill)


def _path(outline: str, fill: str) -> str:
    return (
        f'<path d="{outline}" fill="{fill}" stroke="{INK}" stroke-width="1.3" '
        f'stroke-linejoin="round"/>'
    )


def _rectangle(box: Box) -> str:
    width, height = _number(box.right - box.left), _number(box.bottom - box.top)
    return (
        f'<rect x="{_number(box.left)}" y="{_number(box.top)}" width="{width}" height="{height}" '
        f'rx="4" fill="#f3f5f7" stroke="#a8b0b9"/>'
    )


def _table(spot: Spot) -> list[str]:
    box = spot.box
    parts = [
        _rectangle(box),
        text(spot.x, box.top + LITERAL_HEIGHT / 2, spot.item.variable, LITERAL_SIZE),
        _line([(box.left, box.top + LITERAL_HEIGHT), (box.right, box.top + LITERAL_HEIGHT)], 0.7),
    ]
    for number, (values, parameter) in enumerate(table_lines(spot.item)):
        y = box.top + LITERAL_HEIGHT + 2 + TABLE_LINE * (number + 0.5)
        parts.append(text(box.left + 8, y, values, LABEL_SIZE, "start"))
        parts.append(text(box.right - 8, y, parameter, LABEL_SIZE, "end"))
    return parts


def _point(x: float, y: float) -> str:
    return f"{_number(x)},{_number(y)}"


def _number(value: float) -> str:
    """Write a coordinate: a tenth of a point is finer than anyone sees."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")
