"""Write trees over the values of a density: tables of single columns, and boxes of several."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.engine.boxes import BoxSum, Runs, intersection, runs
from expecta.engine.boxes.box_sums import MAX_PAIRS_PER_BOX
from expecta.expected.model_cells import ModelCells
from expecta.readers.forms import Trees

Branch = tuple[int, Runs, Runs]  # a question's variable (-1: none), its values of yes and of no


@dataclass(frozen=True, eq=False)
class WrittenTrees:
    """A constant, a table of each variable, and boxes: their sum is the model's margin."""

    bias: Floats  # (outputs,)
    tables: tuple[Floats, ...]  # (values, outputs)
    boxes: BoxSum

    @property
    def is_additive(self) -> bool:
        """Whether no box is left that asks of several variables."""
        return not self.boxes.n_boxes

    def as_boxes(self) -> BoxSum:
        """Write all of it as boxes: values of a table that are equal make one."""
        boxes: list[dict[int, Runs]] = []
        values = []
        for variable, table in enumerate(self.tables):
            rows, which = np.unique(table, axis=0, return_inverse=True)
            for number, row in enumerate(rows):
                if np.any(row):
                    boxes.append({variable: runs(which.ravel() == number)})
                    values.append(row)
        cards = np.array([len(table) for table in self.tables])
        singles = BoxSum.of(boxes, np.array(values).reshape(-1, len(self.bias)), cards)
        return singles.joined(self.boxes).plus(self.bias[None])


@dataclass(frozen=True, eq=False)
class CompiledTrees:
    """A sum of trees whose questions are sets of values of a density's variables."""

    trees: Trees
    branches: tuple[Branch, ...]  # one for each of the trees' questions
    cardinalities: Ints

    @classmethod
    def of(cls, trees: Trees, cells: ModelCells) -> CompiledTrees:
        """Answer the questions of trees for every value of a density that is fine enough."""
        cardinalities = cells.density.encoder_.cardinalities_
        return cls(trees, tuple(cells.answers(trees.questions)), cardinalities)

    @cached_property
    def written(self) -> WrittenTrees:
        """The sum of trees; a leaf is a box, and trees that ask of one column are a table.

        Cost: linear in the leaves and in the values of columns.
        """
        outputs = len(self.trees.bias)
        bias = self.trees.bias.astype(np.float64).copy()
        tables = tuple(np.zeros((int(card), outputs)) for card in self.cardinalities)
        boxes: list[dict[int, Runs]] = []
        values: list[Floats] = []
        for root in self.trees.start[:-1].tolist():
            leaves = self._leaves(root)
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
        shape = (-1, outputs)
        joint = BoxSum.of(boxes, np.array(values).reshape(shape), self.cardinalities)
        return WrittenTrees(bias, tables, joint)

    def partition(self, max_boxes: int) -> BoxSum | None:
        """Cut the space so finely that the sum of trees is constant in each box.

        Returns the boxes, of which no two overlap, with the margins as values; None if there
        are more than ``max_boxes``, or if so many pairs of boxes have to be looked at that it
        takes long. Cost: for each tree its leaves times the boxes of those before.
        """
        pairs = 0
        total = BoxSum.of([{}], self.trees.bias[None].astype(np.float64), self.cardinalities)
        for root in self.trees.start[:-1].tolist():
            leaves = self._leaves(root)
            values = np.array([value for _, value in leaves])
            tree = BoxSum.of([box for box, _ in leaves], values, self.cardinalities)
            pairs += total.n_boxes * tree.n_boxes
            if pairs > MAX_PAIRS_PER_BOX * max_boxes:
                return None
            product = total.times(tree, max_boxes, add=True)
            if product is None:
                return None
            total = product
        return total

    def _leaves(self, root: int) -> list[tuple[dict[int, Runs], Floats]]:
        """Return the boxes of a tree's leaves that some value of the density reaches."""
        trees, leaves = self.trees, []
        todo: list[tuple[int, dict[int, Runs]]] = [(root, {})]
        while todo:
            node, box = todo.pop()
            question = int(trees.question[node])
            if question < 0:
                leaves.append((box, trees.value[node]))
                continue
            variable, yes, no = self.branches[question]
            for child, answer in ((trees.left[node], yes), (trees.right[node], no)):
                allowed = intersection(box[variable], answer) if variable in box else answer
                if allowed:
                    full = variable < 0 or allowed == (0, self.cardinalities[variable])
                    todo.append((int(child), box if full else box | {variable: allowed}))
        return leaves
