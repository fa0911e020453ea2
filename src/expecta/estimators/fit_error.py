"""Standard errors from the fit: what predictions would be with other training rows.

A Bayesian bootstrap (Rubin 1981): in each replicate every training row has a weight drawn from the
exponential distribution. A few steps of EM move the density from where it is to what the weighted
rows say, and the circuit is grown anew with the penalty and number of splits that were chosen (of
large tables its splits stay too). The encoding, the tree, its number of states and the scale of the
target stay: what another choice of these would change is left out, about a quarter of the standard
error where inputs are unknown, and more where rows hardly tell which scale fits better
(`python -m benchmarks.fit_errors`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from expecta.circuits.regression import RegressionCircuit
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Floats, Ints
from expecta.common.progress import Progress
from expecta.densities.density import Density
from expecta.densities.tree_learner import TreeLearner
from expecta.estimators.training import FinerBins, Training
from expecta.expected.expected_model import ExpectedModel, ModelRows
from expecta.learn.regression import LOSSES, Curve, GrownCircuit, grow
from expecta.learn.regression.noise_variance import NoiseVariance
from expecta.learn.weighted_rows import WeightedRows

REPLICATES = 30  # a standard error is then off by 13% itself
MAX_GROWN_ROWS = 10_000  # up to which splits are chosen anew
EM_STEPS = 5  # further ones hardly move the parameters


class CircuitParts(NamedTuple):
    """What a circuit was fitted from, to fit it again with other weights."""

    codes: Ints  # the table's rows in the circuit's bins, -1 where unknown
    weight: Floats  # (rows of the table,)
    finer: FinerBins
    training: Training
    y: Floats  # (rows of the table, outputs), in units of the circuit
    loss: str
    grown: GrownCircuit
    unit: float = 1.0  # of the target in y, which is about a centre
    centre: float = 0.0
    excess: NoiseVariance | None = None  # added to a circuit of the target's logarithm

    def in_units(self, g: RegressionCircuit) -> RegressionCircuit:
        """Return a circuit for the target as it was given, or for the logarithm of its mean."""
        weight, bias = g.weight * self.unit, g.bias * self.unit + self.centre
        own = RegressionCircuit(g.structure, weight, bias)
        return own if self.excess is None else self.excess.added(own)

    def refitted(self, times: Floats, vtree: Vtree, curves: Sequence[Curve]) -> RegressionCircuit:
        """Return the circuit with its parameters fitted to rows of other weights."""
        training, loss = self.training, LOSSES[self.loss]
        weight = training.weight
        if np.any(training.times > 1):
            weight = training.given_target(self.y, self.grown.circuit, loss, weight)
        grown, few = self.grown, len(self.y) <= MAX_GROWN_ROWS and self.grown.n_kept is None
        same: dict[str, Any] = {"penalties": [grown.penalty], "max_splits": grown.n_splits}
        again = grow(
            training.codes,
            self.y[training.origin],
            vtree=vtree,
            curves=curves,
            loss=self.loss,
            weight=weight * times[training.origin],
            exact=False,
            **(same if few else {"like": grown}),
        )
        return self.in_units(again.circuit)


def replicate_weights(n_rows: int, seed: Any) -> Iterator[Floats]:
    """Draw the weights of rows, one replicate after the other; their mean is one."""
    rng = np.random.default_rng(seed)
    for _ in range(REPLICATES):
        weight = rng.exponential(size=n_rows)
        yield weight / weight.mean()


def relearned(density: Density, codes: Ints, weight: Floats) -> Density:
    """Return a density as other weights of its training rows make it.

    One that does not learn by counts, such as a PSDD, or was given, stays as it is.
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
