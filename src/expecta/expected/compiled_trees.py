"""Write trees over the values of a density: tables of single columns, and boxes of several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.engine.boxes import BoxSum, Runs, intersection, runs
from expecta.engine.boxes.box_sums import MAX_PAIRS_PER_BOX
from expecta.expected.leaf_masks import LeafMasks
from expecta.expected.model_cells import ModelCells
from expecta.readers.forms import Trees

Leaf = tuple[dict[int, Runs], Floats]  # a box and its value
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
        return self._write(self._leaves, self.trees.bias.astype(np.float64))

    def _write(self, trees: Iterable[list[Leaf]], bias: Floats) -> WrittenTrees:
        outputs = len(bias)
        bias = bias.copy()
        tables = tuple(np.zeros((int(card), outputs)) for card in self.cardinalities)
        boxes: list[dict[int, Runs]] = []
        values: list[Floats] = []
        for leaves in trees:
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

        Returns the boxes, of which no two overlap, with the margins less ``constant`` as values;
        None if there are more than ``max_boxes``, or if so many pairs of boxes have to be looked
        at that it takes long. Cost: for each tree its leaves times the boxes of those before.
        """
        pairs = 0
        total = BoxSum.of([{}], np.zeros((1, len(self.trees.bias))), self.cardinalities)
        for leaves in self._leaves:
            values = np.array([value - leaves[0][1] for _, value in leaves])
            tree = BoxSum.of([box for box, _ in leaves], values, self.cardinalities)
            pairs += total.n_boxes * tree.n_boxes
            if pairs > MAX_PAIRS_PER_BOX * max_boxes:
                return None
            product = total.times(tree, max_boxes, add=True)
            if product is None:
                return None
            total = product
        return total

    def masks(self) -> LeafMasks | None:
        """Write the trees for complete rows; None where that takes too much memory."""
        return LeafMasks.of(self._leaves, self.trees.bias, self.cardinalities)

    @cached_property
    def constant(self) -> Floats:
        """The bias and a leaf of each tree: what is left is small where values are large."""
        return self.trees.bias + sum(leaves[0][1] for leaves in self._leaves)

    def given(self, codes: Ints) -> BoxSum:
        """Write what is left of the trees where some values are known, up to a constant.

        The constant makes each tree zero in one of its boxes: what the known values decide is
        gone, however large.  # codes: (variables,), -1 where unknown
        """
        known = codes.tolist()

        def living(leaves: list[Leaf]) -> list[Leaf]:
            alive = [
                ({v: allowed for v, allowed in box.items() if known[v] < 0}, value)
                for box, value in leaves
                if all(known[v] < 0 or _contains(allowed, known[v]) for v, allowed in box.items())
            ]
            return [(box, value - alive[0][1]) for box, value in alive]

        zero = np.zeros(len(self.trees.bias))
        return self._write((living(leaves) for leaves in self._leaves), zero).as_boxes()

    @cached_property
    def _leaves(self) -> list[list[Leaf]]:
        """The boxes of each tree's leaves that some value of the density reaches."""
        return [self._leaves_of(root) for root in self.trees.start[:-1].tolist()]

    def _leaves_of(self, root: int) -> list[Leaf]:
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


def _contains(allowed: Runs, value: int) -> bool:
    return any(a <= value < b for a, b in zip(allowed[::2], allowed[1::2], strict=True))
