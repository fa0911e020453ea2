"""Write a picture in Graphviz's language."""

from __future__ import annotations

from collections import Counter

from expecta.circuits.drawing.graph import GraphNode, PictureGraph

SHAPES = {"and": "house", "or": "ellipse", "box": "box", "dot": "circle", "text": "plaintext"}


def dot_text(graph: PictureGraph) -> str:
    """Return a picture as Graphviz source; roots on top, or on the left where it is sideways."""
    font = 'fontname="Helvetica"'
    lines = [
        "digraph {",
        f"label={_quoted(graph.title)}; labelloc=t; {font}; bgcolor=white;",
        f"rankdir={'LR' if graph.sideways else 'TB'}; ranksep=0.35; nodesep=0.2;",
        f"node [{font}, fontsize=12, width=0.4, height=0.3, margin=0.06];",
        f"edge [{font}, fontsize=10, arrowhead=none];",
    ]
    times_used = Counter(edge.lower for edge in graph.edges)
    shares = {edge.upper for edge in graph.edges if times_used[edge.lower] > 1}
    for node in graph.nodes:
        # Inputs keep their order, except where some are shared: it would make wires cross.
        lines.append(_node(node, in_order=node.shape == "and" or node.name not in shares))
    for edge in graph.edges:
        label = f" [label={_quoted(edge.label)}]" if edge.label else ""
        lines.append(f"{edge.upper} -> {edge.lower}{label};")
    return "\n".join([*lines, "}", ""])


def _node(node: GraphNode, *, in_order: bool) -> str:
    # Some versions of Graphviz interpret escapes of tips twice: no backslash is safe.
    tip = node.tip.replace("\\", "∖")
    more = f", tooltip={_quoted(tip)}" if tip else ""
    if node.fill:
        more += f', style=filled, fillcolor="{node.fill}"'
    if in_order:
        more += ", ordering=out"
    return f"{node.name} [label={_quoted(node.label)}, shape={SHAPES[node.shape]}{more}];"


def _quoted(words: str) -> str:
    """Quote a label. Graphviz interprets backslashes and HTML entities, so both are escaped."""
    escaped = words.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    return '"' + escaped.replace("\n", "\\n") + '"'
