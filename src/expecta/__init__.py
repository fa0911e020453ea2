"""Exact expected predictions: what a model says when some of its inputs are unknown."""

from expecta.circuits import (
    ProbabilisticCircuit,
    RegressionCircuit,
    independent,
    leaf,
    linear,
    literal,
    naive_bayes,
    node,
    random_probabilistic,
    random_regression,
)
from expecta.evidence import Evidence
from expecta.pair import Pair
from expecta.settings import using
from expecta.vtree import Vtree

__version__ = "0.1.0"

__all__ = [
    "Evidence",
    "Pair",
    "ProbabilisticCircuit",
    "RegressionCircuit",
    "Vtree",
    "independent",
    "leaf",
    "linear",
    "literal",
    "naive_bayes",
    "node",
    "random_probabilistic",
    "random_regression",
    "using",
]
