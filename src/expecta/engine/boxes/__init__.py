"""Compute with sums of boxes, what trees are: their expectation under a circuit."""

from expecta.engine.boxes.box_expectation import BoxExpectation
from expecta.engine.boxes.box_sums import BoxSum
from expecta.engine.boxes.value_sets import Runs, intersection, runs

__all__ = ["BoxExpectation", "BoxSum", "Runs", "intersection", "runs"]
