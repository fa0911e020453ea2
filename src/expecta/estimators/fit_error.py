"""Standard errors from the fit: what predictions would be with other training rows.

A Bayesian bootstrap (Rubin 1981): in each replicate every training row has a weight drawn from the
exponential distribution. A few steps of EM move the density from where it is to what the weighted
rows say, and the circuit is grown anew with the penalty and number of splits that were chosen (of
large tables its splits stay too). Up to 10,000 rows, what is chosen besides is chosen anew in ten
replicates: the density's tree and number of states, and, where a logarithm was tried, the scale of
the target; the others repeat these choices in turn. Incomplete rows are completed anew. Choices
take most of the time. The encoding and the folds stay, and the tree and number of states under a
wrapped model (`python -m benchmarks.fit_errors`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.regression import RegressionCircuit
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Floats, Ints
from expecta.common.progress import Progress
from expecta.densities.density import Density
from expecta.densities.tree_learner import TreeLearner
from expecta.estimators.target_transform import HeldOutFit, ScaledTarget, is_better, judge_scale
from expecta.estimators.training import TARGET_ROUNDS, FinerBins, Training
from expecta.expected.expected_model import ExpectedModel, ModelRows
from expecta.learn.regression import LOSSES, Curve, GrownCircuit, grow
from expecta.learn.regression.noise_variance import NoiseVariance
from expecta.learn.weighted_rows import WeightedRows

REPLICATES = 30  # a standard error is then off by 13% itself
MAX_GROWN_ROWS = 10_000  # up to which splits are chosen anew
CHOICES = 10  # replicates in which tree, states and scale are chosen; others repeat them
EM_STEPS = 5  # further ones hardly move the parameters


class CircuitParts(NamedTuple):
    """What a circuit was fitted from, to fit it again with other weights."""

    codes: Ints  # the table's rows in the circuit's bins, -1 where unknown
    weight: Floats  # (rows of the table,)
    finer: FinerBins
    training: Training
    scaled: ScaledTarget
    loss: str
    grown: GrownCircuit
    fit: HeldOutFit | None = None  # by which a scale is chosen, where several were tried
    log: CircuitParts | None = None  # the same on a logarithmic scale, if that was tried beside

    @property
    def excess(self) -> NoiseVariance | None:
        """What is added to a circuit of the target's logarithm."""
        return None if self.fit is None else self.fit.excess

    def chosen(self) -> CircuitParts:
        """Return the parts on the scale that held-out rows are for."""
        if self.log is None or self.log.fit is None or self.fit is None:
            return self
        return self.log if is_better(self.log.fit, self.fit) else self

    def rechosen(
        self, times: Floats, vtree: Vtree, curves: Sequence[Curve], noise_curves: Sequence[Curve]
    ) -> CircuitParts:
        """Return what would be chosen if rows counted so often: each fold is learned anew.

        Where rows are many, held-out rows leave no doubt, and it is what was chosen.
        """
        if self.log is None or self.fit is None or not self.is_small:
            return self.chosen()
        target = self.scaled.centre + self.scaled.unit * self.scaled.y
        training, fits = self._training(times), []
        for parts in (self, self.log):
            folds = parts._grown(times, vtree, curves, fold=training.fold, keep_folds=True).folds
            fits.append(judge_scale(target, parts.scaled, training, folds, noise_curves, 0))
        return self.log if is_better(fits[1], fits[0]) else self

    def completed_anew(self, p: ProbabilisticCircuit, seed: int) -> CircuitParts:
        """Return the parts with other completions of incomplete rows."""
        return self._replace(training=self.training.completed_anew(p, self.codes, seed))

    def in_units(self, g: RegressionCircuit) -> RegressionCircuit:
        """Return a circuit for the target as it was given, or for the logarithm of its mean."""
        scaled = self.scaled
        weight, bias = g.weight * scaled.unit, g.bias * scaled.unit + scaled.centre
        own = RegressionCircuit(g.structure, weight, bias)
        return own if self.excess is None else self.excess.added(own)

    def refitted(self, times: Floats, vtree: Vtree, curves: Sequence[Curve]) -> RegressionCircuit:
        """Return the circuit with its parameters fitted to rows of other weights."""
        return self.in_units(self._grown(times, vtree, curves, exact=False).circuit)

    @property
    def is_small(self) -> bool:
        """Whether the circuit is grown anew, on any vtree."""
        return len(self.weight) <= MAX_GROWN_ROWS and self.grown.n_kept is None

    def _training(self, times: Floats) -> Training:
        training = self.training
        return training._replace(weight=training.weight * times[training.origin])

    def _grown(
        self, times: Floats, vtree: Vtree, curves: Sequence[Curve], **more: Any
    ) -> GrownCircuit:
        training, grown = self._training(times), self.grown
        weight, y = training.weight, self.scaled.y.reshape(len(self.weight), -1)
        same: dict[str, Any] = {"penalties": [grown.penalty], "max_splits": grown.n_splits}
        learn = partial(
            grow,
            training.codes,
            y[training.origin],
            vtree=vtree,
            curves=curves,
            loss=self.loss,
            **(same if self.is_small else {"like": grown}),
        )
        if np.any(training.times > 1):
            for _ in range(TARGET_ROUNDS - 1):
                rough = learn(weight=weight, exact=False).circuit
                weight = training.given_target(y, rough, LOSSES[self.loss], weight)
        return learn(weight=weight, **more)


def replicate_weights(n_rows: int, seed: Any) -> Iterator[Floats]:
    """Draw the weights of rows, one replicate after the other; their mean is one."""
    rng = np.random.default_rng(seed)
    for _ in range(REPLICATES):
        weight = rng.exponential(size=n_rows)
        yield weight / weight.mean()


def learned_anew(density: Density, codes: Ints, weight: Floats, seed: int) -> Density:
    """Return a density whose tree and number of states too are what other weights say."""
    if not isinstance(density, TreeLearner):
        return density
    return density.learned_anew(WeightedRows(codes, weight), seed)


def relearned(density: Density, codes: Ints, weight: Floats) -> Density:
    """Return a density as other weights of its training rows make it.

    One that does not learn by counts, such as a PSDD, stays as it is.
    """
    if not isinstance(density, TreeLearner):
        return density
    for _ in range(EM_STEPS):
        density = density.relearned(WeightedRows(codes, weight))
    return density


def fit_error(models: list[ExpectedModel], rows: ModelRows) -> Floats:
    """Return the standard deviation of replicates' predictions.  # (rows, outputs)."""
    predictions = []
    with Progress("replicates", len(models)) as progress:
        for model in models:
            predictions.append(model.answer(rows).mean)
            progress.advance()
    about = np.array(predictions) - predictions[0]  # zero where all are equal
    return np.asarray(np.std(about, axis=0, ddof=1))
