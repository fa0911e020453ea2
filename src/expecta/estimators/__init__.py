"""The scikit-learn face: estimators that predict with unknown inputs, and imputers.

A :class:`CircuitRegressor` or :class:`CircuitClassifier` learns a density of the inputs and
a circuit for the target; what it predicts is the circuit's expectation under the density.
"""

from expecta.estimators.classifier import CircuitClassifier
from expecta.estimators.expected_predictor import ExpectedPredictor
from expecta.estimators.imputers import ConditionalMeanImputer, ConditionalSampler, MPEImputer
from expecta.estimators.regressor import CircuitRegressor

__all__ = [
    "CircuitClassifier",
    "CircuitRegressor",
    "ConditionalMeanImputer",
    "ConditionalSampler",
    "ExpectedPredictor",
    "MPEImputer",
]
