"""Draw a picture as SVG in layers, where Graphviz is not installed.

Colours are plain attributes on an opaque light ground, so that a picture looks the same in a
light or a dark notebook, in a browser and in print. There are no ids, which would clash
between two pictures in one page.
"""

from __future__ import annotations

import unicodedata
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from expecta.circuits.drawing.graph import GraphNode, PictureGraph
from expecta.common.arrays import Floats, Ints

INK, WIRE, GROUND = "#24292f", "#5b636d", "#ffffff"
FONT, LABEL_FONT = 13.0, 11.0  # pixels, as all lengths here
LINE, PADDING, GAP = 16.0, 18.0, 12.0
ROW_GAP = 44.0  # between rows, with room for parameters
SIZES = {"and": (30.0, 28.0), "or": (34.0, 30.0), "dot": (14.0, 14.0)}


def layered_svg(graph: PictureGraph) -> str:
    """Draw each row of nodes on a line of its own, every node amid its inputs."""
    nodes = graph.nodes
    index = {node.name: i for i, node in enumerate(nodes)}
    inputs: list[list[tuple[int, str]]] = [[] for _ in nodes]
    for edge in graph.edges:
        inputs[index[edge.upper]].append((index[edge.lower], edge.label))
    size = np.array([_size(node) for node in nodes])  # (nodes, 2)
    room = size.copy()  # with the parameters, which stand side by side below their gate
    room[:, 0] = np.maximum(size[:, 0], [sum(map(_slot, wires)) for wires in inputs])
    row = np.array([node.row for node in nodes])
    along, across = (0, 1) if graph.sideways else (1, 0)  # axes: from row to row, within a row
    below = [[lower for lower, _ in wires] for wires in inputs]
    depth = np.array([size[row == r, along].max(initial=0.0) for r in range(row.max() + 1)])
    start = np.concatenate([[0.0], np.cumsum(depth + ROW_GAP)[:-1]])
    at = np.empty((len(nodes), 2))
    at[:, across] = _within_rows(below, row, room[:, across])
    at[:, along] = start[row] + (size[:, along] if graph.sideways else depth[row]) / 2
    at += [PADDING, PADDING + LINE + GAP]  # below the title
    width, height = (at + room / 2).max(axis=0) + PADDING
    width = max(width, _text_width(graph.title, FONT) + 2 * PADDING)
    body = [_text(PADDING, PADDING + LINE / 2, graph.title, FONT, "start")]
    half = size / 2 * (np.arange(2) == along)  # from the middle of a node to its wires
    for upper, wires in enumerate(inputs):
        x, y = at[upper] + half[upper]
        left = x - sum(map(_slot, wires)) / 2
        for wire in sorted(wires, key=lambda wire: at[wire[0], across]):
            lower, label = wire
            if label:
                middle, left = left + _slot(wire) / 2, left + _slot(wire)
                body += [_line(x, y, middle, y + 5), _text(middle, y + 11, label, LABEL_FONT)]
                body.append(_line(middle, y + 17, *(at[lower] - half[lower])))
            else:
                body.append(_line(x, y, *(at[lower] - half[lower])))
    for node, middle, extent in zip(nodes, at.tolist(), size.tolist(), strict=True):
        # A title within a group is the tip that shows when the pointer rests on it.
        tip = f"<title>{escape(node.tip)}</title>" if node.tip else ""
        body.append(f"<g>{tip}{_node(node, middle, extent)}</g>")
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label={quoteattr(graph.title)} '
        f'font-family="Helvetica, Arial, DejaVu Sans, sans-serif">'
    )
    title = f"<title>{escape(graph.title)}</title>"
    ground = f'<rect width="{width:.0f}" height="{height:.0f}" fill="{GROUND}"/>'
    return "\n".join([head, title, ground, *body, "</svg>", ""])


def _within_rows(inputs: list[list[int]], row: Ints, room: Floats) -> Floats:
    """Return the middle of each node within its row.

    A node without inputs has a column of its own, from left to right as it is reached; any
    other wants to be amid its inputs, and is moved as little as keeps all of its row apart.
    """
    from scipy.optimize import isotonic_regression

    middle = np.zeros(len(inputs))
    has_upper = {lower for below in inputs for lower in below}
    waiting = [node for node in reversed(range(len(inputs))) if node not in has_upper]
    reached: set[int] = set()
    right = 0.0
    while waiting:
        node = waiting.pop()
        if node in reached:
            continue
        reached.add(node)
        waiting += reversed(inputs[node])
        if not inputs[node]:
            middle[node] = right + room[node] / 2
            right += room[node] + GAP
    for r in range(row.max(), -1, -1):
        here = np.flatnonzero(row == r)
        for node in here.tolist():
            if inputs[node]:
                middle[node] = np.mean(middle[inputs[node]])
        here = here[np.argsort(middle[here], kind="stable")]
        apart = np.concatenate([[0.0], (room[here][1:] + room[here][:-1]) / 2 + GAP]).cumsum()
        middle[here] = isotonic_regression(middle[here] - apart).x + apart
    left: float = (middle - room / 2).min()
    return middle - left


def _size(node: GraphNode) -> tuple[float, float]:
    if node.shape in SIZES:
        return SIZES[node.shape]
    lines = node.label.split("\n")
    margin = 12.0 if node.shape == "box" else 0.0
    return max(_text_width(line, FONT) for line in lines) + margin, LINE * len(lines) + 6


def _node(node: GraphNode, middle: list[float], size: list[float]) -> str:
    (x, y), (width, height) = middle, size
    left, top, right, bottom = x - width / 2, y - height / 2, x + width / 2, y + height / 2
    fill, edge = node.fill or GROUND, f'stroke="{INK}" stroke-width="1.3"'
    if node.shape == "and":  # a dome on a flat base
        radius, shoulder = width / 2, top + width / 2
        outline = (
            f"M{left:.1f} {bottom:.1f}V{shoulder:.1f}"
            f"A{radius:.1f} {radius:.1f} 0 0 1 {right:.1f} {shoulder:.1f}V{bottom:.1f}Z"
        )
        return f'<path d="{outline}" fill="{fill}" {edge}/>'
    if node.shape == "or":  # a pointed arch on a hollow base
        bend, lean = bottom - height / 2, 0.2 * width
        outline = (
            f"M{left:.1f} {bottom:.1f}Q{x:.1f} {bend:.1f} {right:.1f} {bottom:.1f}"
            f"C{right:.1f} {bend:.1f} {x + lean:.1f} {top + 3:.1f} {x:.1f} {top:.1f}"
            f"C{x - lean:.1f} {top + 3:.1f} {left:.1f} {bend:.1f} {left:.1f} {bottom:.1f}Z"
        )
        return f'<path d="{outline}" fill="{fill}" {edge}/>'
    if node.shape == "dot":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{width / 2:.1f}" fill="{fill}"/>'
    parts = []
    if node.shape == "box":
        parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'rx="4" fill="{node.fill or "#f3f5f7"}" stroke="#a8b0b9"/>'
        )
    for number, line in enumerate(node.label.split("\n")):
        parts.append(_text(x, top + 3 + LINE * (number + 0.5), line, FONT))
    return "".join(parts)


def _slot(wire: tuple[int, str]) -> float:
    """Return the width that a wire takes below its gate."""
    return _text_width(wire[1], LABEL_FONT) + 6 if wire[1] else 0.0


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{WIRE}"/>'


def _text(x: float, y: float, words: str, size: float, anchor: str = "middle") -> str:
    """Write words whose middle line is at ``y``, in front of what is behind them."""
    # A third of the size below the middle is where capitals and digits look centred;
    # dominant-baseline would say it directly, but not every renderer knows it.
    return (
        f'<text x="{x:.1f}" y="{y + 0.36 * size:.1f}" font-size="{size:g}" fill="{INK}" '
        f'text-anchor="{anchor}">{escape(words)}</text>'
    )


def _text_width(text: str, size: float) -> float:
    """Estimate, generously, how wide a sans-serif font sets a text."""
    return size * sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    if letter in "iIjlt.,:;'|!()[]{} ":
        return 0.41
    if letter in "mwMW@%∈…":
        return 0.98
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.05
    return 0.72 if letter.isupper() else 0.64
