"""Regression with unknown inputs: expected predictions, their spread, and intervals for y."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from expecta.circuits.regression import RegressionCircuit
from expecta.common.arrays import Floats, Ints
from expecta.common.checks import check_integer
from expecta.common.errors import DomainError
from expecta.common.progress import begin_stage, in_stages
from expecta.densities.density import Density
from expecta.densities.tree_learner import TreeLearner
from expecta.estimators.calibration import Calibration, calibrate, least_noise
from expecta.estimators.circuit_estimator import STAGES, CircuitEstimator
from expecta.estimators.fit_error import CircuitParts
from expecta.estimators.training import FOLDS, FinerBins, Seeds, Training, column_curves, size
from expecta.expected.expected_model import ModelRows
from expecta.expected.learned_circuit import LearnedCircuit, affordable_rows
from expecta.expected.target_values import TargetValues
from expecta.learn.regression.noise_variance import KNOTS, CodedRows, NoiseVariance, learn_noise
from expecta.learn.weighted_rows import WeightedRows
from expecta.queries.pair import Pair
from expecta.tables.estimator_inputs import read_target, read_training_weights
from expecta.tables.table import Table, read_table

SMALLEST_SPREAD = 1e-290  # of a target: a millionth of it is a number too
DEPENDENT_ROWS = 2000  # below which a density depends on each: calibration does without it
EPSILON = float(np.finfo(np.float64).eps)


class HeldOut(NamedTuple):
    """Rows, and what was learned without them."""

    pair: Pair
    density: Density
    coded: CodedRows  # all rows of the table, as the density codes them
    rows: Ints
    noise: NoiseVariance | None = None  # None where it is constant


class CircuitRegressor(RegressorMixin, CircuitEstimator):  # type: ignore[misc]
    """Regression that predicts with unknown inputs: the expectation over what they could be.

    ``fit`` learns a joint distribution of the inputs and a regression circuit for the
    target; ``predict`` averages the circuit over everything the unknown inputs of a row
    could be, given its known ones. That average is exact for the two that were learned. A
    number is known up to one of ``max_bins`` bins. Assumed: given what is seen, *that* a
    value is missing carries no information.

    Parameters
    ----------
    density
        The distribution of the inputs: one to learn (default `LatentTree`; others are
        cheaper to ask) or one that has learned, which is then used as it is. (scikit-learn's
        ``clone`` makes a learner forget: cross-validation learns it anew on every part.)
    vtree
        A vtree, or the name of a way to learn one, for a density that takes it (`PSDD`, which
        is the default density if a vtree is given).
    encoder
        How columns become variables; default ``Encoder()``.
    max_bins
        Bins per number that the circuit tells apart, at least the density's, which has the
        encoder's.
    max_splits
        Largest number of splits of the circuit; 0 makes it additive. How many is chosen by
        held-out loss.
    penalties
        Strengths of shrinkage to choose from by held-out loss, as multiples of the default.
    completions
        Samples of the density that a training row with missing values is completed by, each
        weighed by how well it goes with the row's target.
    calibration_rows
        Held-out predictions to calibrate intervals on, beside rows of which all or nothing is
        known; 0 for no calibration, None for 1,000 to 10,000, fewer where they cost more.
    random_state
        A seed: the same seed gives the same model on any number of threads.

    Attributes
    ----------
    pair_, circuit_, density_, refined_
        The pair (p, g); g; p as it was learned; p with the circuit's bins.
    noise_
        Standard deviation of y about predictions of complete rows held out, over all such rows; of
        a single row nothing is known: its own size.
    noise_variance_
        The variance of y given complete inputs, a sum over columns; None where rows held out show
        no more than noise of one size.
    penalty_, n_splits_, validation_
        What was chosen, and the held-out loss of all that was tried, by penalty and splits.
    subsampled_
        What was decided on a part of the rows or columns of a large table, in words.
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
        max_splits: int = 32,
        penalties: Any = (1.0, 3.0, 10.0),
        completions: int = 5,
        calibration_rows: int | None = None,
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

    @in_stages({**STAGES, "calibration": 10})
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learn from a table with or without missing values, and a number for each of its rows.

        A row of ``sample_weight`` w counts as w rows that are alike: twice the weights are
        twice the rows, and shrink less. For weights that say which rows matter more, divide
        them by their mean.
        """
        check_integer("calibration_rows", self.calibration_rows or 0, 0)
        target = read_target(y)
        table = self._training_table(X, len(target))
        weight = read_training_weights(sample_weight, len(target))
        seeds = Seeds.of(self.random_state)
        finer = self._learn_density(table, weight, seeds)
        codes = self.encoder_.codes(table)
        training = self._training(codes, weight, np.zeros(len(target), np.int64), seeds)
        centre = float(np.average(target, weights=weight))
        unit = size(target - centre, weight)
        if unit <= 8 * EPSILON * abs(centre):  # a constant target has no unit
            unit = abs(centre) or 1.0
        elif unit < SMALLEST_SPREAD:
            raise DomainError(f"y varies by {unit:.1g} only; divide it by a unit of that size")
        scaled = (target - centre) / unit
        grown = self._grow(training, scaled[:, None], "squared", seeds, keep_folds=True)
        self._parts = CircuitParts(
            codes, weight, finer, training, scaled[:, None], "squared", grown, unit, centre
        )
        self.pair_ = Pair(self.refined_.circuit, self._parts.in_units(grown.circuit))
        smallest = least_noise(target) / unit
        noise = self._judge(
            table, codes, scaled, weight, training, grown.folds, finer, seeds, smallest
        )
        self.noise_ = noise * unit
        if self.noise_variance_ is not None:
            self.noise_variance_ = self.noise_variance_.scaled(unit)
        calibration = self.calibration_.in_unit(unit, centre)
        self.calibration_ = replace(calibration, values=TargetValues.of(target))
        self._keep(table, target, weight, y)
        return self

    def _judge(
        self,
        table: Table,
        codes: Ints,
        y: Floats,
        weight: Floats,
        training: Training,
        folds: list[RegressionCircuit],
        finer: FinerBins,
        seeds: Seeds,
        smallest: float,
    ) -> float:
        """Calibrate on rows that the folds' circuits left out; returns the residual noise.

        All in units of the target's spread, about its mean. A single row leaves none out:
        nothing is known of the noise, and the row is taken to be the median.
        """
        begin_stage("calibration")
        self.noise_variance_ = None
        n = affordable_rows(self.pair_) if self.calibration_rows is None else self.calibration_rows
        if training.fold is None:
            single = np.zeros(min(n, 1), np.int64)
            zero = np.zeros(len(single))
            self.calibration_ = Calibration(single, zero, single, zero, zero)
            return 1.0
        few = np.count_nonzero(weight) < DEPENDENT_ROWS
        relearn = n > 0 and few and self.density_ is not self.density
        held_out: list[HeldOut] = []
        shared = CodedRows(codes, column_curves(self.encoder_, knots=KNOTS))
        coarse = finer.coarse_rows(codes)
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
            parts.append(calibrate(model, some, y[rows], rows, held.noise or noise, share, rng))
        self.calibration_ = Calibration.joined(parts)
        return noise

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
