"""Where the nodes of a vtree go, upright as in the paper or, for large ones, sideways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from expecta.circuits.drawing.labels import text_width
from expecta.circuits.drawing.shapes import LITERAL_SIZE, Box, Label
from expecta.circuits.vtree import Vtree

__all__ = ["RADIUS", "Tree", "sideways_tree", "upright_tree"]

RADIUS = 7.0
LEVEL = 42.0  # between the levels of an upright tree
COLUMN_GAP = 14.0
STEP = 24.0  # between the levels of a sideways tree
LINE = 19.0  # between its nodes


@dataclass(frozen=True)
class Tree:
    """A vtree with a place and a text for each node.

    A text is written below a leaf of an upright tree, and right of any node of a
    sideways one; ``lines`` are the branches, as lists of corners.
    """

    places: list[tuple[float, float]]
    labels: list[Label]
    lines: list[list[tuple[float, float]]]
    width: float
    height: float


def upright_tree(vtree: Vtree, texts: Sequence[str]) -> Tree:
    """Give each variable a column of its own and each inner node the middle of its children.

    ``texts`` has one for each variable. A subtree keeps to its columns, so nothing meets.
    """
    depth = _depths(vtree)
    places: list[tuple[float, float]] = []
    labels: list[Label] = []
    right = -COLUMN_GAP
    for v in range(len(vtree)):
        y = RADIUS + depth[v] * LEVEL
        variable = int(vtree.variable[v])
        if variable < 0:
            x = (places[vtree.left[v]][0] + places[vtree.right[v]][0]) / 2
            places.append((x, y))
            continue
        width = max(text_width(texts[variable], LITERAL_SIZE), 2 * RADIUS)
        left = right + COLUMN_GAP
        right = left + width
        places.append(((left + right) / 2, y))
        labels.append(Label(texts[variable], Box(left, y - 9, right, y + 9)))
    lines = [
        [places[v], (places[child][0], places[child][1] - (9 if vtree.left[child] < 0 else 0))]
        for v in vtree.inner()
        for child in (vtree.left[v], vtree.right[v])
    ]
    return Tree(places, labels, lines, right, max(depth) * LEVEL + RADIUS + 9)


def sideways_tree(vtree: Vtree, texts: Sequence[str]) -> Tree:
    """Give each node, inner ones too, a line of its own, indented by its depth.

    ``texts`` has one for each node. Between a node and its child, in order, there are
    only deeper nodes: so a branch stays left of every text that it passes.
    """
    depth = _depths(vtree)
    places = [
        (RADIUS + depth[v] * STEP, LINE * (0.5 + vtree.inorder[v])) for v in range(len(vtree))
    ]
    labels = []
    for v, (text, (x, y)) in enumerate(zip(texts, places, strict=True)):
        left = x + 4 + (RADIUS if vtree.left[v] >= 0 else 0)
        if text:
            right = left + text_width(text, LITERAL_SIZE)
            labels.append(Label(text, Box(left, y - 8, right, y + 8)))
    lines = [
        [places[v], (places[v][0], places[child][1]), places[child]]
        for v in vtree.inner()
        for child in (vtree.left[v], vtree.right[v])
    ]
    width = max(label.box.right for label in labels)
    return Tree(places, labels, lines, width, LINE * len(vtree))


def _depths(vtree: Vtree) -> list[int]:
    depth = [0] * len(vtree)
    for v in range(vtree.root - 1, -1, -1):
        depth[v] = depth[vtree.parent[v]] + 1
    return depth
