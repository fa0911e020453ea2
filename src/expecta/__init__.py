"""Expecta: what does a model predict, and how sure is it, when inputs are unknown?"""

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
from expecta.vtree import Vtree

__version__ = "0.1.0"

__all__ = [
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
]
