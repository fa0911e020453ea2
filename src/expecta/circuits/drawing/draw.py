"""The two ways in: draw a vtree, draw a circuit."""

from __future__ import annotations

from collections.abc import Sequence

from expecta.circuits.drawing.diagram import Item, diagram_of
from expecta.circuits.drawing.dot import circuit_dot, tree_dot
from expecta.circuits.drawing.labels import colours, count, text_width, variable_names
from expecta.circuits.drawing.layout import Layout, lay_out
from expecta.circuits.drawing.picture import Drawing
from expecta.circuits.drawing.svg import GROUND, circuit_body, document, moved, text, tree_body
from expecta.circuits.drawing.tree import Tree, sideways_tree, upright_tree
from expecta.circuits.structure import Structure
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Floats
from expecta.common.errors import StructureError

__all__ = ["MAX_GATES", "MAX_SUMMARY_VARIABLES", "MAX_WIRES", "draw_circuit", "draw_vtree"]

MAX_GATES = 400  # nodes and elements of a circuit that is drawn gate by gate
MAX_WIRES = 600  # and its edges to elements: dense layers are unreadable long before
MAX_SUMMARY_VARIABLES = 200  # variables of a circuit that is drawn as a summary
MAX_UPRIGHT = 30  # variables of a vtree that is drawn upright
MAX_LEGEND = 12  # variables of a vtree that is drawn beside its circuit
LEGEND_GAP = 26.0
HEADING = 30.0


def draw_vtree(vtree: Vtree, names: Sequence[str] | None = None) -> Drawing:
    """Draw a vtree, its inner nodes in the colours of their AND gates in a circuit.

    Up to 30 variables the root is on top, as in the paper; a larger tree lies on its
    side, one line for each node, and can be as large as you like.

    >>> draw_vtree(Vtree.balanced(4), ["a", "b", "c", "d"])
    Drawing('A vtree over 4 variables')
    """
    words = variable_names(vtree.n_variables, names)
    title = f"A vtree over {count(vtree.n_variables, 'variable')}"
    texts = [words[variable] if variable >= 0 else "" for variable in vtree.variable]
    small = vtree.n_variables <= MAX_UPRIGHT
    tree = upright_tree(vtree, words) if small else sideways_tree(vtree, texts)
    fills = colours(vtree)
    svg = document(tree_body(tree, fills), tree.width, tree.height, title)
    return Drawing(title, svg, tree_dot(vtree, texts, fills, title))


def draw_circuit(
    structure: Structure,
    parameters: Floats,
    names: Sequence[str] | None = None,
    *,
    silent: float = 0.0,
) -> Drawing:
    """Draw a circuit as the paper's Figure 1 does: gates, literals, parameters on wires.

    AND gates (domes) have the colour of their vtree node; a small vtree is shown beside
    the circuit as a legend. OR gates (pointed) have a parameter below each input. A
    leaf of the vtree is drawn as a literal, as an OR gate over up to four literals, or
    as a table of its values. Only what the root reaches is drawn, and literals are
    repeated where several gates take them.

    More than 400 nodes and elements, or 600 edges to elements, make no picture that one
    can read. Such a circuit is drawn as a summary: its vtree, with the number of nodes
    and elements at each vtree node. Beyond 200 variables not even that, and this raises.

    Parameters
    ----------
    structure
        The gates.
    parameters
        The parameter of each edge, for each output; three and more outputs are only
        counted.  # (edges, outputs)
    names
        A name for each variable, X0, X1, ... by default; long ones are cut short.
    silent
        The parameter that goes without saying at a literal: 1 in a distribution, 0 in a
        function.

    Raises
    ------
    StructureError
        If the circuit is too large even for a summary, or names are missing.

    Examples
    --------
    >>> from expecta import random_regression
    >>> g = random_regression(Vtree.balanced(3), seed=0)
    >>> draw_circuit(g.structure, g.weight)
    Drawing('A circuit over 3 variables: 7 nodes and 4 elements')
    """
    if parameters.ndim != 2 or len(parameters) != structure.n_edges:
        raise StructureError(
            f"parameters of shape {parameters.shape} for a circuit of {structure.n_edges} edges: "
            f"give one row for each edge, one column for each output"
        )
    words = variable_names(structure.n_variables, names)
    gates = structure.n_nodes + structure.n_elements
    wires = structure.n_edges - int(structure.edge_at_leaf.sum())
    if gates > MAX_GATES or wires > MAX_WIRES:
        return _draw_summary(structure, words)
    vtree = structure.vtree
    diagram = diagram_of(structure, parameters, words, silent)
    layout = lay_out(diagram)
    title = _title(structure)
    fill_of = colours(vtree)
    fills = [fill_of[item.layer] if item.kind == "and" else GROUND for item in diagram.items]
    tips = [_tip(item, vtree, words) for item in diagram.items]
    body = circuit_body(layout, fills, tips)
    width, height = layout.width, layout.height
    if 1 < vtree.n_variables <= MAX_LEGEND:
        legend = upright_tree(vtree, words)
        legend_x, circuit_x, width = _beside(legend, layout)
        body = [moved(body, circuit_x, 0.0), moved(tree_body(legend, fill_of), legend_x, 0.0)]
        height = max(height, legend.height)
    return Drawing(title, document(body, width, height, title), circuit_dot(diagram, fills, title))


def _beside(legend: Tree, layout: Layout) -> tuple[float, float, float]:
    """Find room for the legend in an upper corner of the picture, making some if need be.

    Returns the x of the legend, the x of the circuit, and the width of both.
    """
    bottom = legend.height + LEGEND_GAP
    taken = [(spot.box.left, spot.box.right) for spot in layout.spots if spot.top < bottom]
    for route in layout.routes:
        for line in route.lines:
            taken += [(x, x) for x, y in line if y < bottom]
    room_left = min(left for left, _ in taken)
    room_right = layout.width - max(right for _, right in taken)
    missing = max(0.0, legend.width + LEGEND_GAP - max(room_left, room_right))
    width = layout.width + missing
    if room_left >= room_right:
        return 0.0, missing, width
    return width - legend.width, 0.0, width


def _draw_summary(structure: Structure, names: list[str]) -> Drawing:
    vtree = structure.vtree
    if vtree.n_variables > MAX_SUMMARY_VARIABLES:
        raise StructureError(
            f"a circuit of {count(vtree.n_variables, 'variable')}, {_sizes(structure)} is too "
            f"large to draw: gates are drawn up to {MAX_GATES} nodes and elements, a summary up "
            f"to {MAX_SUMMARY_VARIABLES} variables. Draw its vtree instead (circuit.vtree.draw()), "
            f"or a smaller circuit of the same kind"
        )
    texts = []
    for v, variable in enumerate(vtree.variable):
        nodes = count(int(structure.node_start[v + 1] - structure.node_start[v]), "node")
        elements = count(
            int(structure.element_start[v + 1] - structure.element_start[v]), "element"
        )
        texts.append(f"{names[variable]}: {nodes}" if variable >= 0 else f"{nodes}, {elements}")
    title = f"{_title(structure)}, by vtree node"
    tree = sideways_tree(vtree, texts)
    fills = colours(vtree)
    body = [text(0.0, 8.0, title, 13.0, "start"), moved(tree_body(tree, fills), 0.0, HEADING)]
    width = max(tree.width, text_width(title, 13.0))
    svg = document(body, width, tree.height + HEADING, title)
    return Drawing(title, svg, tree_dot(vtree, texts, fills, title))


def _title(structure: Structure) -> str:
    variables = count(structure.n_variables, "variable")
    return f"A circuit over {variables}: {_sizes(structure)}"


def _sizes(structure: Structure) -> str:
    return f"{count(structure.n_nodes, 'node')} and {count(structure.n_elements, 'element')}"


def _tip(item: Item, vtree: Vtree, names: list[str]) -> str:
    below = [names[variable] for variable in vtree.variables_below(item.layer)]
    over = ", ".join(below if len(below) <= 8 else [*below[:7], "…"])
    if item.choices:
        return f"leaf over {over}"
    return f"{item.kind.upper()} gate over {over}"
