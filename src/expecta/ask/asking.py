"""Questions about a model and groups of rows, as methods of estimators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from expecta.ask.decisions import Stability, Sufficient
    from expecta.ask.dependence import Dependence
    from expecta.ask.disparities import Disparities
    from expecta.ask.group_answers import Comparison, Group
    from expecta.ask.next_question import NextQuestion
    from expecta.ask.outliers import Outliers
    from expecta.ask.shapley import Shapley
    from expecta.ask.split import Split
    from expecta.densities.density import Density
    from expecta.expected.expected_output import ExpectedOutput

__all__ = ["Asking"]


class Asking(ABC):
    """What can be asked of a model with a density, beside predictions.

    A group is a text such as ``"smoker == 'yes' and 30 <= age < 40"`` or a mapping from columns
    to facts (a value, a list, an interval ``(low, high)``). ``of`` names the class whose
    probability is asked about, by default the second of two; for a regressor with several
    outputs it is the place of one. Answers print themselves, and have ``to_dict`` and
    ``to_frame``. What is exact for a model is in their ``exactness``.
    """

    density_: Density

    # -- groups -----------------------------------------------------------------------

    def ask(self, query: Any = None, /, *, of: Any = None, **facts: Any) -> Group:
        """Describe the model's output over a group: mean, spread, quantiles, share.

        Parameters
        ----------
        query
            The group: a text, or a mapping from columns to facts; None is everyone.
        of
            The class, or the place of the output, that is asked about.
        facts
            Further facts, by column: ``ask(smoker="yes", age=(30, 40))``. For a column that is
            called ``of`` pass a mapping.

        Returns
        -------
        Group
            Mean and standard deviation of the *model's output*, exact or with an error; its
            quantiles; the group's probability, exact; and beside these the number of training
            rows in the group and the plain average of their target. A group of probability
            zero has NaN and a remark. Cost: one distribution of the output for each of the
            disjoint boxes that the group is made of.
        """
        from expecta.ask.ask_group import ask

        return ask(self.expected_output(of), query, facts)

    def compare(self, a: Any, b: Any, *, of: Any = None) -> Comparison:
        """Compare two groups: difference and ratio of means, and who is above whom.

        Parameters
        ----------
        a, b
            The groups, as :meth:`ask` takes them.
        of
            The class, or the place of the output, that is asked about.

        Returns
        -------
        Comparison
            Means are as exact as those of :meth:`ask`. The probability that a random member
            of a is above one of b is read from both distributions on a grid, and says how
            far it may be off. Cost: that of two groups.
        """
        from expecta.ask.ask_group import compare

        return compare(self.expected_output(of), a, b)

    def split(self, *columns: str, given: Any = None, bins: int = 4, of: Any = None) -> Split:
        """Divide a population by some columns, and describe the output over each part.

        Parameters
        ----------
        columns
            What to divide by; all combinations that are possible are made.
        given
            The population, as :meth:`ask` takes groups; None is everyone.
        bins
            Numbers are cut into so many groups of about equal share, at edges of the
            density's bins: no bin is cut.
        of
            The class, or the place of the output, that is asked about.

        Returns
        -------
        Split
            As exact as :meth:`ask`. Groups in which the density expects fewer than five
            training rows are marked as rare. Cost: one batch of expectations.
        """
        from expecta.ask.split import split

        return split(self.expected_output(of), columns, given, bins)

    def dependence(
        self, column: str, given: Any = None, grid: Any = None, of: Any = None
    ) -> Dependence:
        """Follow the model's output along a column, together with what goes with it, and alone.

        Parameters
        ----------
        column
            The column.
        given
            The population, as :meth:`ask` takes groups; None is everyone.
        grid
            The values, or into how many groups to merge the bins of numbers, by default 50.
        of
            The class, or the place of the output, that is asked about.

        Returns
        -------
        Dependence
            E[output | column = value], its spread, and partial dependence: the expectation if
            the column alone were set to the value while the others stay as they are in the
            population. Both as exact as means of :meth:`ask`; partial dependence also asks
            about combinations that never occur. Cost: two batches of expectations.
        """
        from expecta.ask.dependence import dependence

        return dependence(self.expected_output(of), column, given, grid)

    # -- single rows ------------------------------------------------------------------

    def next_question(
        self, row_or_query: Any = None, *, cost: Mapping[str, float] | None = None, of: Any = None
    ) -> NextQuestion:
        """Rank unknown columns by how much knowing them would settle the output, per cost.

        See :func:`expecta.ask.next_question.next_question` for what is exact, and the cost.
        """
        from expecta.ask.next_question import next_question

        return next_question(self.expected_output(of), row_or_query, cost=cost)

    def stability(self, rows: Any, threshold: float, *, of: Any = None) -> Stability:
        """Compute how likely each row's decision stands once its unknown inputs are known.

        See :func:`expecta.ask.decisions.stability` for what is exact, and the cost.
        """
        from expecta.ask.decisions import stability

        return stability(self.expected_output(of), rows, threshold)

    def sufficient(
        self, row: Any, threshold: float, *, probability: float = 0.95, of: Any = None
    ) -> Sufficient:
        """Find a smallest set of known columns that keeps a row's decision by itself.

        See :func:`expecta.ask.decisions.sufficient` for what is exact, and the cost.
        """
        from expecta.ask.decisions import sufficient

        return sufficient(self.expected_output(of), row, threshold, probability=probability)

    def shapley(self, rows: Any, *, of: Any = None, seed: int = 0) -> Shapley:
        """Compute conditional Shapley values: how the known columns share the expected output.

        See :func:`expecta.ask.shapley.shapley` for what is exact, and the cost.
        """
        from expecta.ask.shapley import shapley

        return shapley(self.expected_output(of), rows, seed=seed)

    # -- audits -----------------------------------------------------------------------

    def disparities(
        self,
        sensitive: str | Sequence[str],
        *,
        delta: float | None = None,
        size: int = 2,
        rows: Any = None,
        given: Any = None,
        of: Any = None,
    ) -> Disparities:
        """Search groups in which a sensitive column changes the expected output by ``delta``.

        See :func:`expecta.ask.disparities.disparities` for what is exact, and
        the cost.
        """
        from expecta.ask.disparities import disparities

        asked = self.expected_output(of)
        return disparities(asked, sensitive, delta=delta, size=size, rows=rows, given=given)

    def outliers(self, rows: Any) -> Outliers:
        """Measure how unlike the training rows some rows are, whatever is missing in them.

        See :func:`expecta.ask.outliers.outliers` for what is exact, and the cost.
        """
        from expecta.ask.outliers import outliers

        self._learned()
        return outliers(self.density_, rows)

    # ---------------------------------------------------------------------------------

    def expected_output(self, of: Any = None) -> ExpectedOutput:
        """Return one number that the model outputs, to ask its mean, variance and distribution.

        Parameters
        ----------
        of
            The class, or the index of the output.
        """
        learned, kept = self.__dict__.get("_outputs", (None, {}))
        if learned is not self._learned():
            kept = {}
            self.__dict__["_outputs"] = self._learned(), kept
        if repr(of) not in kept:
            kept[repr(of)] = self._make_output(of)
        output: ExpectedOutput = kept[repr(of)]
        return output

    @abstractmethod
    def _learned(self) -> object:
        """Return what was learned, another object after each ``fit``; raise where nothing was."""

    @abstractmethod
    def _make_output(self, of: Any) -> ExpectedOutput:
        """Return what :meth:`expected_output` keeps."""

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_outputs"}
