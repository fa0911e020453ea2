"""Regression with unknown inputs: expected predictions, their spread, and intervals for y."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import erf, ndtri
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length

from expecta.arrays import Floats, Ints
from expecta.circuits.regression import RegressionCircuit
from expecta.densities.checks import whole
from expecta.errors import DomainError
from expecta.estimators.base import FEW, CircuitEstimator
from expecta.estimators.conformal import Calibration, hidden
from expecta.estimators.inputs import read_target, row_weights
from expecta.estimators.training import Seeds, Training
from expecta.pair import Pair
from expecta.queries.distribution import Distribution

__all__ = ["CircuitRegressor"]

AFFORDED = 30_000_000  # joins of gates that held-out predictions may come to: some seconds
ROWS = (1000, 10_000)  # and how many predictions that is, at least and at most
TOLERANCE = 1e-4  # of probabilities in intervals,
COARSE = 1e-3  # and in calibration, which is a share of a thousand rows or so


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
        Bins per number that the circuit tells apart; the density has the encoder's.
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
        Standard deviation of y about predictions of complete rows held out.
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
        density: Any = None,  # noqa: ANN401
        vtree: Any = None,  # noqa: ANN401
        encoder: Any = None,  # noqa: ANN401
        max_bins: int = 256,
        max_splits: int = 32,
        penalties: Any = (1.0, 3.0, 10.0),  # noqa: ANN401
        completions: int = 5,
        calibration_rows: int | None = None,
        random_state: Any = None,  # noqa: ANN401
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

    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:  # noqa: ANN401
        """Learn from a table with or without holes, and a number for each of its rows."""
        whole("calibration_rows", self.calibration_rows or 0, 0)
        target = read_target(y)
        table = self._training_table(X, len(target))
        weight = row_weights(sample_weight, len(target))
        seeds = Seeds.of(self.random_state)
        self._learn_density(table, weight, seeds)
        training = self._training(table, weight, np.zeros(len(target), np.int64), seeds)
        middle = float(np.average(target, weights=weight))
        unit = _size(target - middle, weight)
        unit = unit if unit > 1e-12 * abs(middle) else 1.0  # a constant target has no unit
        scaled = ((target - middle) / unit)[:, None]
        grown = self._grow(training, scaled, "squared", keep_folds=True)

        def in_units(g: RegressionCircuit) -> RegressionCircuit:
            return RegressionCircuit(g.structure, g.weight * unit, g.bias * unit + middle)

        self.pair_ = Pair(self.refined_.circuit, in_units(grown.circuit))
        folds = [in_units(g) for g in grown.folds]
        self._judge(self.encoder_.codes(table), target, weight, training, folds, seeds)
        return self

    def _judge(
        self,
        codes: Ints,
        target: Floats,
        weight: Floats,
        training: Training,
        folds: list[RegressionCircuit],
        seeds: Seeds,
    ) -> None:
        """Learn the residual noise, and calibrate, from rows that the folds' circuits left out."""
        fold = np.zeros(len(training.codes), np.int64) if training.fold is None else training.fold
        folds = folds or [self.circuit_]
        residual = np.zeros(len(fold))
        for number, g in enumerate(folds):
            out = fold == number
            residual[out] = target[training.origin[out]] - g(training.codes[out])
        held_out = np.where(fold >= 0, training.weight, 0.0)
        plain = np.where(training.times == 1, held_out, 0.0)  # completions are not what was
        self.noise_ = _noise(residual, plain if np.any(plain > 0) else held_out, target)
        rng, n = np.random.default_rng(seeds.calibration), self.calibration_rows
        parts = []
        for number, g in enumerate(folds):
            rows = np.unique(training.origin[fold == number])
            if len(rows) and np.ptp(weight[rows]) > 0:
                rows = rng.choice(rows, size=len(rows), p=weight[rows] / weight[rows].sum())
            pair = Pair(self.refined_.circuit, g)
            parts.append(self._distances(pair, codes[rows], target[rows], n, len(folds), rng))
        self.calibration_ = Calibration.joined(parts)

    def _distances(
        self,
        pair: Pair,
        codes: Ints,
        y: Floats,
        n: int | None,
        parts: int,
        rng: np.random.Generator,
    ) -> Calibration:
        """How far from the middle of their predicted distribution targets lie.

        Complete rows, which cost nothing, are used as they are, and all with columns hidden.
        Cost: that of some twenty frequencies for each of n rows.
        """
        if n is None:
            n = int(np.clip(AFFORDED // max(pair.plan.n_joins, 1), *ROWS))
        if n == 0 or not len(codes):
            return Calibration.joined([])
        picked, left = hidden(codes, -(-n // parts), rng)
        possible = np.isfinite(pair.log_evidence(left))
        picked, left = picked[possible], left[possible]
        predicted = pair.distribution(left, noise=self.noise_, tol=COARSE)
        share = predicted.cdf(y[picked][:, None])[:, 0]
        missing = np.count_nonzero(left < 0, axis=1)
        complete = np.all(codes >= 0, axis=1)
        residual = y[complete] - pair.g(codes[complete])
        near = erf(np.abs(residual) / self.noise_ / 2**0.5)
        known = Calibration(np.zeros(len(near), np.int64), near)
        return Calibration.joined([Calibration(missing, np.abs(2.0 * share - 1.0)), known])

    def calibrate(self, X: Any, y: Any) -> Self:  # noqa: ANN401
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
            self.noise_ = _noise(residual, np.ones(len(residual)), target)
        n = self.calibration_rows or None
        self.calibration_ = self._distances(self.pair_, codes, target, n, 1, rng)
        return self

    # -- asking -----------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False) -> Any:  # noqa: ANN401
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
                std[~complete] = self.pair_.std(asked)[~complete]
        return (mean, std) if return_std else mean

    def predict_distribution(self, X: Any, *, noise: float | None = None) -> Distribution:  # noqa: ANN401
        """Distribution of y given what is known: unknown inputs and residual noise together.

        Not calibrated. ``noise`` is the residual standard deviation, by default ``noise_``;
        with 0 it is the distribution of the model's output.
        """
        codes, complete = self._codes(X)
        tau = self.noise_ if noise is None else noise
        found = self.pair_.distribution(self._open(codes, complete), noise=tau)
        return found.pinned(complete, self.circuit_(codes[complete]))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:  # noqa: ANN401
        """Interval that y lies in with this probability: unknown inputs and noise together.

        Calibrated so that about this share of rows is covered whatever the number of unknown
        columns, if these are hidden at random and rows are like those of training. It holds
        on average over such rows, not for each kind of row.

        Returns
        -------
        array of shape (rows, 2)
        """
        if not 0 < coverage < 1:
            raise DomainError(f"coverage lies between 0 and 1, not {coverage}")
        return self.predict_quantiles(X, [(1 - coverage) / 2, (1 + coverage) / 2])

    def predict_quantiles(self, X: Any, q: npt.ArrayLike = (0.05, 0.5, 0.95)) -> Floats:  # noqa: ANN401
        """Quantiles of y given what is known, calibrated as intervals are.

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
        level = np.sign(side) * self.calibration_.level(missing, np.abs(side))
        level = np.clip(0.5 * (1.0 + level), TOLERANCE, 1.0 - TOLERANCE)
        found: Floats = self.noise_ * ndtri(level)  # about a complete row's prediction
        found[complete] += self.circuit_(codes[complete])[:, None]
        if not np.all(complete):
            asked = self._open(codes, complete)
            predicted = self.pair_.distribution(asked, noise=self.noise_, tol=TOLERANCE)
            found[~complete] = predicted.quantile(level)[~complete]
        return found


def _noise(residual: Floats, weight: Floats, target: Floats) -> float:
    """Residual standard deviation; a perfect fit is no certainty."""
    return max(_size(residual, weight), 1e-9 * float(np.abs(target).max())) or 1e-9


def _size(values: Floats, weight: Floats) -> float:
    """Root of the weighted mean square, of numbers whose squares may leave the range of floats."""
    most = float(np.abs(values).max(initial=0.0)) or 1.0
    return most * float(np.sqrt(np.average((values / most) ** 2, weights=weight)))
