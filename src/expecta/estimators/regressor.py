"""Regression with unknown inputs: expected predictions, their spread, and intervals for y."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from expecta.circuits.regression import RegressionCircuit
from expecta.common.arrays import Floats
from expecta.common.checks import check_integer
from expecta.common.errors import DomainError
from expecta.estimators.base import FEW, CircuitEstimator
from expecta.estimators.conformal import Calibration, affordable, distances, in_units, least_noise
from expecta.estimators.training import Seeds, Training, size
from expecta.queries.output_distribution import Distribution
from expecta.queries.pair import Pair
from expecta.tables.estimator_inputs import read_target, read_training_weights
from expecta.tables.table import Table

__all__ = ["CircuitRegressor"]

TOLERANCE = (1e-13, 1e-4)  # of probabilities in intervals: a tenth of what is left out
SMALLEST = 1e-290  # spread of a target: a millionth of it is a number too
DEPENDENT = 2000  # rows below which a density depends on each: calibration does without it
EPSILON = float(np.finfo(np.float64).eps)


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
        At most so many splits of the circuit; 0 makes it additive. How many is chosen by
        held-out loss.
    penalties
        Strengths of shrinkage to choose from by held-out loss, as multiples of the default.
    completions
        Training rows with holes are learned from as so many draws of the density, weighed
        by how well they go with the row's target.
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
        Standard deviation of y about predictions of complete rows held out; of a single row
        nothing is known: its own size.
    penalty_, n_splits_, validation_
        What was chosen, and the held-out loss of all that was tried, by penalty and splits.
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
        random_state: Any = None,
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

    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learn from a table with or without holes, and a number for each of its rows.

        A row of ``sample_weight`` w counts as w rows that are alike: twice the weights are
        twice the rows, and shrink less. For weights that say which rows matter more, divide
        them by their mean.
        """
        check_integer("calibration_rows", self.calibration_rows or 0, 0)
        target = read_target(y)
        table = self._training_table(X, len(target))
        weight = read_training_weights(sample_weight, len(target))
        seeds = Seeds.of(self.random_state)
        self._learn_density(table, weight, seeds)
        training = self._training(table, weight, np.zeros(len(target), np.int64), seeds)
        middle = float(np.average(target, weights=weight))
        unit = size(target - middle, weight)
        if unit <= 8 * EPSILON * abs(middle):  # a constant target has no unit
            unit = abs(middle) or 1.0
        elif unit < SMALLEST:
            raise DomainError(f"y varies by {unit:.1g} only; divide it by a unit of that size")
        scaled = (target - middle) / unit
        grown = self._grow(training, scaled[:, None], "squared", keep_folds=True)
        g = grown.circuit
        g = RegressionCircuit(g.structure, g.weight * unit, g.bias * unit + middle)
        self.pair_ = Pair(self.refined_.circuit, g)
        least = least_noise(target) / unit
        noise = self._judge(table, scaled, weight, training, grown.folds, seeds, least)
        self.noise_ = noise * unit
        self._keep(table, target, weight, y)
        return self

    def _judge(
        self,
        table: Table,
        y: Floats,
        weight: Floats,
        training: Training,
        folds: list[RegressionCircuit],
        seeds: Seeds,
        least: float,
    ) -> float:
        """Calibrate from rows that the folds' circuits left out; returns the residual noise.

        All in units of the target's spread, about its mean. A single row leaves none out:
        nothing is known of the noise, and the row counts as one beyond every interval.
        """
        n = affordable(self.pair_) if self.calibration_rows is None else self.calibration_rows
        if training.fold is None:
            one = np.zeros(min(n, 1), np.int64)
            self.calibration_ = Calibration(one, np.ones(len(one)), one)
            return 1.0
        apart = n > 0 and np.count_nonzero(weight) < DEPENDENT
        codes, held_out = self.encoder_.codes(table), []
        residual, counted = np.zeros((2, len(y)))
        for number, g in enumerate(folds):
            rows = np.unique(training.origin[training.fold == number])
            pair = Pair(self.refined_.circuit, g)
            if apart:
                model = self._apart(table, y, weight, rows, seeds)
                pair, codes[rows] = model.pair_, model.encoder_.codes(table)[rows]
            held_out.append((pair, rows))
            full = rows[np.all(codes[rows] >= 0, axis=1)]
            residual[full], counted[full] = y[full] - pair.g(codes[full]), weight[full]
        seen = np.any(counted > 0)
        noise = max(size(residual, counted) if seen else training.noise(y, folds), least)
        rng, parts = np.random.default_rng(seeds.calibration), []
        for pair, rows in held_out:
            if np.ptp(weight[rows]) > 0:
                rows = rng.choice(rows, size=len(rows), p=weight[rows] / weight[rows].sum())
            each = -(-n // len(folds))
            parts.append(distances(pair, noise, codes[rows], y[rows], rows, each, rng))
        self.calibration_ = Calibration.joined(parts)
        return noise

    def calibrate(self, X: Any, y: Any) -> Self:
        """Calibrate intervals anew on rows that ``fit`` did not see.

        Columns are hidden at random, so that intervals hold for every number of unknown
        columns. ``calibration_rows`` counts as in ``fit``, but 0 as None. With 20 complete
        rows or more ``noise_`` is learned anew too.
        """
        codes, complete = self._codes(X)
        target = read_target(y)
        check_consistent_length(codes, target)
        if not len(codes):
            raise DomainError("there are 0 rows to calibrate on; pass one or more")
        rng = np.random.default_rng(Seeds.of(self.random_state).calibration)
        if np.count_nonzero(complete) >= FEW:
            residual = target[complete] - self.circuit_(codes[complete])
            self.noise_ = max(size(residual, np.ones(len(residual))), least_noise(target))
        pair, middle, unit = in_units(self.pair_, self.noise_)
        self.calibration_ = distances(
            pair,
            self.noise_ / unit,
            codes,
            (target - middle) / unit,
            np.arange(len(codes)),
            self.calibration_rows or affordable(pair),
            rng,
        )
        return self

    # -- asking -----------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the expectation over what is unknown. Exact for the pair that was learned.

        With ``return_std`` also the standard deviation of *the model's output* over the
        unknown inputs: zero for a complete row. It is not the uncertainty of y, which
        :meth:`predict_interval` gives. A row of probability zero under the density gives
        NaN and an ImpossibleEvidenceWarning, unless it is complete.

        Cost: linear in the pairs of gates that meet, per row with another pattern of values;
        the standard deviation some ten times that.
        """
        codes, complete = self._codes(X)
        mean, std = np.zeros((2, len(codes)))
        mean[complete] = self.circuit_(codes[complete])
        if not np.all(complete):
            asked = self._open(codes, complete)
            mean[~complete] = self.pair_.expectation(asked)[~complete]
            if return_std:
                pair, _, unit = in_units(self.pair_, self.noise_)
                std[~complete] = unit * pair.std(asked)[~complete]
        return (mean, std) if return_std else mean

    def predict_distribution(self, X: Any, *, noise: float | None = None) -> Distribution:
        """Distribution of y given what is known: unknown inputs and residual noise together.

        Not calibrated. ``noise`` is the residual standard deviation, by default ``noise_``;
        with 0 it is the distribution of the model's output.
        """
        check_is_fitted(self, "pair_")
        return self._distribution(X, self.noise_ if noise is None else noise)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Interval that y lies in with this probability: unknown inputs and noise together.

        Calibrated so that about this share of rows is covered whatever the number of unknown
        columns, if these are hidden at random and rows are like those of training. It holds
        on average over such rows, not for each kind of row. Where the held-out rows are too
        few to tell (n of them bear a coverage of n / (n + 1) at most) it has no ends: they
        are infinite, for a single training row at any coverage.

        Returns
        -------
        array of shape (rows, 2)
        """
        if not 0 < coverage < 1:
            raise DomainError(f"coverage lies between 0 and 1, not {coverage}")
        return self.predict_quantiles(X, [(1 - coverage) / 2, (1 + coverage) / 2])

    def predict_quantiles(self, X: Any, q: npt.ArrayLike = (0.05, 0.5, 0.95)) -> Floats:
        """Quantiles of y given what is known, calibrated and infinite as intervals are.

        Returns
        -------
        array of shape (rows, quantiles)
        """
        wanted = np.atleast_1d(np.asarray(q, np.float64))
        if wanted.ndim != 1 or not np.all((wanted > 0) & (wanted < 1)):
            raise DomainError("quantiles lie between 0 and 1")
        codes, complete = self._codes(X)
        if not len(codes):
            return np.empty((0, len(wanted)))
        missing = np.count_nonzero(codes < 0, axis=1)
        side = 2.0 * wanted - 1.0
        level = self.calibration_.level(missing, np.abs(side))
        # a row's own: answers do not depend on what else is asked
        digits = np.floor(np.log10(np.clip(0.1 * (1.0 - level.max(axis=1)), *TOLERANCE)))
        level = 0.5 * (1.0 + np.sign(side) * level)
        end = ndtri(level)
        found: Floats = self.noise_ * end  # about a complete row's prediction
        found[complete] += self.circuit_(codes[complete])[:, None]
        pair, middle, unit = in_units(self.pair_, self.noise_)
        for few in np.unique(digits[~complete]):
            rows = ~complete & (digits == few)
            asked = self._open(codes, ~rows)
            predicted = pair.distribution(asked, noise=self.noise_ / unit, tol=10.0**few)
            found[rows] = middle + unit * predicted.quantile(level)[rows]
        # beyond what calibration can tell there is no end; of an impossible row nothing is known
        return np.where(np.isinf(end) & ~np.isnan(found), end, found)
