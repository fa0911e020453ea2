"""Regression with unknown inputs: expected predictions, their spread, and intervals for y."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from expecta.circuits.regression import RegressionCircuit
from expecta.common.arrays import Floats, Ints
from expecta.common.checks import check_integer
from expecta.common.progress import begin_stage, in_stages
from expecta.densities.density import Density
from expecta.densities.tree_learner import TreeLearner
from expecta.estimators.calibration import Calibration, calibrate, least_noise
from expecta.estimators.circuit_estimator import STAGES, CircuitEstimator
from expecta.estimators.fit_error import CircuitParts
from expecta.estimators.target_transform import (
    HeldOutFit,
    ScaledTarget,
    candidate_scales,
    judge_scale,
)
from expecta.estimators.training import (
    FOLDS,
    FinerBins,
    Seeds,
    Training,
    column_curves,
    size,
    spread_of,
)
from expecta.expected.expected_model import ModelRows
from expecta.expected.learned_circuit import LearnedCircuit, affordable_rows
from expecta.expected.target_scale import PLAIN, TargetScale
from expecta.expected.target_values import TargetValues
from expecta.learn.regression import MAX_VARIABLES, GrownCircuit
from expecta.learn.regression.curves import Curve
from expecta.learn.regression.noise_variance import KNOTS, CodedRows, NoiseVariance, learn_noise
from expecta.learn.weighted_rows import WeightedRows
from expecta.queries.pair import Pair
from expecta.tables.estimator_inputs import read_target, read_training_weights
from expecta.tables.table import Table, read_table

DEPENDENT_ROWS = 2000  # below which a density depends on each: calibration does without it


class HeldOut(NamedTuple):
    """Rows, and what was learned without them."""

    pair: Pair
    density: Density
    coded: CodedRows  # all rows of the table, as the density codes them
    rows: Ints
    noise: NoiseVariance | None = None  # None where it is constant


class CircuitRegressor(RegressorMixin, CircuitEstimator):  # type: ignore[misc]
    """Regression with missing inputs: predicts the expectation over their possible values.

    ``fit`` learns a joint distribution of the inputs and a regression circuit for the target;
    ``predict`` averages the circuit over the possible values of the missing inputs of a row,
    given the known ones. That average is exact, given the learned density and circuit. A number
    is known up to one of ``max_bins`` bins. Assumed: given the known values, missingness carries
    no information.

    Parameters
    ----------
    density
        The distribution of the inputs: one to learn (default `LatentTree`; others have cheaper
        queries) or a learned one, which is used as it is. (scikit-learn's ``clone`` resets a
        learner, so that cross-validation learns it again in every fold.)
    vtree
        A vtree, or the name of a way to learn one, for a density that takes it (`PSDD`, which
        is the default density if a vtree is given).
    encoder
        How columns become variables; default ``Encoder()``.
    max_bins
        Number of bins per column of numbers that the circuit distinguishes, at least that of the
        density.
    max_splits
        Maximum number of splits of the circuit; 0 makes it additive. Their number is chosen by
        held-out loss: the smallest that is not worse than the best beyond noise. "auto" allows
        one for every 20 rows, at most 128.
    penalties
        Strengths of shrinkage of what splits add, as multiples of the default; of several the one
        of least held-out loss, or one beyond them if that is clearly better.
    completions
        Number of samples from the density that complete a training row with missing values, each
        weighted by how well it agrees with the row's target.
    calibration_rows
        Held-out predictions to calibrate intervals on, beside rows of which all or nothing is
        known; 0 for no calibration, None for 1,000 to 10,000, fewer where they cost more and 1,000
        for over a thousand columns.
    target_transform
        The scale that the circuit is learned on: None for y itself; "log" for log y of a positive
        y; "auto" for log(y - origin) of a y that is skewed to the right, from 100 rows, where
        that makes held-out y likelier and their predicted means err no more. Predictions are
        means of y on either. The origin is 0 if all y are positive, else just below the least:
        no quantile lies below it. Cost: a circuit for each scale.
    random_state
        A seed: the same seed gives the same model on any number of threads.

    Attributes
    ----------
    pair_, circuit_, density_, refined_
        The pair (p, g); g; p as it was learned; p with the circuit's bins.
    target_scale_, mean_excess_
        The scale, and on a logarithmic one by how much the logarithm of the mean of y given all
        inputs, which g is, exceeds that of the median.
    noise_, log_noise_
        Standard deviation of y about predictions of complete rows held out, over all such rows; of
        a single row nothing is known: its own size. And of log(y - origin) about its middle, if
        that is the scale.
    target_spread_
        Standard deviation of y over the rows that ``noise_`` is about.
    noise_variance_
        The variance of y given complete inputs, a sum over columns; None where held-out rows
        show no dependence on the inputs.
    penalty_, n_splits_, validation_
        The chosen values, and the held-out loss of all candidates by penalty and splits.
    subsampled_
        Sentences: what was decided on part of the rows or columns of a large table.
    n_features_in_, feature_names_in_
        The columns; names only where there were names.

    Examples
    --------
    >>> from expecta import ChowLiu
    >>> table = {"sky": ["sun", "rain"] * 30, "wind": [3, 5, 8, 4, 6] * 12}
    >>> degrees = [28.0 if sky == "sun" else 14.0 for sky in table["sky"]]
    >>> model = CircuitRegressor(density=ChowLiu(), random_state=0).fit(table, degrees)
    >>> model.predict({"sky": ["sun", None], "wind": [4, None]}).round(1).tolist()
    [28.0, 21.0]
    """

    def __init__(
        self,
        *,
        density: Any = None,
        vtree: Any = None,
        encoder: Any = None,
        max_bins: int = 256,
        max_splits: int | str = "auto",
        penalties: Any = (1.0, 3.0, 10.0),
        completions: int = 5,
        calibration_rows: int | None = None,
        target_transform: str | None = "auto",
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            density=density,
            vtree=vtree,
            encoder=encoder,
            max_bins=max_bins,
            max_splits=max_splits,
            penalties=penalties,
            completions=completions,
            random_state=random_state,
        )
        self.calibration_rows = calibration_rows
        self.target_transform = target_transform

    @in_stages({**STAGES, "calibration": 10})
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learn from a table, with or without missing values, and a number for each row.

        A row of ``sample_weight`` w counts as w equal rows, so doubled weights mean twice the data
        and less shrinkage. To weight rows by importance, divide the weights by their mean.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        y
            The target.  # (rows,)
        sample_weight
            How much each row counts.  # (rows,)

        Returns
        -------
        self
            The same, which has learned.
        """
        check_integer("calibration_rows", self.calibration_rows or 0, 0)
        target = read_target(y)
        table = self._training_table(X, len(target))
        weight = read_training_weights(sample_weight, len(target))
        scales = candidate_scales(self.target_transform, target, weight)
        seeds = Seeds.of(self.random_state)
        finer = self._learn_density(table, weight, seeds)
        codes = self.encoder_.codes(table)
        training = self._training(codes, weight, np.zeros(len(target), np.int64), seeds)
        shared = CodedRows(codes, column_curves(self.encoder_, knots=KNOTS))
        every = [
            CircuitParts(codes, weight, finer, training, scaled, "squared", grown, fit)
            for scaled, grown, fit in self._try_scales(
                scales, target, weight, training, shared.curves, seeds
            )
        ]
        self._parts = every[0]._replace(log=every[1] if len(every) > 1 else None)
        parts = self._parts.chosen()
        scaled, grown, fit, self.mean_excess_ = parts.scaled, parts.grown, parts.fit, parts.excess
        self.penalty_, self.n_splits_ = grown.penalty, grown.n_splits
        self.validation_ = grown.tried
        self.pair_ = Pair(self.refined_.circuit, parts.in_units(grown.circuit))
        self.target_scale_ = scaled.scale
        values = TargetValues.of(target)
        spread = values.spread(target, np.random.default_rng([seeds.calibration, 2]))
        noise, judged = self._judge(
            table,
            shared,
            scaled,
            scaled.scaled(spread),
            weight,
            training,
            grown.folds,
            finer,
            seeds,
        )
        self.noise_, self.log_noise_ = noise * scaled.unit, None
        if scaled.scale != PLAIN:
            self.log_noise_ = self.noise_
            self.noise_ = max(fit.noise if fit else self.noise_, least_noise(target))
            judged = judged if fit is None else training.held_out_weight(len(target))
        self.target_spread_ = spread_of(target, judged)
        if self.noise_variance_ is not None:
            self.noise_variance_ = self.noise_variance_.scaled(scaled.unit)
        calibration = self.calibration_.in_unit(scaled.unit, scaled.centre)
        self.calibration_ = replace(calibration, values=values, scale=scaled.scale)
        self._keep(table, target, weight, y)
        return self

    def _try_scales(
        self,
        scales: list[TargetScale],
        target: Floats,
        weight: Floats,
        training: Training,
        noise_curves: Sequence[Curve],
        seeds: Seeds,
    ) -> Iterator[tuple[ScaledTarget, GrownCircuit, HeldOutFit | None]]:
        """Grow a circuit for the target on each scale, and judge it if there may be a choice."""
        curves, before = column_curves(self.encoder_), self.subsampled_
        for scale in scales:
            self.subsampled_ = before
            scaled = ScaledTarget.of(scale, target, weight)
            y = scaled.y[:, None]
            grown = self._grow(training, curves, y, "squared", seeds, keep_folds=True)
            fit = None
            if scales != [PLAIN] and training.fold is not None:
                fit = judge_scale(target, scaled, training, grown.folds, noise_curves, seeds.folds)
            yield scaled, grown, fit

    def _judge(
        self,
        table: Table,
        shared: CodedRows,
        scaled: ScaledTarget,
        spread: Floats,
        weight: Floats,
        training: Training,
        folds: list[RegressionCircuit],
        finer: FinerBins,
        seeds: Seeds,
    ) -> tuple[float, Floats]:
        """Calibrate on rows that the folds' circuits left out.

        Returns the residual noise, and how much each row counts in it: complete rows held out,
        or all that are where none is complete.

        All in units of the target's spread, about its mean; ``spread`` is what calibration takes
        each y for. A single row leaves none out:
        nothing is known of the noise, and the row is taken to be the median.
        """
        begin_stage("calibration")
        self.noise_variance_ = None
        y, smallest = scaled.y, least_noise(scaled.centre + scaled.unit * scaled.y) / scaled.unit
        n = affordable_rows(self.pair_) if self.calibration_rows is None else self.calibration_rows
        if self.calibration_rows is None and len(shared.curves) > MAX_VARIABLES:
            self.subsampled_ += (
                f"intervals are calibrated on {n:,} predictions with unknown columns, since there "
                f"are {len(shared.curves):,} columns",
            )
        if training.fold is None:
            single = np.zeros(min(n, 1), np.int64)
            zero = np.zeros(len(single))
            self.calibration_ = Calibration(single, zero, single, zero, zero)
            return 1.0, np.zeros(len(y))
        few = np.count_nonzero(weight) < DEPENDENT_ROWS
        relearn = n > 0 and few and self.density_ is not self.density
        held_out: list[HeldOut] = []
        coarse = finer.coarse_rows(shared.codes)
        residual, counted = np.zeros((2, len(y)))
        for number, g in enumerate(folds):
            rows = np.unique(training.origin[training.fold == number])
            pair, density, coded = Pair(self.refined_.circuit, g), self.refined_, shared
            if relearn and isinstance(self.density_, TreeLearner):
                others = np.where(np.isin(np.arange(len(y)), rows), 0.0, weight)
                learned = self.density_.relearned(WeightedRows(coarse, others))
                density = finer.density(learned.circuit)
                pair = Pair(density.circuit, g)
            elif relearn:
                other = self._relearn_without(table, y, weight, rows, seeds)
                pair, density = other.pair_, other.refined_
                curves = column_curves(density.encoder_, knots=KNOTS)
                coded = CodedRows(density.encoder_.codes(table), curves)
            held_out.append(HeldOut(pair, density, coded, rows))
            full = rows[np.all(coded.codes[rows] >= 0, axis=1)]
            residual[full], counted[full] = y[full] - pair.g(coded.codes[full]), weight[full]
        known = np.any(counted > 0)
        noise = max(size(residual, counted) if known else training.noise(y, folds), smallest)
        if known and noise > smallest:
            held_out = self._noise_by_inputs(held_out, shared, residual, counted, seeds)
        rng, parts = np.random.default_rng(seeds.calibration), []
        for held in held_out:
            rows = held.rows
            if np.ptp(weight[rows]) > 0:
                rows = rng.choice(rows, size=len(rows), p=weight[rows] / weight[rows].sum())
            model = LearnedCircuit(
                held.pair, held.density, read_table, name="", training_rows=None, is_scaled=True
            )
            some = ModelRows(table, held.coded.codes[rows])
            share = -(-n // len(held_out)) if held.noise is None else -(-n // (2 * len(held_out)))
            with_noise = held.noise or noise
            parts.append(calibrate(model, some, spread[rows], rows, with_noise, share, rng))
        self.calibration_ = Calibration.joined(parts)
        return noise, counted if known else training.held_out_weight(len(y))

    def _noise_by_inputs(
        self,
        held_out: list[HeldOut],
        shared: CodedRows,
        residual: Floats,
        counted: Floats,
        seeds: Seeds,
    ) -> list[HeldOut]:
        """Set ``noise_variance_``; returns held-out rows with the noise that others have.

        A single fold is cut in five. Where the noise is constant they are returned as they are.
        """
        parts = held_out
        if len(parts) == 1:
            rng = np.random.default_rng([seeds.calibration, 1])
            (whole,) = parts
            pieces = np.array_split(rng.permutation(whole.rows), FOLDS)
            parts = [whole._replace(rows=np.sort(piece)) for piece in pieces]
        full = np.flatnonzero(counted > 0)
        part = np.zeros(len(residual), np.int64)
        for number, held in enumerate(parts):
            part[held.rows] = number
        learned = learn_noise(
            shared.take(full),
            [held.coded.take(full) for held in parts],
            residual[full],
            counted[full],
            part[full],
        )
        self.noise_variance_ = learned.variance
        if learned.variance is None:
            return held_out
        pairs = zip(parts, learned.folds, strict=True)
        return [held._replace(noise=noise) for held, noise in pairs]

    def _classifies(self) -> bool:
        return False
