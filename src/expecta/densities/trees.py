"""Densities shaped like a tree; all are learned by the same EM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from expecta.arrays import Floats, Ints
from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.densities.learner import Learned, Learner
from expecta.densities.rows import Rows, weights_for
from expecta.encoding import Encoder
from expecta.errors import DomainError
from expecta.learn.information import mutual_information
from expecta.learn.trees.circuit import tree_circuit
from expecta.learn.trees.em import Model, Schedule, climb, held_out, learn
from expecta.learn.trees.expectation import Counts, Table, expected_counts
from expecta.learn.trees.layout import Layout
from expecta.learn.trees.start import prior_counts, prototype_start, visible_prior
from expecta.learn.trees.tree import Tree

__all__ = ["ChowLiu", "Independent", "LatentTree", "NaiveBayes", "TreeLearner"]

MOST_RESTARTS = 8
CHEAP = 50_000_000_000  # multiply-adds of one step from every start
LARGEST_TABLE = 1 << 24  # parameters of one pair of columns


class TreeLearner(Learner):
    """A tree over the columns with a state at each; see :mod:`expecta.learn.trees.layout`."""

    pseudo_count: float
    tree_: Tree
    _waiting: Counts | None = None  # of chunks that have not moved the parameters yet

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
        for states in self._states(tree):
            layout = self._layout(tree, states)
            model = self._model(layout, table, held, rng, report)
            if best is not None and model.score <= best.score:
                break
            best = model
        assert best is not None
        self._take(best.layout, best.theta)
        counts = expected_counts(best.layout, best.theta, table)
        self._counts, self._updates = counts, 1
        return self._words(best), best.score

    def partial_fit(
        self,
        X: Any,  # noqa: ANN401
        *,
        sample_weight: npt.ArrayLike | None = None,
        step: float | None = None,
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
        if not hasattr(self, "circuit_"):
            self._begin(X, sample_weight)
        codes = self.encoder_.transform(X)
        rows = Rows(codes, weights_for(sample_weight, len(codes))).merged()
        fresh = expected_counts(self._layout_, self._theta, self._table(self.tree_, rows))
        new = fresh if self._waiting is None else self._waiting + fresh
        self._waiting = new
        if step == 0 or not new.weight:
            return self
        old = self._counts
        total = old.weight + new.weight
        if step is None:
            step = max(new.weight / total, self._least_step())
        mixed = step * new.counts / new.weight
        if step < 1:
            mixed = mixed + (1 - step) * old.counts / old.weight
        self._counts = Counts(mixed * total, new.log_likelihood, total)
        self._updates += 1
        self._waiting = None
        # A step of one is EM over the counts alone; else what was seen before counts too.
        weight = new.weight if step == 1 else total
        self._take(
            self._layout_, self._layout_.normalised(mixed * weight + self._prior(self._layout_))
        )
        self.learned_ = Learned(
            rows=int(total),
            held_out_rows=0,
            score=new.log_likelihood / new.weight,
            independent=self._independent(rows),
            seconds=0.0,
            how=f"{self._updates} updates by chunks",
        )
        return self

    def _begin(self, X: Any, sample_weight: npt.ArrayLike | None) -> None:  # noqa: ANN401
        """Set up from a first chunk of rows, learning nothing from it yet but the start."""
        rng = np.random.default_rng(self.random_state)
        weight = self._start(X, sample_weight)
        rows = Rows(self.encoder_.transform(X), weight).merged()
        self.marginals_ = rows.marginals(self.encoder_.cardinalities_)
        tree = self._tree(rows)
        layout = self._layout(tree, self._states(tree)[-1])
        self._take(layout, self._first(layout, self._table(tree, rows), rng))
        self._counts, self._updates = Counts(np.zeros(layout.size), 0.0, 0.0), 0

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that was learned as named arrays."""
        counts = self._counts
        return {
            "variable": self.tree_.variable,
            "parent": self.tree_.parent,
            "states": self._layout_.states.astype(np.int32),
            "theta": self._theta,
            "counts": counts.counts,
            "seen": np.array([counts.log_likelihood, counts.weight, self._updates]),
        }

    def restore(self, layout: Layout, theta: Floats, counts: Counts, updates: int) -> None:
        """Take up what was learned before."""
        self._take(layout, theta)
        self._counts, self._updates = counts, updates

    # -- parts ------------------------------------------------------------------------

    def _take(self, layout: Layout, theta: Floats) -> None:
        self.tree_ = layout.tree
        self._layout_, self._theta = layout, theta
        self.circuit_ = tree_circuit(layout, theta)

    def _layout(self, tree: Tree, states: Ints) -> Layout:
        layout = Layout(tree, states, self.encoder_.cardinalities_[tree.variable])
        largest = layout.above.astype(np.int64) * layout.states
        if np.max(largest) > LARGEST_TABLE:
            node = int(np.argmax(largest))
            name = self.columns_at(tree, node)
            raise DomainError(
                f"column {name!r} and its neighbour in the tree have {layout.states[node]:,} and "
                f"{layout.above[node]:,} values, too many for a table of all pairs; use "
                f"LatentTree, or an encoder with fewer values"
            )
        return layout

    def columns_at(self, tree: Tree, node: int) -> str:
        """Return the column at a node of the tree."""
        return str(self.encoder_.feature_names_in_[tree.variable[node]])

    def _table(self, tree: Tree, rows: Rows) -> Table:
        return Table(tree, self.encoder_.cardinalities_, rows.codes, rows.weight)

    def _node_marginals(self, layout: Layout) -> list[Floats]:
        return [self.marginals_[x] for x in layout.tree.variable.tolist()]

    def _pseudo_count(self) -> float:
        if not self.pseudo_count >= 0:
            raise ValueError(f"pseudo_count is a number of at least 0, not {self.pseudo_count!r}")
        return float(self.pseudo_count)


class Independent(TreeLearner):
    """Columns that know nothing of each other: the product of their distributions.

    Parameters
    ----------
    pseudo_count
        Rows added to each column, spread as its values are with one row added evenly.
    encoder
        How to read tables; by default ``Encoder()``.

    Examples
    --------
    >>> density = Independent(pseudo_count=0).fit({"coin": ["head", "tail", "tail", "tail"]})
    >>> density.marginal("coin").to_dict()
    {'head': 0.25, 'tail': 0.75}
    """

    def __init__(
        self,
        *,
        pseudo_count: float = 0.1,
        encoder: Encoder | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.pseudo_count = pseudo_count
        self.encoder = encoder
        self.random_state = random_state

    def _tree(self, rows: Rows) -> Tree:
        return Tree.star(rows.codes.shape[1], 0)

    def _states(self, tree: Tree) -> Sequence[Ints]:
        return [np.ones(len(tree), np.int32)]

    def _prior(self, layout: Layout) -> Floats:
        return prior_counts(layout, self._node_marginals(layout), self._pseudo_count())

    def _first(self, layout: Layout, table: Table, rng: np.random.Generator) -> Floats:
        return layout.normalised(np.ones(layout.size))


class ChowLiu(TreeLearner):
    """A tree over the columns: each depends on one other, those that tell most about each other.

    The tree of greatest likelihood (Chow and Liu 1968), rooted at its centre. Deterministic,
    so that the most probable completion and the entropy are exact.

    Parameters
    ----------
    pseudo_count
        Rows added to each conditional distribution, spread as the column's values are.
    encoder
        How to read tables; by default ``Encoder()``.
    random_state
        Chooses the rows held out to score.

    Notes
    -----
    Cost: mutual information of all pairs, then one pass over the rows. With unknown cells
    the parameters are learned by EM, and pairs are scored on the rows that know both.
    """

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

    def of_rows(self, rows: Rows, encoder: Encoder) -> ProbabilisticCircuit:
        """Learn from rows that are encoded already, with none held out."""
        self.encoder_ = encoder
        self.marginals_ = rows.marginals(encoder.cardinalities_)
        self._learn(rows, rows, np.random.default_rng(0), lambda *_: None)
        return self.circuit_


class NaiveBayes(TreeLearner):
    """Columns that are independent given one of them, the class.

    Deterministic, so that the most probable completion and the entropy are exact.

    Parameters
    ----------
    target
        The column that is the class. By default the one that tells most about all others.
    pseudo_count
        Rows added to each conditional distribution, spread as the column's values are.
    encoder
        How to read tables; by default ``Encoder()``.
    random_state
        Chooses the rows held out to score.
    """

    def __init__(
        self,
        target: str | None = None,
        *,
        pseudo_count: float = 1.0,
        encoder: Encoder | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.target = target
        self.pseudo_count = pseudo_count
        self.encoder = encoder
        self.random_state = random_state

    def _tree(self, rows: Rows) -> Tree:
        n = rows.codes.shape[1]
        if self.target is not None:
            return Tree.star(n, self.encoder_.variable(self.target))
        information = mutual_information(rows.codes, self.encoder_.cardinalities_, rows.weight)
        return Tree.star(n, int(np.argmax(information.sum(axis=0))))

    def _words(self, model: Model) -> str:
        target = self.columns_at(model.layout.tree, len(model.layout.tree) - 1)
        return f"given {target!r}, {super()._words(model)}"


class LatentTree(TreeLearner):
    """A tree of hidden states, one at each column: the default density.

    The tree is Chow and Liu's; the hidden states of neighbours depend on each other, and
    each column on its own. It fits far better than a tree over the columns themselves.
    Learned by EM that starts from random prototype rows: first in batches with an annealed
    step where rows are many, then over all rows, until the held-out score stops rising.

    Parameters
    ----------
    states
        Number of hidden states K, or several to try in turn, the least first, as long as
        the held-out score rises.
    pseudo_count
        Rows added to each distribution: transitions evenly, values as in the whole column.
    restarts
        Starts to try; after every few epochs the better half goes on. By default up to 8,
        as many as are cheap.
    max_epochs
        Steps of EM over all rows, at most.
    batch_size
        Rows of a batch; by default a twentieth of the rows, between 256 and 4,096.
    patience, tolerance
        Stop after so many epochs without a relative gain of the held-out score.
    encoder
        How to read tables; by default ``Encoder()``.
    random_state
        Seed of the starts, batches and held-out rows. The same seed gives the same model
        on any number of threads.

    Notes
    -----
    Cost of an epoch: 3 K² multiply-adds per row and column as matrix products, where
    rows that agree below a node of the tree are computed once. The circuit has about
    K² + K x values parameters per column.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(2, size=500)
    >>> density = LatentTree(states=2).fit(np.column_stack([x, x, 1 - x]))
    >>> bool(density.score([[1, 1, 0]]) > np.log(0.4))
    True
    """

    def __init__(
        self,
        *,
        states: int | Sequence[int] = (8, 16, 32),
        pseudo_count: float = 0.1,
        restarts: int | None = None,
        max_epochs: int = 100,
        batch_size: int | None = None,
        patience: int = 4,
        tolerance: float = 1e-4,
        encoder: Encoder | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.states = states
        self.pseudo_count = pseudo_count
        self.restarts = restarts
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.patience = patience
        self.tolerance = tolerance
        self.encoder = encoder
        self.random_state = random_state

    def _states(self, tree: Tree) -> Sequence[Ints]:
        wanted = sorted({int(k) for k in np.atleast_1d(np.asarray(self.states, np.int64))})
        if not wanted or wanted[0] < 1:
            raise ValueError(f"states are numbers of at least 1, not {self.states!r}")
        return [np.full(len(tree), k, np.int32) for k in wanted]

    def _prior(self, layout: Layout) -> Floats:
        return prior_counts(layout, self._node_marginals(layout), self._pseudo_count())

    def _first(self, layout: Layout, table: Table, rng: np.random.Generator) -> Floats:
        return prototype_start(layout, self._node_marginals(layout), table, rng)

    def _model(
        self,
        layout: Layout,
        table: Table,
        valid: Table,
        rng: np.random.Generator,
        report: Callable[..., None],
    ) -> Model:
        prior = self._prior(layout)
        schedule = Schedule(
            max_epochs=self.max_epochs,
            batch_size=self.batch_size,
            patience=self.patience,
            tolerance=self.tolerance,
        )

        def note(score: float) -> None:
            report(score, f"with {layout.states[0]} states")

        restarts = self.restarts
        if restarts is None:
            work = 3 * len(table) * int(np.sum(layout.states.astype(np.int64) * layout.above))
            restarts = max(1, min(MOST_RESTARTS, CHEAP // work))
        starts = [self._first(layout, table, rng) for _ in range(restarts)]
        return learn(layout, starts, prior, table, valid, schedule, rng, note)

    def _words(self, model: Model) -> str:
        return f"{model.layout.states[0]} states each, {len(model.history)} epochs"

    def _least_step(self) -> float:
        return float((self._updates + 2) ** -0.6)
