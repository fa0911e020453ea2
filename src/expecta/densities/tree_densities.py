"""Define the densities shaped like a tree over the columns themselves."""

from __future__ import annotations

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.common.arrays import Floats, Ints
from expecta.densities.density_learner import LearningTask
from expecta.densities.tree_learner import TreeLearner
from expecta.learn.trees.em import TreeModel
from expecta.learn.trees.expectation import TreeRows
from expecta.learn.trees.layout import TreeLayout
from expecta.learn.trees.tree import RootedTree
from expecta.learn.trees.tree_priors import AddedCounts, TreePrior
from expecta.learn.weighted_rows import WeightedRows
from expecta.tables import Encoder


class Independent(TreeLearner):
    """Independent columns: the product of their distributions.

    Parameters
    ----------
    pseudo_count
        Rows added to each column, spread as its values are with one row added evenly.
    encoder
        How to read tables; by default ``Encoder()``.
    random_state
        Not used: counting draws nothing.
    random_state
        Not used: counting draws nothing.

    Examples
    --------
    >>> density = Independent(pseudo_count=0).fit({"coin": ["head", "tail", "tail", "tail"]})
    >>> density.marginal("coin").to_dict()
    {'head': 0.25, 'tail': 0.75}
    """

    def _tree(self, rows: WeightedRows) -> RootedTree:
        return RootedTree.star(rows.codes.shape[1], 0)

    def _states(self, tree: RootedTree) -> Ints:
        return np.ones(len(tree), np.int32)

    def _prior(self, layout: TreeLayout) -> TreePrior:
        return AddedCounts.single(layout, self._node_marginals(layout), self._pseudo_count())

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

    Examples
    --------
    >>> rows = {"rain": ["yes", "no"] * 10, "wet": ["yes", "no"] * 9 + ["no", "no"]}
    >>> density = ChowLiu(pseudo_count=0).fit(rows)
    >>> round(density.condition(rain="yes").marginal("wet").to_dict()["yes"], 9)
    0.9
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

    Examples
    --------
    >>> rows = {"kind": ["a", "a", "b", "b"] * 5, "size": [1, 1, 2, 2] * 5}
    >>> density = NaiveBayes("kind", pseudo_count=0).fit(rows)
    >>> density.condition(size=2).marginal("kind").to_dict()
    {'a': 0.0, 'b': 1.0}
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
        information = rows.mutual_information(self.encoder_.cardinalities_)
        return RootedTree.star(n, int(np.argmax(information.sum(axis=0))))

    def _summary(self, model: TreeModel) -> str:
        target = self._column_at(model.layout.tree, len(model.layout.tree) - 1)
        return f"given {target!r}, {super()._summary(model)}"
