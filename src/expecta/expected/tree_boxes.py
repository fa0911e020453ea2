"""A model that was read, written over the values of a density: tables and boxes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.engine.boxes import BoxSum, Runs, intersection, runs
from expecta.engine.boxes.box_sums import MAX_PAIRS_PER_BOX
from expecta.expected.model_cells import Cells
from expecta.readers.forms import Trees

__all__ = ["Written", "partition", "write_trees"]


@dataclass(frozen=True, eq=False)
class Written:
    """A constant, a table of each variable, and boxes: their sum is the model's margin."""

    bias: Floats  # (outputs,)
    tables: tuple[Floats, ...]  # (values, outputs)
    boxes: BoxSum

    @property
    def additive(self) -> bool:
        """Whether no box is left that asks of several variables."""
        return not self.boxes.n_boxes

    def as_boxes(self) -> BoxSum:
        """Write all of it as boxes: values of a table that are equal make one."""
        found: list[dict[int, Runs]] = []
        values = []
        for variable, table in enumerate(self.tables):
            rows, which = np.unique(table, axis=0, return_inverse=True)
            for number, row in enumerate(rows):
                if np.any(row):
                    found.append({variable: runs(which.ravel() == number)})
                    values.append(row)
        cards = np.array([len(table) for table in self.tables])
        shape = (-1, len(self.bias))
        alone = BoxSum.of(found, np.array(values).reshape(shape), cards)
        return alone.joined(self.boxes).plus(self.bias[None])


def write_trees(trees: Trees, cells: Cells) -> Written:
    """Write a sum of trees. Cost: linear in their leaves and in the values of columns.

    A leaf is a box. Trees that ask of a single column add up to a table.
    """
    cards = cells.density.encoder_.cardinalities_
    outputs = len(trees.bias)
    bias = trees.bias.astype(np.float64).copy()
    tables = tuple(np.zeros((int(card), outputs)) for card in cards)
    answers = cells.answers(trees.questions)
    boxes: list[dict[int, Runs]] = []
    values: list[Floats] = []
    for root in trees.start[:-1].tolist():
        leaves = _leaves(trees, root, answers, cards)
        used = {variable for box, _ in leaves for variable in box}
        if len(used) > 1:
            boxes += [box for box, _ in leaves]
            values += [value for _, value in leaves]
            continue
        for box, value in leaves:
            if box:
                ((variable, allowed),) = box.items()
                for low, high in zip(allowed[::2], allowed[1::2], strict=True):
                    tables[variable][low:high] += value
            else:
                bias += value
    found = BoxSum.of(boxes, np.array(values).reshape(-1, outputs), cards)
    return Written(bias, tables, found)


def partition(trees: Trees, cells: Cells, most: int) -> BoxSum | None:
    """Cut the space so finely that the sum of trees is constant in each box.

    Returns the boxes, of which no two overlap, with the margins as values; None if there are
    more than ``most``, or if so many pairs of boxes have to be looked at that it takes long.
    Cost: for each tree its leaves times the boxes of those before.
    """
    looks = 0
    answers = cells.answers(trees.questions)
    cards = cells.density.encoder_.cardinalities_
    found = BoxSum.of([{}], trees.bias[None].astype(np.float64), cards)
    for root in trees.start[:-1].tolist():
        leaves = _leaves(trees, root, answers, cards)
        tree = BoxSum.of(
            [box for box, _ in leaves], np.array([value for _, value in leaves]), cards
        )
        looks += found.n_boxes * tree.n_boxes
        if looks > MAX_PAIRS_PER_BOX * most:
            return None
        more = found.times(tree, most, add=True)
        if more is None:
            return None
        found = more
    return found


def _leaves(
    trees: Trees, root: int, answers: list[tuple[int, Runs, Runs]], cards: Ints
) -> list[tuple[dict[int, Runs], Floats]]:
    """Return the boxes of a tree's leaves that some value of the density reaches."""
    leaves = []
    todo: list[tuple[int, dict[int, Runs]]] = [(root, {})]
    while todo:
        node, box = todo.pop()
        asked = int(trees.question[node])
        if asked < 0:
            leaves.append((box, trees.value[node]))
            continue
        variable, yes, no = answers[asked]
        for child, answer in ((trees.left[node], yes), (trees.right[node], no)):
            allowed = intersection(box[variable], answer) if variable in box else answer
            if allowed:
                full = variable < 0 or allowed == (0, cards[variable])
                todo.append((int(child), box if full else box | {variable: allowed}))
    return leaves
