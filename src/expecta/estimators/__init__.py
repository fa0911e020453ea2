"""The scikit-learn face: estimators that predict with unknown inputs, and imputers.

A :class:`CircuitRegressor` or :class:`CircuitClassifier` learns a density of the inputs and
a circuit for the target; what it predicts is the circuit's expectation under the density.
"""

from typing import TYPE_CHECKING

from expecta.common.later_imports import imported_later

if TYPE_CHECKING:
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

__getattr__ = imported_later(  # none of them imports what only the others need
    __name__,
    {
        "CircuitClassifier": "expecta.estimators.classifier",
        "CircuitRegressor": "expecta.estimators.regressor",
        "ConditionalMeanImputer": "expecta.estimators.imputers",
        "ConditionalSampler": "expecta.estimators.imputers",
        "ExpectedPredictor": "expecta.estimators.expected_predictor",
        "MPEImputer": "expecta.estimators.imputers",
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)
