"""What a model adds up before its link, over a density: the interface of the exact routes."""

from __future__ import annotations

from abc import ABC, abstractmethod

from expecta.common.arrays import Floats, Ints
from expecta.expected.compiled_trees import CompiledTrees
from expecta.expected.expected_output import ExpectedOutput, OutputContext
from expecta.expected.sampled_output import CompleteOutputs
from expecta.readers.forms import Form


class Margin(ABC):
    """A model's margin over a density: its mean is exact, and more where that is possible.

    ``codes`` are values of the density's variables, -1 where unknown.  # (rows, variables)

    Attributes
    ----------
    n_variables
        How many variables the density has.
    compiled
        The trees that were compiled, if the model is a sum of trees.
    """

    n_variables: int
    compiled: CompiledTrees | None = None

    @abstractmethod
    def mean(self, codes: Ints) -> Floats:
        """E of the margin. Exact, given the density.  # (rows, outputs)."""

    @abstractmethod
    def central_moments(self, codes: Ints, order: int) -> Floats:
        """Moments of the margin about its mean, or a TypeError.  # (rows, outputs, order + 1)."""

    @abstractmethod
    def response(
        self, form: Form, codes: Ints, offset: Floats, tol: float
    ) -> tuple[Floats, Floats] | None:
        """E[link(margin + offset)] and a bound on its error; None where it must be sampled."""

    @abstractmethod
    def variance(self, form: Form, codes: Ints) -> Floats | None:
        """Variance of the output; None where it must be sampled.  # (rows, outputs)."""

    @abstractmethod
    def expected_output(
        self, context: OutputContext, form: Form, output: int, tol: float, sample: CompleteOutputs
    ) -> ExpectedOutput:
        """Answer about one output; what is not computed is sampled."""

    @abstractmethod
    def explain(self, form: Form, tol: float) -> list[str]:
        """Say what the margin is, what is exact of it, and of the output, in three sentences."""

    @abstractmethod
    def knows_variance(self, form: Form) -> bool:
        """Whether :meth:`variance` is exact."""


def explain_response(form: Form, exact: str | None) -> str:
    """Say what is exact of the output; ``exact`` says it where it is computed through a link."""
    if form.link == "identity":
        return "Predictions are the margin: exact."
    if form.link == "none":
        return (
            "There are no probabilities, only margins: classes are those of the largest "
            "expected margin."
        )
    return exact or (
        f"E[{form.link}(margin)]: sampled, with a standard error; decision_function has the exact "
        f"mean of the margin."
    )
