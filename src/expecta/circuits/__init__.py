"""Circuits as data: structure, parameters, properties, files, pictures."""

from expecta.circuits.builders import leaf, literal, node
from expecta.circuits.constructions import independent, linear, naive_bayes
from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.properties import Properties
from expecta.circuits.random_circuits import random_probabilistic, random_regression
from expecta.circuits.regression import RegressionCircuit
from expecta.circuits.structure import Structure

__all__ = [
    "ProbabilisticCircuit",
    "Properties",
    "RegressionCircuit",
    "Structure",
    "independent",
    "leaf",
    "linear",
    "literal",
    "naive_bayes",
    "node",
    "random_probabilistic",
    "random_regression",
]
