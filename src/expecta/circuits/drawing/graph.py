"""Collect what a picture shows: labelled nodes, and the wires between them."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose
from typing import Literal, NamedTuple, TypeAlias

from expecta.circuits.drawing.labels import colours, literal_text, parameter_text, runs
from expecta.circuits.structure import Structure
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Floats

NodeShape: TypeAlias = Literal["and", "or", "box", "dot", "text"]

MAX_LITERALS = 4  # values of a leaf that are drawn as an OR gate over literals
MAX_TABLE_LINES = 10  # lines of a leaf's table of values
MAX_TIP_NAMES = 8  # variables that a gate's tip lists


class GraphNode(NamedTuple):
    """A gate, a literal or a vtree node; ``row`` counts downwards, ``tip`` is for the pointer."""

    name: str
    label: str
    shape: NodeShape
    row: int
    fill: str = ""
    tip: str = ""


class GraphEdge(NamedTuple):
    """A wire from a node down to one of its inputs, and the parameter on it."""

    upper: str
    lower: str
    label: str = ""


class PictureGraph(NamedTuple):
    """Nodes and wires, the inputs of each node from left to right.

    A ``sideways`` picture has its root on the left rather than on top.
    """

    title: str
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    sideways: bool = False


def vtree_graph(
    vtree: Vtree, texts: Sequence[str], title: str, *, sideways: bool = False, spacing: int = 1
) -> PictureGraph:
    """Return the picture of a vtree, ``spacing`` rows for each level; one text per node."""
    fills = colours(vtree)
    nodes = []
    for v, (text, depth) in enumerate(zip(texts, _depths(vtree), strict=True)):
        inner = v in fills
        # Beside a circuit, an inner node is on the row of its AND gates.
        row = spacing * depth + (spacing - 1 if inner else 0)
        shape: NodeShape = "text" if not inner else "box" if text else "dot"
        nodes.append(GraphNode(f"v{v}", text, shape, row, fills.get(v, "")))
    edges = [
        GraphEdge(f"v{v}", f"v{child}")
        for v in vtree.inner()
        for child in (vtree.left[v], vtree.right[v])
    ]
    return PictureGraph(title, nodes, edges, sideways)


def circuit_graph(
    structure: Structure,
    parameters: Floats,
    names: list[str],
    title: str,
    *,
    silent: float,
    with_legend: bool,
) -> PictureGraph:
    """Return the picture of what a circuit's root reaches.

    Literals are drawn anew for each gate that takes them, as is usual in circuit diagrams,
    where long wires to a shared literal say little and hide much. Gates and leaves of several
    values are drawn once, however many gates take them.
    """
    vtree = structure.vtree
    row = [2 * depth for depth in _depths(vtree)]  # AND gates are one row below their OR gate
    fill = colours(vtree)
    nodes: list[GraphNode] = []
    edges: list[GraphEdge] = []
    drawn: dict[tuple[str, int], str] = {}
    waiting: list[int] = []  # OR nodes whose inputs are not drawn yet

    def add(label: str, shape: NodeShape, layer: int, below: int = 0, fill: str = "") -> str:
        kind = "leaf" if vtree.variable[layer] >= 0 else f"{shape.upper()} gate"
        tip = f"{kind} over {_over(vtree, layer, names)}"
        nodes.append(GraphNode(f"n{len(nodes)}", label, shape, row[layer] + below, fill, tip))
        return nodes[-1].name

    def add_node(n: int) -> tuple[str, str]:
        """Return the name of what is drawn for a node, and the parameter on the wire to it."""
        if ("or", n) in drawn:
            return drawn["or", n], ""
        layer = int(structure.layer_of_node[n])
        variable = int(vtree.variable[layer])
        if variable < 0:
            waiting.append(n)
            drawn["or", n] = add("∨", "or", layer)
            return drawn["or", n], ""
        groups = _values(structure, n, parameters, together=silent == 0.0)
        if len(groups) > MAX_LITERALS:
            drawn["or", n] = add(_table(names[variable], groups), "box", layer)
            return drawn["or", n], ""
        cardinality = int(structure.cardinalities[variable])
        literals = [
            (literal_text(names[variable], values, cardinality), weights)
            for values, weights in groups
        ]
        if len(literals) == 1:
            text, weights = literals[0]
            goes_without_saying = all(isclose(weight, silent) for weight in weights)
            if goes_without_saying or n != structure.root:
                label = "" if goes_without_saying else parameter_text(weights)
                return add(text, "box", layer), label
        gate = drawn["or", n] = add("∨", "or", layer)
        for text, weights in literals:
            edges.append(GraphEdge(gate, add(text, "box", layer, 1), parameter_text(weights)))
        return gate, ""

    add_node(structure.root)
    while waiting:
        n = waiting.pop()
        layer = int(structure.layer_of_node[n])
        for edge in range(structure.edge_start[n], structure.edge_start[n + 1]):
            element = int(structure.target[edge])
            label = parameter_text(parameters[edge].tolist())
            if ("and", element) not in drawn:
                gate = drawn["and", element] = add("∧", "and", layer, 1, fill[layer])
                for child in (structure.left[element], structure.right[element]):
                    edges.append(GraphEdge(gate, *add_node(int(child))))
            edges.append(GraphEdge(drawn["or", n], drawn["and", element], label))
    if with_legend:
        texts = [names[variable] if variable >= 0 else "" for variable in vtree.variable]
        legend = vtree_graph(vtree, texts, "", spacing=2)
        nodes, edges = nodes + legend.nodes, edges + legend.edges
    return PictureGraph(title, nodes, edges)


def _depths(vtree: Vtree) -> list[int]:
    depth = [0] * len(vtree)
    for v in range(vtree.root - 1, -1, -1):
        depth[v] = depth[vtree.parent[v]] + 1
    return depth


def _over(vtree: Vtree, layer: int, names: list[str]) -> str:
    below = [names[variable] for variable in vtree.variables_below(layer)]
    return ", ".join(below if len(below) <= MAX_TIP_NAMES else [*below[: MAX_TIP_NAMES - 1], "…"])


def _values(
    structure: Structure, n: int, parameters: Floats, *, together: bool
) -> list[tuple[list[int], tuple[float, ...]]]:
    """Return the values that a node at a leaf allows, with their parameters.

    Where parameters are added up (``together``), values that add the same are one literal
    "X ∈ {...}". Probabilities stay apart: together they would not seem to sum to one.
    """
    cardinality = int(structure.cardinalities[structure.vtree.variable[structure.layer_of_node[n]]])
    groups: dict[tuple[tuple[float, ...], int], list[int]] = {}
    for edge in range(structure.edge_start[n], structure.edge_start[n + 1]):
        key = (tuple(parameters[edge].tolist()), -1 if together and cardinality > 2 else edge)
        groups.setdefault(key, []).append(int(structure.target[edge]))
    rising = sorted(groups.items(), key=lambda group: min(group[1]), reverse=cardinality == 2)
    return [(values, weights) for (weights, _), values in rising]


def _table(variable: str, groups: list[tuple[list[int], tuple[float, ...]]]) -> str:
    """Return the lines of a leaf's table, shortened where there are too many."""
    lines = [f"{runs(values)}: {parameter_text(weights)}" for values, weights in groups]
    if len(lines) > MAX_TABLE_LINES:
        more = len(lines) - MAX_TABLE_LINES + 1
        lines[MAX_TABLE_LINES - 1 :] = [f"…: {more} more"]
    return "\n".join([variable, *lines])
