"""Learn tree-shaped densities, from all rows at once or chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Floats, Ints
from expecta.common.checks import check_number
from expecta.common.errors import DomainError
from expecta.densities.density_learner import (
    DensityLearner,
    LearningOutcome,
    LearningRecord,
    LearningTask,
)
from expecta.densities.row_chunks import HeldOutSample, RowChunks
from expecta.learn.trees.circuit import tree_circuit
from expecta.learn.trees.em import (
    EMProblem,
    EMSchedule,
    TreeModel,
    climb,
    mean_log_likelihood,
)
from expecta.learn.trees.expectation import Counts, TreeRows, expected_counts
from expecta.learn.trees.layout import TreeLayout
from expecta.learn.trees.tree import RootedTree
from expecta.learn.trees.tree_priors import AddedCounts, TreePrior
from expecta.learn.weighted_rows import WeightedRows
from expecta.tables import Encoder

CHUNK_EPOCHS = 12  # of EM over all chunks, at most
CHUNK_TOLERANCE = 1e-4  # relative gain of the score, below which it ends
MAX_TABLE = 1 << 22  # parameters of one pair of columns


class TreeLearner(DensityLearner):
    """A tree over the columns with a state at each; see :mod:`expecta.learn.trees.layout`."""

    _has_hidden_states = False
    tree_: RootedTree
    _counts: Counts  # that the parameters come from
    _waiting: Counts  # of chunks that have not moved the parameters yet
    _updates: int
    _chosen_pseudo_count: float | None = None  # where learning chose it

    def __init__(
        self,
        *,
        pseudo_count: float = 1.0,
        encoder: Encoder | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.pseudo_count = pseudo_count
        self.encoder = encoder
        self.random_state = random_state

    # What derived classes decide: the tree, the number of states, prior and start.

    def _tree(self, rows: WeightedRows) -> RootedTree:
        return RootedTree.greatest(rows.mutual_information(self.encoder_.cardinalities_))

    def _states(self, tree: RootedTree) -> Ints:
        """Return the number of states at each node; here they are the values."""
        return self.encoder_.cardinalities_[tree.variable]

    def _prior(self, layout: TreeLayout) -> TreePrior:
        return AddedCounts.visible(layout, self._node_marginals(layout), self._pseudo_count())

    def _first(self, layout: TreeLayout, rows: TreeRows, rng: np.random.Generator) -> Floats:
        """Return parameters to start from."""
        return layout.normalised(
            AddedCounts.visible(layout, self._node_marginals(layout), 1.0).counts
        )

    def _min_step(self) -> float:
        """Return the smallest step of an update by chunks; 0 where counts are simply added up."""
        return 0.0

    def _summary(self, model: TreeModel) -> str:
        return f"{1 + len(model.history)} steps of EM" if model.history else "by counting"

    # -- learning ---------------------------------------------------------------------

    def _learn(self, task: LearningTask) -> LearningOutcome:
        """Learn by counting; where values are missing, by EM until the held-out score is best."""
        tree = self._tree(task.rows)
        layout = self._layout(tree, self._states(tree))
        rows, held_out = self._tree_rows(tree, task.rows), self._tree_rows(tree, task.held_out)
        prior = self._prior(layout)
        first = self._first(layout, rows, task.rng)
        theta = prior.maximise(expected_counts(layout, first, rows).counts, first)
        model = TreeModel(layout, theta, mean_log_likelihood(layout, theta, held_out), [])
        if np.any(rows.codes < 0) and np.any(layout.states > 1):
            model = climb(model, EMProblem(prior, rows, held_out, EMSchedule(), task.report))
        self._take(model, rows)
        return LearningOutcome(self._summary(model), model.score)

    def _take(self, model: TreeModel, rows: TreeRows) -> None:
        """Set the parameters, and the counts that they come from."""
        self._set_parameters(model.layout, model.theta)
        self._counts = expected_counts(model.layout, self._current(rows), rows)
        self._waiting, self._updates = Counts.zero(model.layout), 1

    def _finish(self, rows: WeightedRows) -> None:
        self.value_counts_ = rows.value_counts(self.encoder_.cardinalities_)
        layout, train = self._layout_, self._tree_rows(self.tree_, rows)
        self._counts = expected_counts(layout, self._current(train), train)
        theta = self._prior(layout).maximise(self._counts.counts, self._theta)
        self._set_parameters(layout, theta)

    def _learn_chunks(
        self,
        chunks: RowChunks,
        held_out: HeldOutSample,
        outcome: LearningOutcome,
        report: Callable[..., None],
    ) -> LearningOutcome:
        """Take steps of EM over all rows, whose expected counts add up over chunks.

        Those held out are left out until the score stops rising; the last step has them too.
        """
        layout, theta = self._layout_, self._theta
        prior, rows = self._prior(layout), self._tree_rows(self.tree_, held_out.rows)
        hidden = held_out.any_missing or self._has_hidden_states
        if not hidden:  # then counts are the same under any parameters
            theta = self._first(layout, rows, np.random.default_rng(0))
        best, steps = -np.inf, 0
        for _ in range(CHUNK_EPOCHS if hidden else 1):
            counts = chunks.total(partial(chunk_counts, layout=layout, theta=theta, out=held_out))
            new = prior.maximise(counts.counts, theta)
            score = mean_log_likelihood(layout, new, rows)
            report(score, "over all rows")
            if score <= best:
                break
            gain, best, theta, steps = score - best, score, new, steps + 1
            if gain < CHUNK_TOLERANCE * abs(best):
                break
        self._counts = chunks.total(partial(chunk_counts, layout=layout, theta=theta))
        self._set_parameters(layout, prior.maximise(self._counts.counts, theta))
        how = f"{outcome.how}, {steps + 1} steps over all rows in chunks"
        n_rows = chunks.n_rows - len(held_out.rows.codes)
        return LearningOutcome(how, best, rows=n_rows)

    def relearned(self, rows: WeightedRows) -> Self:
        """Return the same tree with what other rows say: one step of EM from its parameters."""
        other = copy(self)
        other._finish(rows.merged())
        return other

    def partial_fit(
        self, X: Any, *, sample_weight: npt.ArrayLike | None = None, step: float | None = None
    ) -> Self:
        """Learn from one more chunk of rows, by sufficient statistics.

        The first chunk ever decides encoding, tree and number of states, so let it be
        typical; memory is then that of one chunk. A chunk's expected counts are added
        to those not yet used, and then move the parameters:

        - ``step=None``: by a step that shrinks with every chunk. Where no states are hidden
          and no values are missing, the result is that of learning from all chunks at once.
        - ``step=0``: not yet. ``step=1``: to what the counts since the last move say alone.
          So 0 for each chunk but the last, and 1 there, is one step of EM over all rows.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        sample_weight
            How much each row counts.  # (rows,)
        step
            How far the parameters move, from 0 to 1; None decides.

        Returns
        -------
        self
            The same, which has learned.
        """
        if step is not None and not 0 <= step <= 1:
            raise ValueError(f"a step is between 0 and 1, not {step}")
        begun = hasattr(self, "circuit_")
        self.checked_ = ()
        if not begun:
            self._learn_encoding(X, sample_weight)
        rows = self._encoded(X, sample_weight).merged()
        if not len(rows.codes):
            return self
        if not begun:
            self._begin(rows)
        else:
            new = rows.value_counts(self.encoder_.cardinalities_)
            self.value_counts_ = [a + b for a, b in zip(self.value_counts_, new, strict=True)]
        chunk = self._tree_rows(self.tree_, rows)
        self._waiting = expected_counts(self._layout_, self._current(chunk), chunk) + self._waiting
        if step != 0:
            self._move(step)
        self.learned_ = LearningRecord(
            rows=int(self._counts.weight + self._waiting.weight),
            held_out_rows=0,
            score=mean_log_likelihood(self._layout_, self._theta, chunk),
            independent=self._independent(rows),
            seconds=0.0,
            how=f"{self._updates} updates by chunks",
        )
        return self

    def _move(self, step: float | None) -> None:
        """Move the parameters to what the waiting counts say, by a step."""
        old, new, layout = self._counts, self._waiting, self._layout_
        total = old.weight + new.weight
        if step is None:
            step = max(new.weight / total, self._min_step())
        if not old.weight:
            step = 1.0
        mixed = step * new.counts / new.weight
        if step < 1:
            mixed = mixed + (1 - step) * old.counts / old.weight
        self._counts, self._waiting = Counts(mixed * total, total), Counts.zero(layout)
        self._updates += 1
        # A step of one is EM over the counts alone; else earlier chunks count too.
        weight = new.weight if step == 1 else total
        self._set_parameters(layout, self._prior(layout).maximise(mixed * weight, self._theta))

    def _current(self, rows: TreeRows) -> Floats:
        """Return the parameters to count rows under: any will do where nothing is hidden."""
        if np.any(rows.codes < 0):
            return self._theta
        return self._first(self._layout_, rows, np.random.default_rng(0))

    def _begin(self, rows: WeightedRows) -> None:
        """Set up from a first chunk of rows, learning nothing from it yet but the start."""
        rng = np.random.default_rng(self.random_state)
        self.value_counts_ = rows.value_counts(self.encoder_.cardinalities_)
        tree = self._tree(rows)
        layout = self._layout(tree, self._states(tree))
        self._set_parameters(layout, self._first(layout, self._tree_rows(tree, rows), rng))
        self._counts, self._waiting, self._updates = Counts.zero(layout), Counts.zero(layout), 0

    def state(self) -> dict[str, npt.NDArray[Any] | None]:
        """Return all that was learned as named arrays."""
        chosen = self._chosen_pseudo_count
        return {
            "variable": self.tree_.variable,
            "parent": self.tree_.parent,
            "states": self._layout_.states.astype(np.int32),
            "theta": self._theta,
            "counts": self._counts.counts,
            "waiting": self._waiting.counts,
            "seen": np.array([self._counts.weight, self._waiting.weight, self._updates]),
            "chosen_pseudo_count": None if chosen is None else np.array([chosen]),
        }

    def restore(
        self,
        layout: TreeLayout,
        theta: Floats,
        counts: Counts,
        waiting: Counts,
        updates: int,
        chosen_pseudo_count: float | None,
    ) -> None:
        """Take up what was learned before."""
        self._chosen_pseudo_count = chosen_pseudo_count
        self._set_parameters(layout, theta)
        self._counts, self._waiting, self._updates = counts, waiting, updates

    # -- parts ------------------------------------------------------------------------

    def _set_parameters(self, layout: TreeLayout, theta: Floats) -> None:
        self.tree_ = layout.tree
        self._layout_, self._theta = layout, theta
        self.circuit_ = tree_circuit(layout, theta)

    def _layout(self, tree: RootedTree, states: Ints) -> TreeLayout:
        layout = TreeLayout(tree, states, self.encoder_.cardinalities_[tree.variable])
        widest = np.maximum(layout.above, layout.cardinalities).astype(np.int64)
        largest = widest * layout.states
        if np.max(largest) > MAX_TABLE:
            node = int(np.argmax(largest))
            name = self._column_at(tree, node)
            raise DomainError(
                f"column {name!r} has {layout.cardinalities[node]:,} values, and a table of its "
                f"{layout.states[node]:,} states by {widest[node]:,} is too large; use LatentTree "
                f"with few states, or an encoder with fewer values"
            )
        return layout

    def _column_at(self, tree: RootedTree, node: int) -> str:
        """Return the column at a node of the tree."""
        return str(self.encoder_.feature_names_in_[tree.variable[node]])

    def _tree_rows(self, tree: RootedTree, rows: WeightedRows) -> TreeRows:
        return TreeRows(tree, self.encoder_.cardinalities_, rows.codes, rows.weight)

    def _node_marginals(self, layout: TreeLayout) -> list[Floats]:
        marginals = self._marginals()
        return [marginals[x] for x in layout.tree.variable.tolist()]

    def _pseudo_count(self) -> float:
        chosen = self._chosen_pseudo_count
        return check_number("pseudo_count", self.pseudo_count) if chosen is None else chosen


def chunk_counts(
    codes: Ints, first: int, *, layout: TreeLayout, theta: Floats, out: HeldOutSample | None = None
) -> Counts:
    """Return the expected counts of a chunk under θ, without the rows that are held out."""
    weight = np.ones(len(codes)) if out is None else out.weights(first, len(codes))
    rows = WeightedRows(codes, weight).merged()
    if not len(rows.codes):
        return Counts.zero(layout)
    cards = np.empty_like(layout.cardinalities)
    cards[layout.tree.variable] = layout.cardinalities
    return expected_counts(layout, theta, TreeRows(layout.tree, cards, rows.codes, rows.weight))
