"""Answer about an output of a model by asking the model about conditional samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.common.arrays import Floats, Ints
from expecta.expected.expected_output import ExpectedOutput, OutputContext

# All outputs of a model for complete rows of a density's values; numbers are drawn in bins.
CompleteOutputs: TypeAlias = Callable[[Ints, np.random.Generator], Floats]


class SampledOutput(ExpectedOutput):
    """One output of any model. All is sampled, but the probability of a group."""

    def __init__(self, context: OutputContext, sample: CompleteOutputs, output: int) -> None:
        super().__init__(context)
        self._sample, self._output = sample, output

    def with_density(self, circuit: ProbabilisticCircuit) -> ExpectedOutput:
        """Return the same model over another density of the same variables."""
        return SampledOutput(self.context.with_density(circuit), self._sample, self._output)

    def outputs(self, codes: Ints, rng: np.random.Generator) -> Floats:
        """Return the model's number for complete rows of values; numbers are drawn in bins."""
        return self._sample(codes, rng)[:, self._output]
