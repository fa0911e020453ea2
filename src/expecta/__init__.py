"""Exact expected predictions: what a model says when some of its inputs are unknown."""

from typing import TYPE_CHECKING

from expecta.circuits import (
    ProbabilisticCircuit,
    RegressionCircuit,
    naive_bayes,
    random_probabilistic,
    random_regression,
)
from expecta.circuits.evidence import Evidence
from expecta.circuits.vtree import Vtree
from expecta.common.errors import (
    BatchError,
    DomainError,
    ExpectaError,
    FormatError,
    ImpossibleEvidenceError,
    ImpossibleEvidenceWarning,
    MissingColumnsWarning,
    PropertyError,
    QueryError,
    StructureError,
    VtreeMismatchError,
)
from expecta.common.later_imports import imported_later
from expecta.common.settings import config_context
from expecta.queries.pair import Pair

if TYPE_CHECKING:
    from expecta.ask.circuit_model import CircuitModel
    from expecta.batches import predict_batches
    from expecta.densities import (
        PSDD,
        ChowLiu,
        Density,
        Independent,
        LatentTree,
        Marginal,
        NaiveBayes,
    )
    from expecta.estimators import (
        CircuitClassifier,
        CircuitRegressor,
        ConditionalMeanImputer,
        ConditionalSampler,
        ExpectedPredictor,
        MPEImputer,
    )
    from expecta.estimators.warm_up import warm_up
    from expecta.learn.regression import fit_parameters
    from expecta.learn.vtrees import learn_vtree
    from expecta.queries.density_queries import MostProbable
    from expecta.queries.links import Expected, Link
    from expecta.queries.output_distribution import Distribution
    from expecta.tables import BooleanEncoder, Encoder

__version__ = "0.1.0"

__all__ = [
    "PSDD",
    "BatchError",
    "BooleanEncoder",
    "ChowLiu",
    "CircuitClassifier",
    "CircuitModel",
    "CircuitRegressor",
    "ConditionalMeanImputer",
    "ConditionalSampler",
    "Density",
    "Distribution",
    "DomainError",
    "Encoder",
    "Evidence",
    "ExpectaError",
    "Expected",
    "ExpectedPredictor",
    "FormatError",
    "ImpossibleEvidenceError",
    "ImpossibleEvidenceWarning",
    "Independent",
    "LatentTree",
    "Link",
    "MPEImputer",
    "Marginal",
    "MissingColumnsWarning",
    "MostProbable",
    "NaiveBayes",
    "Pair",
    "ProbabilisticCircuit",
    "PropertyError",
    "QueryError",
    "RegressionCircuit",
    "StructureError",
    "Vtree",
    "VtreeMismatchError",
    "config_context",
    "datasets",
    "fit_parameters",
    "learn_vtree",
    "naive_bayes",
    "predict_batches",
    "random_probabilistic",
    "random_regression",
    "warm_up",
]

_LATER = {  # these need numba or scikit-learn, which take a moment to import
    "BooleanEncoder": "expecta.tables",
    "ChowLiu": "expecta.densities",
    "CircuitClassifier": "expecta.estimators",
    "CircuitModel": "expecta.ask.circuit_model",
    "CircuitRegressor": "expecta.estimators",
    "ConditionalMeanImputer": "expecta.estimators",
    "ConditionalSampler": "expecta.estimators",
    "Density": "expecta.densities",
    "Distribution": "expecta.queries.output_distribution",
    "Encoder": "expecta.tables",
    "Expected": "expecta.queries.links",
    "ExpectedPredictor": "expecta.estimators",
    "Independent": "expecta.densities",
    "LatentTree": "expecta.densities",
    "Link": "expecta.queries.links",
    "MPEImputer": "expecta.estimators",
    "Marginal": "expecta.densities",
    "MostProbable": "expecta.queries.density_queries",
    "NaiveBayes": "expecta.densities",
    "PSDD": "expecta.densities",
    "datasets": "expecta.datasets",
    "fit_parameters": "expecta.learn.regression",
    "learn_vtree": "expecta.learn.vtrees",
    "predict_batches": "expecta.batches",
    "warm_up": "expecta.estimators.warm_up",
}

__getattr__ = imported_later(__name__, _LATER)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
