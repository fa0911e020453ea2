"""What is known of a subject, whatever answers for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.common.arrays import Bools, Floats, Ints
from expecta.tables import Encoder
from expecta.tables.table import Table
from expecta.tables.training_rows import TrainingRows

__all__ = ["CELLS", "About", "Answer", "Sampling"]

Answer: TypeAlias = tuple[Floats, Floats]  # values and their errors

CELLS = "A number counts as its bin of the density, and an interval that cuts a bin as a share."
FIXED = 4096  # draws for spreads and distributions


@dataclass(frozen=True)
class Sampling:
    """How many draws are made where something is not computed.

    Attributes
    ----------
    rtol
        Standard error of a mean to reach, relative to the larger of the mean and ``scale``.
    most
        At most so many draws for a row of evidence.
    scale
        Spread of the model's outputs.
    seed
        The same question has the same answer.
    """

    rtol: float = 0.01
    most: int = 10_000
    scale: float = 1.0
    seed: int = 0

    @property
    def fixed(self) -> int:
        """Draws for a spread or a distribution."""
        return max(2, min(FIXED, self.most))

    def rng(self) -> np.random.Generator:
        """Return random numbers, the same for every question."""
        return np.random.default_rng(self.seed)


@dataclass(frozen=True, eq=False)
class About:
    """What is known of a subject, whatever answers for it.

    Attributes
    ----------
    name, of_class
        What the number is called, and the place of the class that it is of, if so.
    encoder, circuit
        The density.
    seen
        The training rows, if they were kept.
    read
        Reads rows that a user gave, as the model's ``predict`` does.
    sampling
        How many draws are made.
    exactness
        What is exact, in a sentence or a few.
    own
        The expectation for rows of a table with further cells hidden, where a model tells
        numbers apart that the density does not.
    is_margin
        Whether the number is the margin of the class, not its probability.
    """

    name: str
    of_class: int | None
    encoder: Encoder
    circuit: ProbabilisticCircuit
    seen: TrainingRows | None
    read: Callable[[Any], Table]
    sampling: Sampling
    exactness: str
    own: Callable[[Table, Ints, Bools], Answer] | None = None
    is_margin: bool = False

    def under(self, circuit: ProbabilisticCircuit) -> About:
        """Return the same for another density, which only codes can be asked of."""
        return replace(self, circuit=circuit, own=None)
