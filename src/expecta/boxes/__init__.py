"""Sums of boxes: what trees are, and their expectation under a circuit."""

from expecta.boxes.expectation import Expectation
from expecta.boxes.sets import Runs, common, runs
from expecta.boxes.sums import BoxSum

__all__ = ["BoxSum", "Expectation", "Runs", "common", "runs"]
