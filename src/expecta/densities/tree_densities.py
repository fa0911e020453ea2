"""Define the densities shaped like a tree; all are learned by the same EM."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.common.arrays import Floats, Ints
from expecta.common.checks import check_integer, check_number
from expecta.densities.density_learner import LearningTask
from expecta.densities.tree_learner import TreeLearner
from expecta.learn.information import mutual_information
from expecta.learn.trees.em import (
    EMProblem,
    EMSchedule,
    TreeModel,
    learn,
    prior_counts,
    prototype_start,
)
from expecta.learn.trees.expectation import TreeRows
from expecta.learn.trees.layout import TreeLayout
from expecta.learn.trees.tree import RootedTree
from expecta.learn.vtrees import balanced_by_information
from expecta.learn.weighted_rows import WeightedRows
from expecta.tables import Encoder

TREES = "chow-liu", "balanced"
MAX_STATES = 2048
MAX_RESTARTS = 8
MAX_WORK = 50_000_000_000  # multiply-adds of one step from every start


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

    def _tree(self, rows: WeightedRows) -> RootedTree:
        return RootedTree.star(rows.codes.shape[1], 0)

    def _states(self, tree: RootedTree) -> Sequence[Ints]:
        return [np.ones(len(tree), np.int32)]

    def _prior(self, layout: TreeLayout) -> Floats:
        return prior_counts(layout, self._node_marginals(layout), self._pseudo_count())

    def _first(self, layout: TreeLayout, rows: TreeRows, rng: np.random.Generator) -> Floats:
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
    Cost: mutual information of all pairs, then one pass over the rows. With missing values
    the parameters are learned by EM, and pairs are scored on the rows that know both.
    """

    def of_rows(self, rows: WeightedRows, encoder: Encoder) -> ProbabilisticCircuit:
        """Learn from rows that are encoded already, with none held out."""
        self.encoder_ = encoder
        self.value_counts_ = rows.value_counts(encoder.cardinalities_)
        self._learn(LearningTask(rows, rows, np.random.default_rng(0), lambda *_: None))
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
        super().__init__(pseudo_count=pseudo_count, encoder=encoder, random_state=random_state)
        self.target = target

    def _tree(self, rows: WeightedRows) -> RootedTree:
        n = rows.codes.shape[1]
        if self.target is not None:
            return RootedTree.star(n, self.encoder_.variable(self.target))
        information = mutual_information(rows.codes, self.encoder_.cardinalities_, rows.weight)
        return RootedTree.star(n, int(np.argmax(information.sum(axis=0))))

    def _summary(self, model: TreeModel) -> str:
        target = self._column_at(model.layout.tree, len(model.layout.tree) - 1)
        return f"given {target!r}, {super()._summary(model)}"


class LatentTree(TreeLearner):
    """A tree of hidden states, one at each column: the default density.

    The tree is Chow and Liu's, or one that is balanced; the hidden states of neighbours depend
    on each other, and each column on its own. It fits far better than a tree over the columns
    themselves. Learned by EM that starts from random prototype rows: first in batches with an
    annealed step where rows are many, then over all rows, until the held-out score stops
    rising.

    Parameters
    ----------
    states
        Number of hidden states K, or several to try in turn, the smallest first, as long as
        the held-out score rises. If none of several beats independent columns, K is 1.
    tree
        "chow-liu", the tree of greatest information, fits best. "balanced" is as deep as the
        logarithm of the number of columns: its vtree suits a circuit of many columns better.
    pseudo_count
        Rows added to each distribution: transitions evenly, values as in the whole column.
    restarts
        Starts to try; after every few epochs the better half goes on. By default up to 8,
        as many as are cheap.
    max_epochs
        Steps of EM over all rows, at most: of each stretch between two choices of starts,
        and of the last.
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
        states: int | Sequence[int] = (4, 8, 16, 32),
        tree: str = "chow-liu",
        pseudo_count: float = 0.1,
        restarts: int | None = None,
        max_epochs: int = 100,
        batch_size: int | None = None,
        patience: int = 4,
        tolerance: float = 1e-4,
        encoder: Encoder | None = None,
        random_state: int | None = 0,
    ) -> None:
        super().__init__(pseudo_count=pseudo_count, encoder=encoder, random_state=random_state)
        self.states = states
        self.tree = tree
        self.restarts = restarts
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.patience = patience
        self.tolerance = tolerance

    def _tree(self, rows: WeightedRows) -> RootedTree:
        if self.tree not in TREES:
            raise ValueError(f"tree is one of {', '.join(TREES)}, not {self.tree!r}")
        if self.tree == "chow-liu":
            return super()._tree(rows)
        information = mutual_information(rows.codes, self.encoder_.cardinalities_, rows.weight)
        return RootedTree.promoted(balanced_by_information(information), information)

    def _states(self, tree: RootedTree) -> Sequence[Ints]:
        wanted = np.unique(np.asarray(self.states))
        good = wanted.dtype.kind in "iu" and len(wanted) and wanted[0] >= 1
        if not good or wanted[-1] > MAX_STATES:
            raise ValueError(f"states are numbers from 1 to {MAX_STATES:,}, not {self.states!r}")
        return [np.full(len(tree), k, np.int32) for k in wanted.tolist()]

    def _prior(self, layout: TreeLayout) -> Floats:
        return prior_counts(layout, self._node_marginals(layout), self._pseudo_count())

    def _first(self, layout: TreeLayout, rows: TreeRows, rng: np.random.Generator) -> Floats:
        return prototype_start(layout, self._node_marginals(layout), rows, rng)

    def _schedule(self) -> EMSchedule:
        batch = self.batch_size
        return EMSchedule(
            max_epochs=check_integer("max_epochs", self.max_epochs, 1),
            batch_size=None if batch is None else check_integer("batch_size", batch, 1),
            patience=check_integer("patience", self.patience, 1),
            tolerance=check_number("tolerance", self.tolerance),
        )

    def _model(self, layout: TreeLayout, problem: EMProblem, rng: np.random.Generator) -> TreeModel:
        if self.restarts is not None:
            restarts = check_integer("restarts", self.restarts, 1)
        else:
            work = int(np.sum(layout.states.astype(np.int64) * layout.above))
            restarts = max(1, min(MAX_RESTARTS, MAX_WORK // (3 * len(problem.rows) * work)))
        starts = [self._first(layout, problem.rows, rng) for _ in range(restarts)]
        note = partial(problem.report, what=f"with {layout.states[0]} states")
        return learn(layout, starts, problem._replace(report=note), rng)

    def _summary(self, model: TreeModel) -> str:
        return f"{model.layout.states[0]} states each, {len(model.history)} epochs"

    def _min_step(self) -> float:
        return float((self._updates + 2) ** -0.6)

    def _current(self, rows: TreeRows) -> Floats:
        return self._theta
