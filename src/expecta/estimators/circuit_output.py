"""What is asked of a fitted circuit estimator: its prediction, or the probability of a class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from expecta.common.errors import DomainError
from expecta.expected.about import CELLS, About, Sampling
from expecta.expected.classes import class_index
from expecta.expected.expected_output import ExpectedOutput
from expecta.expected.pair_output import PairOutput, Shares, one_output

if TYPE_CHECKING:
    from expecta.estimators.base import CircuitEstimator

__all__ = ["of_circuits"]

DRAWN = "sampled, with a standard error"
_TWO = (
    "Mean and standard deviation: within a bound. Share: exact. Quantiles: exact for groups of "
    f"few cells, else within their error. {CELLS}"
)
_SEVERAL = (
    "Mean: the ratio of expected one-against-the-rest probabilities, as predict_proba has it, "
    f"within a bound. Spread, quantiles and thresholds: {DRAWN}. Share: exact. {CELLS}"
)


def of_circuits(model: CircuitEstimator, of: Any = None) -> ExpectedOutput:
    """Return what a CircuitRegressor predicts, or the probability that a CircuitClassifier does."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        if of is not None:
            raise DomainError(f"a regressor has one output; leave of={of!r:.40} out")
        name, place = model.target_name_, None
        how = (
            "Mean, standard deviation and share: exact for the model and the density. Quantiles: "
            f"exact for groups of few cells, else within their error. {CELLS}"
        )
    else:
        place = class_index(classes, of)
        name, how = f"P({classes[place]})", _TWO if len(classes) == 2 else _SEVERAL
    pair, read = model.pair_, model._table
    about = About(
        name, place, model.encoder_, pair.p, model.training_rows_, read, Sampling(scale=0.1), how
    )
    if classes is None:
        return PairOutput(about, pair, "identity", 1e-9)
    if len(classes) > 2:
        return Shares(about, pair, model.tol)
    return PairOutput(
        about, one_output(pair, 0, 1.0 if place == 1 else -1.0), "logistic", model.tol
    )
