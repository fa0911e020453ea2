"""Sums of boxes: what trees are, and their expectation under a circuit."""

from expecta.engine.boxes.box_expectation import BoxExpectation
from expecta.engine.boxes.box_sums import BoxSum
from expecta.engine.boxes.value_sets import Runs, common, runs

__all__ = ["BoxExpectation", "BoxSum", "Runs", "common", "runs"]
