"""Learn a tree of hidden states, the default density: how many states, and from which starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.checks import check_integer, check_number
from expecta.densities.density_learner import LearningOutcome, LearningTask, independent_scores
from expecta.densities.tree_learner import TreeLearner
from expecta.learn.trees.em import EMProblem, EMSchedule, TreeModel, learn, prototype_start
from expecta.learn.trees.expectation import TreeRows, log_likelihoods
from expecta.learn.trees.layout import TreeLayout
from expecta.learn.trees.tree import RootedTree
from expecta.learn.trees.tree_priors import LatentPrior
from expecta.learn.vtrees import balanced_by_information
from expecta.learn.weighted_rows import WeightedRows
from expecta.tables import Encoder

TREES = "chow-liu", "balanced"
MAX_STATES = 2048
SIZES, LARGE_SIZES = (4, 8, 16, 32), (64,)  # by default; large ones where rows are many ...
MAX_LARGE_CELLS = 400_000  # ... and the table is no larger: they cost most
MAX_BINS = 32  # of the default encoder: smooth leaves can afford them
MAX_EDGE_BINS = 12  # that information is counted over
MAX_CLAMPED = 8  # values of a column with states of their own
SPIKE = 4.0  # times the rows of a bin on average, that a single number has
PSEUDO_COUNT = 2.0  # with columns of numbers, ...
PSEUDO_COUNTS = 0.1, 2.0  # ... and to try without
FOLDS, FOLD_EPOCHS = 5, 30  # of cross-validation, and over all rows after a choice
MAX_FOLD_ROWS, MAX_FOLD_CELLS = 2000, 200_000  # from here on a tenth is held out once
MAX_CHOICE_ROWS = 20_000  # that the number of states is chosen with
LAST_BATCH_EPOCHS, LAST_STEP = 2, 0.3  # over all rows, where these are more
RESTARTS = 4, 2  # of small tables and of others
MAX_RESTARTS = 8  # where rows to hold out are given
MAX_WORK = 50_000_000_000  # multiply-adds of one step from every start

Part = tuple[TreeRows, TreeRows]  # to learn from, and to score


class LearningPlan(NamedTuple):
    """How to learn a tree with any number of states."""

    tree: RootedTree
    schedule: EMSchedule
    restarts: int
    pseudo_count: float
    task: LearningTask


class StatesChoice(NamedTuple):
    """A number of states, 0 for independent columns, and what held-out rows say of it."""

    size: int
    pseudo_count: float
    models: list[TreeModel]  # one for each part of the rows
    scores: Floats  # log-likelihood of each held-out row
    score: float  # their mean


class LatentTree(TreeLearner):
    """A tree of hidden states, one for each column: the default density.

    The tree is a Chow-Liu tree, by mutual information corrected for chance, or a balanced one;
    hidden states of neighbours depend on each other, and each column on its hidden state. It fits
    far better than a tree over the columns themselves. The bins of numbers of a state are shrunk
    towards a normal curve, so that many bins do little harm with few rows; in tables with
    numbers, each state of a column with at most 8 values stands for one value, which keeps the
    dependence between such columns. See ``expecta.learn.trees.tree_priors``.

    Learned by EM that starts from random prototype rows: first in batches with an annealed step
    where rows are many, then over all rows.

    Parameters
    ----------
    states
        Number of hidden states K, or several numbers to try, the smallest first, as long as the
        held-out score rises: by five-fold cross-validation below 2,000 rows (and 200,000 cells),
        otherwise on held-out rows, with at most 20,000 rows. If none of several is better than
        independent columns by more than a standard error, columns are independent. By default
        4, 8, 16, 32, and 64 with at least 2,000 rows and at most 400,000 cells.
    tree
        "chow-liu", the tree of maximum information, fits best. "balanced" has a depth of the
        logarithm of the number of columns, which suits circuits of many columns better.
    pseudo_count
        Number of rows added to each distribution of states and of values: to states half by the
        parent's state and half by their distribution, to values by that of the whole column. By
        default 2 with columns of numbers; otherwise 0.1 or, where the number of states is chosen
        and the held-out score is higher, 2.
    smoothing
        Number of rows added to each distribution of bins of numbers, as a normal curve.
    restarts
        Number of random starts; after every few epochs only the better half continues. By
        default 4 below 2,000 rows, otherwise 2, and 8 where held-out rows are given.
    max_epochs
        Maximum number of EM steps over all rows, between two selections of starts and after the
        last.
    batch_size
        Number of rows per batch; by default a twentieth of the rows, between 256 and 4,096.
    patience, tolerance
        Stop after ``patience`` epochs without a relative gain of ``tolerance`` of the score: that
        of held-out rows if these are given or there are 2,000 rows, otherwise of training rows.
    encoder
        How to read tables; by default ``Encoder(bins="tails", max_bins=32)``.
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

    _has_hidden_states = True

    def __init__(
        self,
        *,
        states: int | Sequence[int] | None = None,
        tree: str = "chow-liu",
        pseudo_count: float | None = None,
        smoothing: float = 100.0,
        restarts: int | None = None,
        max_epochs: int = 100,
        batch_size: int | None = None,
        patience: int = 4,
        tolerance: float = 1e-4,
        encoder: Encoder | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.states = states
        self.tree = tree
        self.pseudo_count = pseudo_count  # type: ignore[assignment]
        self.smoothing = smoothing
        self.restarts = restarts
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.patience = patience
        self.tolerance = tolerance
        self.encoder = encoder
        self.random_state = random_state

    # -- the tree, its states and their prior -----------------------------------------

    def default_encoder(self) -> Encoder:
        """Return an encoder that cuts long tails finer."""
        return Encoder(bins="tails", max_bins=MAX_BINS)

    def _tree(self, rows: WeightedRows) -> RootedTree:
        if self.tree not in TREES:
            raise ValueError(f"tree is one of {', '.join(TREES)}, not {self.tree!r}")
        # bits that are rare coincide by chance: a row that is added tells these apart
        added = 0.0 if np.any(self._ordered) else 1.0
        information = rows.edge_information(self._edge_groups(), pseudo_count=added)
        if self.tree == "chow-liu":
            return RootedTree.greatest(information)
        information = np.maximum(information, 0.0)
        return RootedTree.promoted(balanced_by_information(information), information)

    def _edge_groups(self) -> list[Ints]:
        """Join neighbouring bins of numbers to few of about equal weight; return their groups."""
        groups = [np.arange(card) for card in self.encoder_.cardinalities_.tolist()]
        ordered = self._ordered
        for variable in np.flatnonzero(ordered > MAX_EDGE_BINS).tolist():
            bins = int(ordered[variable])
            counts = self.value_counts_[variable][:bins]
            middle = (np.cumsum(counts) - counts / 2) / max(counts.sum(), 1e-300)
            group = np.unique(np.floor(middle * MAX_EDGE_BINS), return_inverse=True)[1]
            others = group[-1] + 1 + np.arange(len(groups[variable]) - bins)  # "missing"
            groups[variable] = np.concatenate([group, others])
        return groups

    @property
    def _ordered(self) -> Ints:
        """How many of each column's values are bins of numbers, where they are many."""
        return np.array(
            [
                column.plain.cardinality
                if column.ordered and column.kind != "code" and column.cardinality > MAX_CLAMPED
                else 0
                for column in self.encoder_.columns_
            ]
        )

    def _sizes(self, codes: Ints | None = None) -> list[int]:
        if self.states is None:
            many = codes is not None and len(codes) >= MAX_FOLD_ROWS
            small = codes is not None and codes.size <= MAX_LARGE_CELLS
            return [*SIZES, *(LARGE_SIZES if many and small else ())]
        wanted = np.unique(np.asarray(self.states))
        good = wanted.dtype.kind in "iu" and len(wanted) and wanted[0] >= 1
        if not good or wanted[-1] > MAX_STATES:
            raise ValueError(f"states are numbers from 1 to {MAX_STATES:,}, not {self.states!r}")
        return [int(k) for k in wanted]

    def _states(self, tree: RootedTree) -> Ints:
        return self._states_of(tree, self._sizes()[-1])

    def _states_of(self, tree: RootedTree, size: int) -> Ints:
        """Return the states at each node: K, and one for each value where they are clamped.

        A size of 0 is a single state each.
        """
        cards = self.encoder_.cardinalities_[tree.variable]
        # K is the least number of states, so that at least one column must not be clamped
        clamped = (cards <= MAX_CLAMPED) & (cards > 1) & np.any(self._ordered > 0)
        states = np.where(clamped, size + cards, size) if size else np.ones_like(cards)
        return states.astype(np.int32)

    def _prior(self, layout: TreeLayout) -> LatentPrior:
        return self._prior_of(layout, self._node_marginals(layout), self._pseudo_count())

    def _prior_of(
        self, layout: TreeLayout, marginals: Sequence[Floats], pseudo_count: float
    ) -> LatentPrior:
        smoothing = check_number("smoothing", self.smoothing)
        ordered = self._ordered[layout.tree.variable]
        spikes = list(map(self._spikes, layout.tree.variable.tolist(), ordered.tolist()))
        return LatentPrior(layout, marginals, ordered, pseudo_count, smoothing, spikes)

    def _spikes(self, variable: int, n_bins: int) -> Bools:
        """Whether each value is a single number that far more rows have than a bin on average."""
        column = self.encoder_.columns_[variable]
        spikes = np.zeros(column.cardinality, np.bool_)
        if n_bins:
            counts, plain = self.value_counts_[variable][:n_bins], column.plain
            spikes[:n_bins] = (plain.lows == plain.highs) & (counts > SPIKE * counts.mean())
        return spikes

    def _pseudo_counts(self) -> Sequence[float]:
        """Return what to try, the weakest first."""
        if self.pseudo_count is not None or self._chosen_pseudo_count is not None:
            return [super()._pseudo_count()]
        return [PSEUDO_COUNT] if np.any(self._ordered) else PSEUDO_COUNTS

    def _pseudo_count(self) -> float:
        return self._pseudo_counts()[0]

    # -- learning ---------------------------------------------------------------------

    def _learn(self, task: LearningTask) -> LearningOutcome:
        self._chosen_pseudo_count = None
        sizes, everything = self._sizes(task.rows.codes), task.everything
        small = everything is not None and (
            len(everything.codes) < MAX_FOLD_ROWS and everything.codes.size < MAX_FOLD_CELLS
        )
        restarts = RESTARTS[0 if small else 1]
        if everything is None:
            restarts = MAX_RESTARTS
        if self.restarts is not None:
            restarts = check_integer("restarts", self.restarts, 1)
        tree = self._tree(task.rows if everything is None else everything)
        plan = LearningPlan(tree, self._schedule(), restarts, self._pseudo_count(), task)
        if everything is not None and small and len(sizes) > 1 and len(everything.codes) >= FOLDS:
            return self._learn_in_turn(plan, sizes, everything)

        rows, held_out = (
            self._tree_rows(tree, _sample(part, task.rng)) for part in (task.rows, task.held_out)
        )
        choice = self._choose(plan, sizes, [(rows, held_out)], stop=not small)
        model, score = choice.models[0], choice.score
        if len(rows) < len(task.rows.codes):
            rows = self._tree_rows(tree, task.rows)
            steps = {"batch_epochs": LAST_BATCH_EPOCHS, "first_step": LAST_STEP}
            model = self._go_on(plan, choice, rows, held_out, max_epochs=FOLD_EPOCHS, **steps)
            score = model.score
        elif everything is not None:
            rows = self._tree_rows(tree, everything.merged())
            model = self._go_on(plan, choice, rows, max_epochs=FOLD_EPOCHS, batch_epochs=0)
        self._chosen_pseudo_count = choice.pseudo_count
        self._take(model, rows)
        return LearningOutcome(self._summary(model), score)

    def _learn_in_turn(
        self, plan: LearningPlan, sizes: Sequence[int], rows: WeightedRows
    ) -> LearningOutcome:
        """Choose the size by cross-validation, and then learn from all rows."""
        epochs = min(FOLD_EPOCHS, plan.schedule.max_epochs)
        brief = plan._replace(schedule=replace(plan.schedule, max_epochs=epochs), restarts=1)
        fold = plan.task.rng.permutation(len(rows.codes)) % FOLDS
        parts = [
            (
                self._tree_rows(plan.tree, rows[np.flatnonzero(fold != k)]),
                self._tree_rows(plan.tree, rows[np.flatnonzero(fold == k)]),
            )
            for k in range(FOLDS)
        ]
        choice = self._choose(brief, sizes, parts, stop=False)
        merged = self._tree_rows(plan.tree, rows.merged())
        model = self._fit(plan._replace(pseudo_count=choice.pseudo_count), choice.size, merged)
        self._chosen_pseudo_count = choice.pseudo_count
        self._take(model, merged)
        how = f"{self._summary(model)}, chosen by {FOLDS}-fold cross-validation"
        weight = np.concatenate([out.weight for _, out in parts])
        independent = float(np.average(self._alone(parts), weights=weight))
        return LearningOutcome(how, choice.score, independent, len(rows.codes))

    def _choose(
        self, plan: LearningPlan, sizes: Sequence[int], parts: list[Part], *, stop: bool
    ) -> StatesChoice:
        """Try sizes, then priors, while the held-out score rises; ``stop``: it ends each too."""
        weight = np.concatenate([out.weight for _, out in parts])

        def attempt(size: int, plan: LearningPlan) -> StatesChoice:
            models = [self._fit(plan, size, rows, out if stop else None) for rows, out in parts]
            scores = np.concatenate(
                [
                    log_likelihoods(model.layout, model.theta, out)
                    for model, (_, out) in zip(models, parts, strict=True)
                ]
            )
            score = float(np.average(scores, weights=weight))
            return StatesChoice(size, plan.pseudo_count, models, scores, score)

        def climb(best: StatesChoice, plan: LearningPlan) -> StatesChoice:
            for size in sizes:
                if size > best.size:
                    choice = attempt(size, plan)
                    if choice.score <= best.score:
                        break
                    best = choice
            return best

        best = climb(attempt(sizes[0], plan), plan)
        if len(sizes) == 1:
            return best
        for pseudo_count in self._pseudo_counts()[1:]:
            stronger = plan._replace(pseudo_count=pseudo_count)
            choice = attempt(best.size, stronger)
            if choice.score <= best.score:
                break
            best = climb(choice, stronger)  # it bears more states
        gain = best.scores - self._alone(parts)
        mean = np.average(gain, weights=weight)
        error = np.sqrt(weight @ (gain - mean) ** 2) / weight.sum()  # a weight is a repetition
        return best if mean > error else attempt(0, plan)

    def _fit(
        self,
        plan: LearningPlan,
        size: int,
        rows: TreeRows,
        held_out: TreeRows | None = None,
        start: Floats | None = None,
    ) -> TreeModel:
        """Learn one size, until the score of held-out rows or of the rows stops rising."""
        tree, rng = plan.tree, plan.task.rng
        layout = self._layout(tree, self._states_of(tree, size))
        marginals = self._marginals_of(rows)
        of_nodes = [marginals[x] for x in tree.variable.tolist()]
        prior = self._prior_of(layout, of_nodes, plan.pseudo_count)
        report = partial(plan.task.report, what=f"with {size} states")
        problem = EMProblem(prior, rows, held_out, plan.schedule, report)
        if start is not None:
            return learn(layout, [start], problem, rng)
        restarts = plan.restarts if size else 1
        if self.restarts is None:
            work = 3 * len(rows) * int(np.sum(layout.states.astype(np.int64) * layout.above))
            restarts = max(1, min(restarts, MAX_WORK // work))
        starts = [prototype_start(layout, prior.marginals, rows, rng) for _ in range(restarts)]
        return learn(layout, starts, problem, rng)

    def _go_on(
        self,
        plan: LearningPlan,
        choice: StatesChoice,
        rows: TreeRows,
        held_out: TreeRows | None = None,
        *,
        max_epochs: int,
        **steps: Any,
    ) -> TreeModel:
        """Learn from all rows what was learned from some."""
        epochs = min(max_epochs, plan.schedule.max_epochs)
        schedule = replace(plan.schedule, max_epochs=epochs, **steps)
        plan = plan._replace(schedule=schedule, pseudo_count=choice.pseudo_count)
        return self._fit(plan, choice.size, rows, held_out, choice.models[0].theta)

    def _alone(self, parts: list[Part]) -> Floats:
        """Return the log-likelihood of each held-out row if the columns were independent."""
        return np.concatenate(
            [independent_scores(out.codes, self._marginals_of(rows)) for rows, out in parts]
        )

    def _marginals_of(self, rows: TreeRows) -> list[Floats]:
        counts = WeightedRows(rows.codes, rows.weight).value_counts(self.encoder_.cardinalities_)
        return self._marginals(counts)

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

    def _summary(self, model: TreeModel) -> str:
        if np.all(model.layout.states == 1) and self._sizes() != [1]:
            return "independent columns (hidden states are not better by a standard error)"
        how = f"{model.layout.shared} states each, {len(model.history)} epochs"
        if self.pseudo_count is None and not np.any(self._ordered):
            how += f", pseudo_count={self._pseudo_count():g}"
        return how

    def _min_step(self) -> float:
        return float((self._updates + 2) ** -0.6)

    def _current(self, rows: TreeRows) -> Floats:
        return self._theta


def _sample(rows: WeightedRows, rng: np.random.Generator) -> WeightedRows:
    """Return so many rows as the choice of states needs."""
    if len(rows.codes) <= MAX_CHOICE_ROWS:
        return rows
    return rows[np.sort(rng.choice(len(rows.codes), MAX_CHOICE_ROWS, replace=False))]
