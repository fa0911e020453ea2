"""Write pictures in Graphviz's language, and have Graphviz's program ``dot`` lay them out."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from xml.sax.saxutils import escape, quoteattr

from expecta.circuits.drawing.graph import GraphNode, PictureGraph
from expecta.common.errors import ExpectaError

__all__ = ["dot_text", "find_dot", "run_dot", "run_dot_svg"]

TIMEOUT_SECONDS = 60
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


def find_dot() -> str | None:
    """Return the path of Graphviz's program, None where it is not installed."""
    return shutil.which("dot")


def run_dot(source: str, kind: str) -> bytes:
    """Lay out Graphviz source by the program, as ``svg``, ``pdf`` or ``png``.

    Raises
    ------
    ExpectaError
        If the program is not installed, fails, or takes more than a minute.
    """
    program = find_dot()
    if program is None:
        raise ExpectaError(
            f"a drawing as {kind.upper()} needs Graphviz's program 'dot', which is not installed: "
            f"get it by 'apt install graphviz', 'brew install graphviz' or from graphviz.org; "
            f"or save the drawing as .svg or .dot, which need nothing"
        )
    command = [program, f"-T{kind}"]
    try:
        done = subprocess.run(
            command, input=source.encode(), capture_output=True, timeout=TIMEOUT_SECONDS, check=True
        )
    except subprocess.TimeoutExpired:
        raise ExpectaError(
            f"Graphviz did not lay out the drawing within {TIMEOUT_SECONDS} seconds; save it as "
            f".dot and try another of Graphviz's programs, or draw a smaller circuit"
        ) from None
    except subprocess.CalledProcessError as error:
        problem = error.stderr.decode(errors="replace").strip()
        raise ExpectaError(f"Graphviz's program {program} failed: {problem}") from error
    return done.stdout


def run_dot_svg(source: str, title: str) -> str:
    """Lay out Graphviz source as SVG that can stand in a page beside others."""
    svg = run_dot(source, "svg").decode()
    svg = svg[svg.index("<svg") :]
    # Names of Graphviz's own, and ids, which would clash between two pictures in one page.
    svg = re.sub(r"<!--.*?-->\n?|<title>[^<]*</title>\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="[^"]*"', "", svg)
    svg = svg.replace("<svg", f'<svg role="img" aria-label={quoteattr(title)}', 1)
    return svg.replace(">", f"><title>{escape(title)}</title>", 1)
