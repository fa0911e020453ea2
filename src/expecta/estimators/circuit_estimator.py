"""What the two estimators share: from a table to a density, a circuit, and their pair."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from expecta.circuits.regression import RegressionCircuit
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Floats, Ints
from expecta.common.checks import check_integer
from expecta.common.errors import DomainError
from expecta.common.progress import Progress, begin_stage
from expecta.densities import PSDD, Density, LatentTree
from expecta.estimators.expected_estimator import ExpectedEstimator
from expecta.estimators.fit_error import (
    CHOICES,
    REPLICATES,
    CircuitParts,
    learned_anew,
    relearned,
    replicate_weights,
)
from expecta.estimators.training import (
    FOLDS,
    TARGET_ROUNDS,
    FinerBins,
    Seeds,
    Training,
    column_curves,
    completed,
)
from expecta.expected.expected_model import ExpectedModel
from expecta.expected.learned_circuit import LearnedCircuit
from expecta.learn.regression import LOSSES, MAX_VARIABLES, GrownCircuit, grow
from expecta.learn.regression.curves import Curve
from expecta.learn.regression.noise_variance import KNOTS, NoiseVariance
from expecta.queries.pair import Pair
from expecta.tables import Encoder
from expecta.tables.estimator_inputs import (
    check_penalties,
    read_inputs,
    read_rows,
    refuse_rounding,
)
from expecta.tables.table import Table, check_size, read_table
from expecta.tables.training_rows import TrainingRows, target_name

# rows beyond which splits and penalty are chosen on a part of them, and how many that is
MANY_ROWS, DECISION_ROWS = 20_000, 10_000
MAX_ROWS = 50_000  # rows that the circuit learns from, at most
MAX_ALL_BINS = 1 << 17  # bins of all columns together that the circuit tells apart
MAX_SPLITS, ROWS_PER_SPLIT = 128, 20  # of "auto": so many splits at most
CHOICE_ROWS = 20  # rows below which nothing is chosen, and the circuit is additive
ONE_FOLD_ROWS = 5000  # rows from which one fold is held out, not each of five in turn
DEFAULT_PENALTY = 3.0  # penalty where there are too few rows to choose one
WEIGHING_PENALTY = 0.3  # of a circuit that weighs completions: a large one makes them alike


# of fit, and about what share of the time each takes
STAGES = {"reading": 3, "density": 45, "finer bins": 2, "completions": 5, "circuit": 35}


class CircuitEstimator(ExpectedEstimator):
    """A density of the inputs and a circuit for the target, over one vtree."""

    refined_: Density  # the same with finer bins, which the circuit takes
    pair_: Pair
    target_name_: str
    mean_excess_: NoiseVariance | None = None  # of a logarithmic scale: of the mean over the middle
    subsampled_: tuple[str, ...]  # what was decided on a part of the rows, in words

    def __init__(
        self,
        *,
        density: Density | None = None,
        vtree: Vtree | str | None = None,
        encoder: Encoder | None = None,
        max_bins: int = 256,
        max_splits: int | str = "auto",
        penalties: Sequence[float] = (1.0, 3.0, 10.0),
        completions: int = 5,
        random_state: Any = 0,
    ) -> None:
        self.density = density
        self.vtree = vtree
        self.encoder = encoder
        self.max_bins = max_bins
        self.max_splits = max_splits
        self.penalties = penalties
        self.completions = completions
        self.random_state = random_state

    # -- learning ---------------------------------------------------------------------

    def _training_table(self, X: Any, n_targets: int) -> Table:
        """Read the table to learn from, and check the parameters."""
        self.subsampled_ = ()
        for name, least in (("max_bins", 2), ("max_splits", 0), ("completions", 1)):
            if (name, getattr(self, name)) != ("max_splits", "auto"):
                check_integer(name, getattr(self, name), least)
        check_penalties(self.penalties)
        given = self.density
        if given is not None and not isinstance(given, Density):
            raise TypeError(
                f"density must be a Density, learned or not, or None, not {given!r:.80}"
            )
        if self.encoder is not None and not isinstance(self.encoder, Encoder):
            raise TypeError(f"encoder is an Encoder or None, not {self.encoder!r:.80}")
        learned = given is not None and hasattr(given, "circuit_")
        encoder = self.encoder or getattr(given, "encoder_" if learned else "encoder", None)
        raw = read_table(X) if encoder is None else encoder.read(X)
        refuse_rounding(raw)
        table = read_inputs(
            raw, coded=given.encoder_.source_ == "codes" if given and learned else None
        )
        check_size(table)
        if table.n_rows != n_targets:
            raise DomainError(f"X has {table.n_rows} rows and y has {n_targets}; they must agree")
        return table

    def _learn_density(self, table: Table, weight: Floats, seeds: Seeds) -> FinerBins:
        """Set ``density_``, the same with finer bins, and the columns' names."""
        begin_stage("density")
        given = self.density
        learned = given if given is not None and hasattr(given, "circuit_") else None
        if learned is not None and (self.vtree is not None or self.encoder is not None):
            raise DomainError(
                "the density has learned, its vtree and encoder with it; "
                "leave vtree and encoder out, or give a density that is yet to learn"
            )
        if learned is not None:
            self.density_ = learned
        else:
            self.density_ = self._unfitted(seeds).fit(table, sample_weight=weight)
        self.n_features_in_ = len(self.density_.columns)
        self.__dict__.pop("feature_names_in_", None)
        if table.named and table.text_names:
            self.feature_names_in_ = np.array(self.density_.columns, object)
        begin_stage("finer bins")
        max_bins = min(self.max_bins, max(2, MAX_ALL_BINS // self.n_features_in_))
        if max_bins < self.max_bins:
            self.subsampled_ += (
                f"the circuit tells {max_bins} bins of a number apart, not {self.max_bins}, since "
                f"there are {self.n_features_in_:,} columns",
            )
        finer = FinerBins.of(self.density_, table, max_bins, weight)
        self.refined_ = finer.density(self.density_.circuit)
        return finer

    def _unfitted(self, seeds: Seeds) -> Any:
        """Return the density to learn, with what was asked of it."""
        asked: dict[str, Any] = {}
        if self.vtree is not None:
            asked["vtree"] = self.vtree
        if self.encoder is not None:
            asked["encoder"] = self.encoder
        density = self.density
        if density is None:
            density = LatentTree() if self.vtree is None else PSDD()
            asked["random_state"] = seeds.density
        density = clone(density)
        takes = density.get_params(deep=False)
        if "vtree" in asked and "vtree" not in takes:
            raise DomainError(
                f"a {type(density).__name__} makes its own vtree; for one of yours use PSDD"
            )
        if "vtree" in asked:
            asked["start"] = "independent"  # the other start has a vtree of its own
        return density.set_params(**asked)

    def _training(self, codes: Ints, weight: Floats, strata: Ints, seeds: Seeds) -> Training:
        """Complete rows with missing values, several times, and choose those to hold out.

        Where rows are very many, some stand for all.
        """
        begin_stage("completions")
        rows = np.flatnonzero(weight > 0)
        if len(rows) > MAX_ROWS:
            self.subsampled_ += (f"the circuit learned from {MAX_ROWS:,} of {len(rows):,} rows",)
            rng = np.random.default_rng(seeds.completions)
            rows = np.sort(rng.choice(rows, MAX_ROWS, replace=False))
        incomplete = np.any(codes[rows] < 0, axis=1)
        times = np.where(incomplete, self.completions, 1)
        origin = np.repeat(rows, times)
        full = codes[origin]
        if np.any(incomplete):
            full[np.repeat(incomplete, times)] = completed(
                self.refined_.circuit, codes[rows[incomplete]], self.completions, seeds.completions
            )
        fold = None
        if len(rows) > 1:
            rng = np.random.default_rng(seeds.folds)
            order = np.lexsort((rng.random(len(rows)), strata[rows]))
            place = np.empty(len(rows), np.int64)
            place[order] = np.arange(len(rows)) % min(FOLDS, len(rows))
            if len(rows) >= ONE_FOLD_ROWS:
                place[place > 0] = -1
            fold = np.repeat(place, times)
        times = np.repeat(times, times)
        return Training(full, origin, weight[origin] / times, fold, times)

    def _grow(
        self,
        training: Training,
        curves: Sequence[Curve],
        y: Floats,
        loss: str,
        seeds: Seeds,
        *,
        keep_folds: bool,
    ) -> GrownCircuit:
        """Learn the circuit.

        Where rows are many, its splits, penalty and folds' circuits come from some of them, and
        its parameters are fitted to all.
        """
        begin_stage("circuit")
        penalties = check_penalties(self.penalties)
        n_rows = len(np.unique(training.origin))
        tested = n_rows >= CHOICE_ROWS
        choices: dict[str, Any] = {"penalties": [DEFAULT_PENALTY], "max_splits": 0}
        if tested:
            limit = min(MAX_SPLITS, n_rows // ROWS_PER_SPLIT)
            max_splits = limit if self.max_splits == "auto" else self.max_splits
            choices = {"penalties": penalties, "max_splits": max_splits}
        some = training
        if n_rows > MANY_ROWS:
            some = training.sampled(DECISION_ROWS, seeds.folds)
            self.subsampled_ += (
                f"splits and penalty of the circuit were chosen on {DECISION_ROWS:,} of "
                f"{n_rows:,} rows",
            )
        with Progress(type(self).__name__, None) as progress, threadpool_limits(1):

            def learn(
                training: Training, weight: Floats, *, with_folds: bool = keep_folds, **more: Any
            ) -> GrownCircuit:
                return grow(
                    training.codes,
                    y[training.origin],
                    vtree=self.refined_.circuit.vtree,
                    curves=curves,
                    loss=loss,
                    fold=training.fold if tested or with_folds else None,
                    keep_folds=with_folds and training.fold is not None,
                    report=lambda what: progress.advance(label=f"{type(self).__name__} {what}"),
                    weight=weight,
                    **{**choices, **more},
                )

            large = some is not training or len(curves) > MAX_VARIABLES
            rounds = TARGET_ROUNDS - 1 if np.any(training.times > 1) else 0
            weight = some.weight

            def reweighed(search: Training, **options: Any) -> Floats:
                """Weigh completions by a rough circuit."""
                rough = learn(search, weight, exact=False, with_folds=False, **options)
                return some.given_target(y, rough.circuit, LOSSES[loss], weight)

            for _ in range(rounds):  # a search for splits costs more than all else: it comes late
                additive = some._replace(fold=None)
                weight = reweighed(additive, penalties=[DEFAULT_PENALTY], max_splits=0)
            if rounds and not large:
                weight = reweighed(some.with_first_fold_only(), penalties=[WEIGHING_PENALTY])
            grown = learn(some, weight, exact=not large)
            if large:
                weight = training.given_target(y, grown.circuit, LOSSES[loss], training.weight)
                rest = training._replace(fold=None)
                grown = replace(grown, circuit=learn(rest, weight, like=grown, exact=False).circuit)
        if grown.n_kept is not None:
            self.subsampled_ += (
                f"the circuit has the {grown.n_kept} of {len(curves):,} columns that say most "
                f"about the target",
            )
        self.penalty_, self.n_splits_ = grown.penalty, grown.n_splits
        self.validation_ = grown.tried
        return grown

    def _relearn_without(
        self, table: Table, y: Floats, weight: Floats, rows: Ints, seeds: Seeds
    ) -> Self:
        """Learn a density and a circuit for the squared loss as these were, without some rows."""
        weight = weight.copy()
        weight[rows] = 0.0
        model = type(self)(**self.get_params(deep=False))
        model.set_params(penalties=self.penalty_, max_splits=self.n_splits_)
        model.subsampled_ = ()
        model._learn_density(table, weight, seeds)
        codes = model.encoder_.codes(table)
        training = model._training(codes, weight, np.zeros(len(y), np.int64), seeds)
        training = training._replace(fold=None)
        curves = column_curves(model.encoder_)
        grown = model._grow(training, curves, y[:, None], "squared", seeds, keep_folds=False)
        model.pair_ = Pair(model.refined_.circuit, grown.circuit)
        return model

    def _replicates(self) -> list[ExpectedModel]:
        """Return the model as other weights of its training rows make it, once for each weights."""
        kept: CircuitParts | None = getattr(self, "_parts", None)
        if kept is None:
            raise DomainError(
                'return_error="fit" needs what the circuit was fitted to, which a file does not '
                "hold, and a target of one class has no circuit; call it on the model you fitted"
            )
        fixed, coarse = self.density_ is self.density, kept.finer.coarse_rows(kept.codes)
        curves = column_curves(self.encoder_), column_curves(self.encoder_, knots=KNOTS)
        models: list[ExpectedModel] = []
        choices: list[tuple[Density, CircuitParts]] = []
        with Progress("replicates", REPLICATES) as progress, threadpool_limits(1):
            for number, times in enumerate(replicate_weights(len(kept.weight), self.random_state)):
                weight = kept.weight * times
                if number < CHOICES:
                    density = self.density_
                    if not fixed and kept.is_small:
                        density = learned_anew(density, coarse, weight, number)
                    parts = kept.rechosen(times, density.circuit.vtree, *curves)
                    choices.append((density, parts))
                density, parts = choices[number % CHOICES]
                other = copy(self)
                other.target_scale_, other.mean_excess_ = parts.scaled.scale, parts.excess
                if not fixed:
                    p = relearned(density, coarse, weight).circuit
                    other.refined_ = parts.finer.density(p)
                parts = parts.completed_anew(other.refined_.circuit, number)
                g = parts.refitted(times, density.circuit.vtree, curves[0])
                other.pair_ = Pair(other.refined_.circuit, g)
                models.append(other._make_expected_model())
                progress.advance()
        return models

    def _keep(self, table: Table, target: Floats, weight: Floats, y: Any) -> None:
        """Set ``training_rows_``, and what the target is called."""
        self.target_name_ = target_name(y)
        self.training_rows_ = TrainingRows.from_table(
            table, self.encoder_, target, weight, self.target_name_
        )

    # -- asking -----------------------------------------------------------------------

    @property
    def encoder_(self) -> Encoder:
        """What the circuit's variables are to the user."""
        return self.refined_.encoder_

    @property
    def circuit_(self) -> RegressionCircuit:
        """The function g of the complete inputs."""
        return self.pair_.g

    def _model_key(self) -> tuple[Any, ...]:
        if "pair_" not in vars(self):
            check_is_fitted(self, "pair_")  # complains
        return id(self.pair_), getattr(self, "tol", None), getattr(self, "noise_", None)

    def _make_expected_model(self) -> LearnedCircuit:
        return LearnedCircuit(
            self.pair_,
            self.refined_,
            partial(read_rows, encoder=self.encoder_, name=type(self).__name__),
            name=self.target_name_,
            training_rows=self._training_data,
            classes=getattr(self, "classes_", None),
            tol=getattr(self, "tol", 1e-9),
            noise=getattr(self, "noise_", 1e-300) if self.log_noise_ is None else self.log_noise_,
            scale=self.target_scale_,
            excess=self.mean_excess_,
        )
