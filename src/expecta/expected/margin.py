"""What a model adds up before its link, over a density: the interface of the exact routes."""

from __future__ import annotations

from abc import ABC, abstractmethod

from expecta.common.arrays import Floats, Ints
from expecta.common.trust import Trust
from expecta.expected.compiled_trees import CompiledTrees
from expecta.expected.expected_output import ExpectedOutput, OutputContext
from expecta.expected.leaf_masks import LeafMasks
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
    masks
        The same for complete rows, where they take little enough memory.
    values_decide
        Whether values of the density decide the margin: no number counts within its bin.
    """

    n_variables: int
    compiled: CompiledTrees | None = None
    masks: LeafMasks | None = None
    values_decide: bool

    @abstractmethod
    def mean(self, codes: Ints) -> Floats:
        """E of the margin. Exact, given the density.  # (rows, outputs)."""

    @abstractmethod
    def of_values(self, codes: Ints, per_block: int = 1) -> Floats:
        """Return margins of complete rows of values.  # (rows, outputs).

        ``per_block`` rows after each other probably agree in many columns.
        """

    @abstractmethod
    def central_moments(self, codes: Ints, order: int) -> Floats:
        """Moments of the margin about its mean, or a TypeError.  # (rows, outputs, order + 1)."""

    @abstractmethod
    def response(
        self, form: Form, codes: Ints, offset: Floats, tol: float
    ) -> tuple[Floats, Floats] | None:
        """E[link(margin + offset)] and a bound on its error; None where it must be sampled."""

    @abstractmethod
    def variance(self, form: Form, codes: Ints, offset: Floats) -> Floats | None:
        """Variance of the output; None where it must be sampled.  # (rows, outputs)."""

    @abstractmethod
    def expected_output(
        self, context: OutputContext, form: Form, output: int, tol: float, sample: CompleteOutputs
    ) -> ExpectedOutput:
        """Answer about one output; what is not computed is sampled."""

    @abstractmethod
    def explain(self, form: Form, tol: float, exact: str) -> list[str]:
        """Say what the margin is, what is exact of it, and of the output, in three sentences.

        ``exact`` is the word for it.
        """

    @abstractmethod
    def response_trust(self, form: Form) -> Trust:
        """How far E[link(margin)] can be trusted."""

    @abstractmethod
    def spread_trust(self, form: Form) -> Trust:
        """How far :meth:`variance` can be trusted."""


def explain_response(form: Form, exact: str, computed: str | None) -> str:
    """Say what is exact of the output; ``computed`` says it where that is through a link."""
    if form.link == "identity":
        return f"Predictions, which are the margin: {exact}."
    if form.link == "none":
        return (
            "There are no probabilities, only margins: classes are those of the largest "
            "expected margin."
        )
    return computed or (
        f"E[{form.link}(margin)]: {Trust.SAMPLED}, with a standard error; decision_function has "
        f"the mean of the margin: {exact}."
    )
