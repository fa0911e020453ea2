"""Compare what was read of a model with the model itself, where the two could differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from expecta.common.arrays import Bools, Floats, Ints
from expecta.expected.compiled_trees import CompiledTrees
from expecta.expected.refusals import ask_complete
from expecta.expected.row_template import representative_rows
from expecta.expected.wrapped_model import WrappedModel
from expecta.readers import Unreadable, frames
from expecta.tables.table import Table, read_table

TRAINING_ROWS = 200  # complete training rows, spread over the table; extremes come in addition
MAX_NODES = 50_000  # of trees whose leaves are all looked for: less than a second
MAX_WALKED = 5_000_000  # drawn rows times trees: the same
DRAWN_ROWS = 64  # rows drawn from the density, at least
TOL = 1e-8  # relative to the largest output
SINGLE_TOL = 1e-5  # the same, for outputs of 32 bits


class ReadingDisagrees(Unreadable):
    """What was read of a model does not predict what the model does."""


def check_reading(
    model: WrappedModel,
    table: Table,
    ask_model: Callable[[Any], Any],
    read_margin: Callable[[Any], Floats],
) -> int:
    """Compare on complete rows, and return on how many: a wrong number is worse than none.

    Rows are training rows spread over the whole table, those with the least and the largest
    number and with each category of a column, and rows drawn from the density: of trees, one at
    least for every leaf that none reached so far; of linear models, one at least for every bin.
    Cost: about a second at most, beside that of the model.

    Parameters
    ----------
    model
        What was read, over the density.
    table
        The training rows.
    ask_model
        The model itself: all outputs of complete rows, of the type that it computes with.
    read_margin
        The margin that was read of a linear model, for rows as the model takes them.

    Raises
    ------
    ReadingDisagrees
        If they differ by more than rounding.
    """
    template = model.template
    which = representative_rows(table, template.complete_rows(table), TRAINING_ROWS)
    rows = model.rows(table)
    outputs = ask_complete(ask_model, template, table, which)
    _compare(model, outputs, model.form_outputs(rows, which))
    assert model.route is not None
    compiled = model.route.margin.compiled
    rng = np.random.default_rng(0)
    if compiled is None:
        codes = _every_bin(model, rng)
        drawn, _ = _drawn(model, codes, rng)
        margin = read_margin(drawn)
    else:
        samples = _samples(model, DRAWN_ROWS, rng)
        codes = _every_leaf(compiled, rows.codes[which], samples, rng)
        for variable, value in model.route.refused:
            codes = codes[codes[:, variable] != value]
        drawn, codes = _drawn(model, codes, rng)
        margin = _Walk(compiled).margin(codes)
    try:
        with frames.quietly():
            outputs = ask_model(drawn)
    except ValueError:  # the model refuses some of them, such as numbers of more than 32 bits
        return len(which)
    _compare(model, outputs, model.respond(margin))
    return len(which) + len(codes)


def _compare(model: WrappedModel, outputs: Any, own: Floats) -> None:
    outputs = np.asarray(outputs)
    tol = SINGLE_TOL if outputs.dtype == np.float32 else TOL
    outputs = np.asarray(outputs, np.float64).reshape(len(outputs), -1)
    finite = np.abs(outputs[np.isfinite(outputs)])
    scale = float(finite.max(initial=0.0))
    if own.shape != outputs.shape or not np.allclose(own, outputs, tol, tol * scale, True):
        raise ReadingDisagrees(
            f"what was read of this {model.name} does not predict what it does; sampling is used "
            f"instead"
        )


# -- rows -----------------------------------------------------------------------------


def _samples(model: WrappedModel, n: int, rng: np.random.Generator) -> Ints:
    """Draw values of the density.  # (n, variables)."""
    unknown = np.full((1, len(model.density.columns)), -1, np.int32)
    return model.density.circuit.sample(n, given=unknown, seed=rng)[0]


def _every_bin(model: WrappedModel, rng: np.random.Generator) -> Ints:
    """Return rows that have every value of every variable, each in some row."""
    cards = model.density.encoder_.cardinalities_
    codes = _samples(model, max(DRAWN_ROWS, int(cards.max(initial=1))), rng)
    for variable, card in enumerate(cards.tolist()):
        rows = rng.permutation(len(codes))[:card]
        codes[rows, variable] = np.arange(card)
    return codes


def _every_leaf(
    compiled: CompiledTrees, reached: Ints, samples: Ints, rng: np.random.Generator
) -> Ints:
    """Return samples, and for each leaf that no row reached one that does."""
    n_trees = len(compiled.trees.start) - 1
    codes = np.concatenate([reached, samples])
    if len(compiled.trees.question) > MAX_NODES or len(codes) * n_trees > MAX_WALKED:
        return samples
    boxes = _Walk(compiled).boxes_without(codes)
    limit = max(0, MAX_WALKED // max(n_trees, 1) - len(codes))
    if len(boxes) > limit:
        boxes = [boxes[i] for i in np.linspace(0, len(boxes) - 1, limit).astype(int)]
    more = samples[rng.integers(len(samples), size=len(boxes))]
    for row, box in zip(more, boxes, strict=True):
        for variable, allowed in box.items():
            row[variable] = rng.choice(np.flatnonzero(allowed))
    return np.concatenate([samples, more])


def _drawn(model: WrappedModel, codes: Ints, rng: np.random.Generator) -> tuple[Any, Ints]:
    """Return rows as the model takes them, and the values of the density that they have.

    These may be others: an integer, or a number of 32 bits, need not lie in a given bin.
    """
    template, encoder = model.template, model.density.encoder_
    rows = model.fill(codes, rng)
    table, codes = read_table(rows), codes.copy()
    for position, name in enumerate(template.columns):
        variable = encoder.variable(name)
        codes[:, variable] = encoder.columns_[variable].encode(table.column(position))
    return rows, codes


# -- trees ----------------------------------------------------------------------------


class _Walk:
    """Walks compiled trees for complete rows of values."""

    def __init__(self, compiled: CompiledTrees) -> None:
        self.trees, self._branches = compiled.trees, compiled.branches
        self._cards = compiled.cardinalities
        self._yes: dict[int, Bools] = {}

    def yes(self, question: int) -> tuple[int, Bools]:
        """Return a question's variable, and for which of its values the answer is yes."""
        variable, runs, _ = self._branches[question]
        if question not in self._yes:
            yes = np.zeros(1 if variable < 0 else int(self._cards[variable]), np.bool_)
            for low, high in zip(runs[::2], runs[1::2], strict=True):
                yes[low:high] = True
            self._yes[question] = yes
        return variable, self._yes[question]

    def margin(self, codes: Ints) -> Floats:
        """Compute the sum of trees.  # (rows, outputs)."""
        trees = self.trees
        total = np.repeat(trees.bias[None], len(codes), axis=0)
        todo = [(int(root), np.arange(len(codes))) for root in trees.start[:-1]]
        while todo:
            node, rows = todo.pop()
            question = int(trees.question[node])
            if question < 0:
                total[rows] += trees.value[node]
                continue
            variable, yes = self.yes(question)
            goes_left = yes[codes[rows, variable]] if variable >= 0 else np.repeat(yes, len(rows))
            for child, part in ((trees.left, rows[goes_left]), (trees.right, rows[~goes_left])):
                if len(part):
                    todo.append((int(child[node]), part))
        return total

    def boxes_without(self, codes: Ints) -> list[dict[int, Bools]]:
        """Return the boxes of leaves that some value reaches, and none of the rows does."""
        trees, boxes = self.trees, []
        todo: list[tuple[int, Ints, dict[int, Bools]]] = [
            (int(root), np.arange(len(codes)), {}) for root in trees.start[:-1]
        ]
        while todo:
            node, rows, box = todo.pop()
            question = int(trees.question[node])
            if question < 0:
                if not len(rows):
                    boxes.append(box)
                continue
            variable, yes = self.yes(question)
            if variable < 0:
                child = trees.left if yes[0] else trees.right
                todo.append((int(child[node]), rows, box))
                continue
            goes_left = yes[codes[rows, variable]]
            for child, part, answer in (
                (trees.left, rows[goes_left], yes),
                (trees.right, rows[~goes_left], ~yes),
            ):
                allowed = box[variable] & answer if variable in box else answer
                if np.any(allowed):
                    todo.append((int(child[node]), part, {**box, variable: allowed}))
        return boxes
