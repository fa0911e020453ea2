"""What tree-shaped densities share: learning at once, and learning by chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Floats, Ints
from expecta.common.checks import check_number
from expecta.common.errors import DomainError
from expecta.densities.learner import Learned, Learner
from expecta.densities.weighted_rows import Rows
from expecta.learn.information import mutual_information
from expecta.learn.trees.circuit import tree_circuit
from expecta.learn.trees.em import Model, Schedule, climb, held_out
from expecta.learn.trees.expectation import Counts, Table, expected_counts, nothing
from expecta.learn.trees.layout import Layout
from expecta.learn.trees.start import visible_prior
from expecta.learn.trees.tree import Tree
from expecta.tables import Encoder

__all__ = ["TreeLearner"]

LARGEST_TABLE = 1 << 22  # parameters of one pair of columns

NOISE, NOISE_PER_ROW = 3.0, 0.025  # nats that held-out rows gain by chance: of all, and each


class TreeLearner(Learner):
    """A tree over the columns with a state at each; see :mod:`expecta.learn.trees.layout`."""

    tree_: Tree
    _counts: Counts  # that the parameters come from
    _waiting: Counts  # of chunks that have not moved the parameters yet
    _updates: int

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

    def _tree(self, rows: Rows) -> Tree:
        information = mutual_information(rows.codes, self.encoder_.cardinalities_, rows.weight)
        return Tree.greatest(information)

    def _states(self, tree: Tree) -> Sequence[Ints]:
        """Return the numbers of states to try; here they are the values."""
        return [self.encoder_.cardinalities_[tree.variable]]

    def _prior(self, layout: Layout) -> Floats:
        return visible_prior(layout, self._node_marginals(layout), self._pseudo_count())

    def _model(
        self,
        layout: Layout,
        table: Table,
        valid: Table,
        rng: np.random.Generator,
        report: Callable[..., None],
    ) -> Model:
        """Learn the parameters of one layout; here counting is all, but for unknown cells."""
        prior = self._prior(layout)
        counts = expected_counts(layout, self._first(layout, table, rng), table).counts
        theta = layout.normalised(counts + prior)
        model = Model(layout, theta, held_out(layout, theta, valid), [])
        if np.all(table.codes >= 0) or np.all(layout.states == 1):
            return model
        return climb(model, prior, table, valid, Schedule(), report)

    def _first(self, layout: Layout, table: Table, rng: np.random.Generator) -> Floats:
        """Return parameters to start from."""
        return layout.normalised(visible_prior(layout, self._node_marginals(layout), 1.0))

    def _least_step(self) -> float:
        """Return the least step of an update by chunks; 0 where counts are simply added up."""
        return 0.0

    def _words(self, model: Model) -> str:
        return f"{1 + len(model.history)} steps of EM" if model.history else "by counting"

    # -- learning ---------------------------------------------------------------------

    def _learn(
        self,
        rows: Rows,
        valid: Rows,
        rng: np.random.Generator,
        report: Callable[..., None],
    ) -> tuple[str, float]:
        tree = self._tree(rows)
        table, held = self._table(tree, rows), self._table(tree, valid)
        best: Model | None = None
        choices = self._states(tree)
        for states in choices:
            model = self._model(self._layout(tree, states), table, held, rng, report)
            if best is not None and model.score <= best.score:
                break
            best = model
        assert best is not None
        noise = min(NOISE / float(valid.weight.sum()), NOISE_PER_ROW)
        if len(choices) > 1 and best.score <= self._independent(valid) + noise:
            alone = self._layout(tree, np.ones_like(choices[0]))
            best = self._model(alone, table, held, rng, report)
        self._take(best.layout, best.theta)
        self._counts = expected_counts(best.layout, self._current(table), table)
        self._waiting, self._updates = nothing(best.layout), 1
        return self._words(best), best.score

    def _finish(self, rows: Rows) -> None:
        self.value_counts_ = rows.value_counts(self.encoder_.cardinalities_)
        layout, table = self._layout_, self._table(self.tree_, rows)
        self._counts = expected_counts(layout, self._current(table), table)
        self._take(layout, layout.normalised(self._counts.counts + self._prior(layout)))

    def partial_fit(
        self, X: Any, *, sample_weight: npt.ArrayLike | None = None, step: float | None = None
    ) -> Self:
        """Learn from one more chunk of rows, by sufficient statistics.

        The first chunk ever decides encoding, tree and number of states, so let it be
        typical; memory is then that of one chunk. A chunk's expected counts are added
        to those not yet used, and then move the parameters:

        - ``step=None``: by a step that shrinks as more is seen. Where no states are hidden
          and no cells are missing, the result is that of learning from all chunks at once.
        - ``step=0``: not yet. ``step=1``: to what the counts since the last move say alone.
          So 0 for each chunk but the last, and 1 there, is one step of EM over all rows.
        """
        if step is not None and not 0 <= step <= 1:
            raise ValueError(f"a step is between 0 and 1, not {step}")
        begun = hasattr(self, "circuit_")
        if not begun:
            self._learn_encoding(X, sample_weight)
        rows = self._encoded(X, sample_weight).merged()
        if not len(rows.codes):
            return self
        if not begun:
            self._begin(rows)
        else:
            fresh = rows.value_counts(self.encoder_.cardinalities_)
            self.value_counts_ = [a + b for a, b in zip(self.value_counts_, fresh, strict=True)]
        table = self._table(self.tree_, rows)
        self._waiting = expected_counts(self._layout_, self._current(table), table) + self._waiting
        if step != 0:
            self._move(step)
        self.learned_ = Learned(
            rows=int(self._counts.weight + self._waiting.weight),
            held_out_rows=0,
            score=held_out(self._layout_, self._theta, table),
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
            step = max(new.weight / total, self._least_step())
        if not old.weight:
            step = 1.0
        mixed = step * new.counts / new.weight
        if step < 1:
            mixed = mixed + (1 - step) * old.counts / old.weight
        self._counts, self._waiting = Counts(mixed * total, total), nothing(layout)
        self._updates += 1
        # A step of one is EM over the counts alone; else what was seen before counts too.
        weight = new.weight if step == 1 else total
        self._take(layout, layout.normalised(mixed * weight + self._prior(layout)))

    def _current(self, table: Table) -> Floats:
        """Return the parameters to count a chunk under: any will do where nothing is hidden."""
        if np.any(table.codes < 0):
            return self._theta
        return self._first(self._layout_, table, np.random.default_rng(0))

    def _begin(self, rows: Rows) -> None:
        """Set up from a first chunk of rows, learning nothing from it yet but the start."""
        rng = np.random.default_rng(self.random_state)
        self.value_counts_ = rows.value_counts(self.encoder_.cardinalities_)
        tree = self._tree(rows)
        layout = self._layout(tree, self._states(tree)[-1])
        self._take(layout, self._first(layout, self._table(tree, rows), rng))
        self._counts, self._waiting, self._updates = nothing(layout), nothing(layout), 0

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that was learned as named arrays."""
        return {
            "variable": self.tree_.variable,
            "parent": self.tree_.parent,
            "states": self._layout_.states.astype(np.int32),
            "theta": self._theta,
            "counts": self._counts.counts,
            "waiting": self._waiting.counts,
            "seen": np.array([self._counts.weight, self._waiting.weight, self._updates]),
        }

    def restore(
        self, layout: Layout, theta: Floats, counts: Counts, waiting: Counts, updates: int
    ) -> None:
        """Take up what was learned before."""
        self._take(layout, theta)
        self._counts, self._waiting, self._updates = counts, waiting, updates

    # -- parts ------------------------------------------------------------------------

    def _take(self, layout: Layout, theta: Floats) -> None:
        self.tree_ = layout.tree
        self._layout_, self._theta = layout, theta
        self.circuit_ = tree_circuit(layout, theta)

    def _layout(self, tree: Tree, states: Ints) -> Layout:
        layout = Layout(tree, states, self.encoder_.cardinalities_[tree.variable])
        widest = np.maximum(layout.above, layout.cardinalities).astype(np.int64)
        largest = widest * layout.states
        if np.max(largest) > LARGEST_TABLE:
            node = int(np.argmax(largest))
            name = self._column_at(tree, node)
            raise DomainError(
                f"column {name!r} has {layout.cardinalities[node]:,} values, and a table of its "
                f"{layout.states[node]:,} states by {widest[node]:,} is too large; use LatentTree "
                f"with few states, or an encoder with fewer values"
            )
        return layout

    def _column_at(self, tree: Tree, node: int) -> str:
        """Return the column at a node of the tree."""
        return str(self.encoder_.feature_names_in_[tree.variable[node]])

    def _table(self, tree: Tree, rows: Rows) -> Table:
        return Table(tree, self.encoder_.cardinalities_, rows.codes, rows.weight)

    def _node_marginals(self, layout: Layout) -> list[Floats]:
        marginals = self._marginals()
        return [marginals[x] for x in layout.tree.variable.tolist()]

    def _pseudo_count(self) -> float:
        return check_number("pseudo_count", self.pseudo_count)
