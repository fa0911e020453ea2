"""The same diagrams as Graphviz source."""

from __future__ import annotations

from collections.abc import Sequence

from expecta.circuits.drawing.diagram import Diagram, Item
from expecta.circuits.drawing.shapes import table_lines
from expecta.circuits.vtree import Vtree

__all__ = ["circuit_dot", "tree_dot"]

_SIGN = {"or": "∨", "values": "∨", "and": "∧"}


def circuit_dot(diagram: Diagram, fills: Sequence[str], title: str) -> str:
    """Write a circuit, its wires upwards; ``fills`` has the colour of each item."""
    lines: list[str] = []
    for number, (item, fill) in enumerate(zip(diagram.items, fills, strict=True)):
        lines += _item(f"n{number}", item, fill)
    for wire in diagram.wires:
        source = diagram.items[wire.source]
        label = source.choices[0].parameter if source.kind == "literal" else wire.label
        lines.append(_edge(f"n{wire.source}", f"n{wire.target}", label))
    return _graph(title, "BT", lines)


def _item(name: str, item: Item, fill: str) -> list[str]:
    if item.kind == "literal":
        return [_node(name, item.choices[0].literal, "box")]
    if item.kind == "table":
        rows = [f"{values}: {parameter}" for values, parameter in table_lines(item)]
        return [_node(name, "\n".join([item.variable, *rows]), "box")]
    lines = [_node(name, _SIGN[item.kind], "house" if item.kind == "and" else "ellipse", fill)]
    for number, choice in enumerate(item.choices):
        lines.append(_node(f"{name}_{number}", choice.literal, "box"))
        lines.append(_edge(f"{name}_{number}", name, choice.parameter))
    return lines


def tree_dot(vtree: Vtree, texts: Sequence[str], fills: dict[int, str], title: str) -> str:
    """Write a vtree, its root on top; ``texts`` has one for each node."""
    lines = []
    for v, words in enumerate(texts):
        if v in fills:
            lines.append(_node(f"v{v}", words, "ellipse" if words else "circle", fills[v]))
        else:
            lines.append(_node(f"v{v}", words, "plaintext"))
    for v in vtree.inner():
        lines += [_edge(f"v{v}", f"v{child}", "") for child in (vtree.left[v], vtree.right[v])]
    return _graph(title, "TB", lines)


def _graph(title: str, direction: str, lines: Sequence[str]) -> str:
    head = [
        "digraph {",
        f'label={_quoted(title)}; labelloc=t; fontname="Helvetica"; rankdir={direction};',
        'node [fontname="Helvetica"]; edge [fontname="Helvetica", fontsize=11, arrowhead=none];',
    ]
    return "\n".join([*head, *lines, "}", ""])


def _node(name: str, label: str, shape: str, fill: str = "") -> str:
    style = f', style=filled, fillcolor="{fill}"' if fill else ""
    return f"{name} [label={_quoted(label)}, shape={shape}{style}];"


def _edge(source: str, target: str, label: str) -> str:
    return f"{source} -> {target}" + (f" [label={_quoted(label)}];" if label else ";")


def _quoted(words: str) -> str:
    """Quote a label. Graphviz reads backslashes and HTML entities in it, so both go."""
    escaped = words.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    return '"' + escaped.replace("\n", "\\n") + '"'
