"""What a picture of a circuit shows: gates, literals and the wires between them."""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose
from typing import Literal, TypeAlias

from expecta.circuits.drawing.labels import literal_text, parameter_text, runs
from expecta.circuits.structure import Structure
from expecta.common.arrays import Floats

__all__ = ["Alternative", "Diagram", "Item", "Wire", "diagram_of"]

Kind: TypeAlias = Literal["or", "and", "literal", "values", "table"]

LARGEST_FAN = 4  # values of a leaf that are drawn as an OR gate over literals


@dataclass(frozen=True)
class Alternative:
    """A literal and the parameter on its wire; empty where there is nothing to say."""

    literal: str
    parameter: str


@dataclass(frozen=True)
class Item:
    """A gate, or all that is drawn for a node at a leaf of the vtree.

    ``row`` counts from the root's row downwards; ``choices`` are a leaf's.
    """

    kind: Kind
    layer: int
    row: int
    choices: tuple[Alternative, ...] = ()
    variable: str = ""


@dataclass(frozen=True)
class Wire:
    """A wire up from one item to the next row; ``port`` is its place among the inputs."""

    source: int
    target: int
    port: int
    label: str


@dataclass(frozen=True)
class Diagram:
    """Items, the root first, and the wires between them, each from a row to the next.

    Everything in the layer of a vtree node is used only by the layer of its parent, so
    rows by vtree depth (two to each: ORs above their ANDs) need no wire across a row.
    """

    items: list[Item]
    wires: list[Wire]


def diagram_of(
    structure: Structure, parameters: Floats, names: list[str], silent: float
) -> Diagram:
    """Collect what the root reaches.

    Literals are drawn anew for each gate that takes them, as is usual in circuit
    diagrams, where long wires to a shared literal say little and hide much. Gates and
    leaves of several values are drawn once, however many gates take them.
    """
    row = _rows(structure)
    items: list[Item] = []
    wires: list[Wire] = []
    item_of_node: dict[int, int] = {}
    item_of_element: dict[int, int] = {}
    todo: list[int] = []  # OR nodes whose inputs are still to be drawn

    def add(item: Item) -> int:
        items.append(item)
        return len(items) - 1

    def add_node(n: int) -> int:
        if n in item_of_node:
            return item_of_node[n]
        layer = int(structure.layer_of_node[n])
        if structure.vtree.variable[layer] >= 0:
            item = _leaf(structure, n, row[layer], parameters, names, silent)
        else:
            item = Item("or", layer, row[layer])
            todo.append(n)
        index = add(item)
        if item.kind != "literal":
            item_of_node[n] = index
        return index

    add_node(structure.root)
    while todo:
        n = todo.pop()
        edges = range(structure.edge_start[n], structure.edge_start[n + 1])
        for port, edge in enumerate(edges):
            element = int(structure.target[edge])
            if element not in item_of_element:
                layer = int(structure.layer_of_element[element])
                gate = item_of_element[element] = add(Item("and", layer, row[layer] + 1))
                wires.append(Wire(add_node(int(structure.left[element])), gate, 0, ""))
                wires.append(Wire(add_node(int(structure.right[element])), gate, 1, ""))
            label = parameter_text(parameters[edge].tolist())
            wires.append(Wire(item_of_element[element], item_of_node[n], port, label))
    return Diagram(items, wires)


def _rows(structure: Structure) -> list[int]:
    """Return the row of each layer's nodes: two for each step down the vtree."""
    parent = structure.vtree.parent
    row = [0] * len(structure.vtree)
    for v in range(structure.vtree.root - 1, -1, -1):
        row[v] = row[parent[v]] + 2
    return row


def _leaf(
    structure: Structure, n: int, row: int, parameters: Floats, names: list[str], silent: float
) -> Item:
    layer = int(structure.layer_of_node[n])
    variable = int(structure.vtree.variable[layer])
    cardinality = int(structure.cardinalities[variable])
    # Where parameters are added up, values that add the same are one literal "X ∈ {...}".
    # Probabilities stay apart: together they would no longer sum to one for the eye.
    together = silent == 0.0 and cardinality > 2
    groups: dict[tuple[tuple[float, ...], int], list[int]] = {}
    for edge in range(structure.edge_start[n], structure.edge_start[n + 1]):
        key = (tuple(parameters[edge].tolist()), -1 if together else edge)
        groups.setdefault(key, []).append(int(structure.target[edge]))
    kind: Kind = "literal" if len(groups) == 1 else "values"
    if len(groups) > LARGEST_FAN:
        kind = "table"
    choices = []
    for (row_of_edge, _), values in groups.items():
        parameter = parameter_text(row_of_edge)
        if kind == "literal" and all(isclose(x, silent) for x in row_of_edge):
            parameter = ""
        if kind == "table":
            text = runs(values)
        else:
            text = literal_text(names[variable], values, cardinality)
        # Values in rising order, but a Boolean variable before its negation.
        rank = -values[0] if cardinality == 2 else min(values)
        choices.append((rank, Alternative(text, parameter)))
    choices.sort(key=lambda choice: choice[0])
    return Item(kind, layer, row, tuple(choice for _, choice in choices), names[variable])
