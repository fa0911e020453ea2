"""Answer questions about a model's output over groups and rows, as methods of estimators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from expecta.ask.decisions import Stability, Sufficient
    from expecta.ask.dependence import Dependence
    from expecta.ask.disparities import Disparities
    from expecta.ask.groups import Comparison, Group
    from expecta.ask.next_question import NextQuestion
    from expecta.ask.outliers import Outliers
    from expecta.ask.shapley import Shapley
    from expecta.ask.split import Split
    from expecta.densities.density import Density
    from expecta.expected.expected_output import ExpectedOutput


class Asking(ABC):
    """What can be asked of a model with a density, beside predictions.

    A group is a text such as ``"smoker == 'yes' and 30 <= age < 40"``, a mapping from columns
    to facts (a value, a list, an interval ``(low, high)``), or a table with one row. Rows are what
    ``predict`` takes; one row may be a mapping from columns to values. ``of`` names the class
    whose probability the question is about, by default the second of two; for a regressor with
    several outputs it is the index of one. Answers print themselves, and have ``to_dict``,
    ``to_frame`` and most of them ``plot``. Their ``exactness`` says what is exact, given the
    learned density.
    """

    # -- groups -----------------------------------------------------------------------

    def ask(
        self, query: Any = None, /, *, of: Any = None, population: str = "both", **facts: Any
    ) -> Group:
        """Describe the model's output over a group: mean, spread, quantiles, share.

        All are those of the *model's output* over the members of the group, not of the target.
        The mean combines two sources: the model over the training rows in the group, which chance
        moves, and its expectation under the density, which the density's faults move. How large
        these are is learned from how far the two are apart over many groups. So many rows decide
        by themselves, and where there are none the density does; ``standard_error`` says how far
        the mean may be off. Spread, quantiles and share are the density's: exact, given the
        learned density, or with the error stated.

        Parameters
        ----------
        query
            The group: a text, a mapping from columns to facts, or one row; None is everyone.
        of
            The class, or the index of the output.
        population
            What the mean is over: "density", what was learned; "rows", the training rows in
            the group; "both", the two combined by how precise they are.
        facts
            Further facts, by column: ``ask(smoker="yes", age=(30, 40))``. For a column that is
            called ``of`` or ``population`` pass a mapping.

        Returns
        -------
        Group
            A group of probability zero has NaN and a remark.

        Examples
        --------
        >>> from expecta import ChowLiu, CircuitRegressor
        >>> table = {"smoker": ["no", "yes"] * 20, "children": [0, 0, 1, 2] * 10}
        >>> model = CircuitRegressor(density=ChowLiu()).fit(table, [1.0, 9.0] * 20)
        >>> group = model.ask(smoker="yes")
        >>> round(group.mean), round(group.share, 2), group.rows
        (9, 0.5, 20)

        Notes
        -----
        Cost: mean and variance for each of the disjoint boxes that the group is made of, and a
        look at each training row; for quantiles one distribution for each box, once they are
        looked at. The first question also computes the model's output for all training rows and
        for up to 20,000 samples from the density.
        """
        from expecta.ask.groups import ask

        return ask(self.expected_output(of), query, facts, population)

    def compare(self, a: Any, b: Any, *, of: Any = None, population: str = "both") -> Comparison:
        """Compare two groups: difference and ratio of means, and who is above whom.

        Means are those of :meth:`ask`. The standard error of their difference takes into account
        what the density gets wrong in both groups alike, and rows that are in both. The
        probability that a random member of ``a`` is above one of ``b`` is the density's, read
        from both distributions on a grid, with its error.

        Parameters
        ----------
        a, b
            The groups, as :meth:`ask` takes them.
        of
            The class, or the index of the output.
        population
            What means are over; see :meth:`ask`.

        Returns
        -------
        Comparison
            Cost: that of two groups.
        """
        from expecta.ask.groups import compare

        return compare(self.expected_output(of), a, b, population)

    def split(
        self,
        *columns: str,
        given: Any = None,
        bins: int = 4,
        of: Any = None,
        population: str = "both",
    ) -> Split:
        """Divide a population by some columns, and describe the output over each part.

        Means combine rows and density as in :meth:`ask`, and are then shifted, by less than their
        standard errors as a rule, so that their mean by share is that of the whole. Groups in
        which the density expects fewer than five training rows are marked as rare.

        Parameters
        ----------
        columns
            What to divide by; all combinations that are possible are made.
        given
            The population, as :meth:`ask` takes groups; None is everyone.
        bins
            Number of groups of about equal share that numbers are cut into, at edges of the
            density's bins: no bin is cut.
        of
            The class, or the index of the output.
        population
            What means are over; see :meth:`ask`.

        Returns
        -------
        Split
            Cost: one batch of expectations.
        """
        from expecta.ask.split import split

        return split(self.expected_output(of), columns, given, bins, population)

    def dependence(
        self,
        column: str,
        given: Any = None,
        grid: Any = None,
        of: Any = None,
        population: str = "both",
    ) -> Dependence:
        """Follow the model's output along a column, with the columns that vary with it and alone.

        E[output | column = value] lets the other columns vary with the value. Partial
        dependence is the expectation if the column alone were set to the value while the
        others stay as they are in the population; it also averages over combinations that
        never occur. The first combines rows and density as :meth:`split` does; the second is the
        density's, and as exact as its means. Neither is causal.

        Parameters
        ----------
        column
            The column.
        given
            The population, as :meth:`ask` takes groups; None is everyone.
        grid
            The values, or into how many groups to merge the bins of numbers, by default 50.
        of
            The class, or the index of the output.
        population
            What E[output | column = value] is over; see :meth:`ask`.

        Returns
        -------
        Dependence
            Cost: two batches of expectations.
        """
        from expecta.ask.dependence import dependence

        return dependence(self.expected_output(of), column, given, grid, population)

    # -- single rows ------------------------------------------------------------------

    def next_question(
        self, row_or_query: Any = None, *, cost: Mapping[str, float] | None = None, of: Any = None
    ) -> NextQuestion:
        """Rank unknown columns by how much knowing them would settle the output, per cost.

        The expected reduction of the variance is Var(E[output | known, column]) over the
        values that the column may have. Exact, given the learned density, where means are;
        else with a standard error, and without the bias that sampling adds. A number would
        become known up to its bin.

        Parameters
        ----------
        row_or_query
            What is known: one row, as ``predict`` takes it, or a group. In a row, a missing value
            that is a value (``missing_is_value``) is known. In a group, a column of which a set or
            an interval is known counts as unknown.
        cost
            What it costs to know each column, above zero; 1 for those not named.
        of
            The class, or the index of the output.

        Returns
        -------
        NextQuestion
            By reduction, or by reduction per cost where costs are given. Cost: one batch of
            expectations, a row for each value of each unknown column.
        """
        from expecta.ask.next_question import next_question

        return next_question(self.expected_output(of), row_or_query, cost=cost)

    def stability(self, rows: Any, threshold: float, *, of: Any = None) -> Stability:
        """Compute how likely each row's decision stands once its unknown inputs are known.

        The decision is whether E[output | known] >= threshold, and it stands with
        P(output >= threshold | known) or its complement. A complete row's decision stands.

        Parameters
        ----------
        rows
            Rows, as ``predict`` takes them.
        threshold
            The decision is "yes" from this expected output on.
        of
            The class, or the index of the output.

        Returns
        -------
        Stability
            Probabilities with an error: a bound, or a standard error (see ``exactness``).
            Cost: one distribution per distinct row.
        """
        from expecta.ask.decisions import stability

        return stability(self.expected_output(of), rows, threshold)

    def sufficient(
        self, row: Any, threshold: float, *, probability: float = 0.95, of: Any = None
    ) -> Sufficient:
        """Find a smallest set of known columns that keeps a row's decision by itself.

        A set is sufficient if the decision has at least ``probability`` given these columns
        alone, with all others unknown; probabilities are those of :meth:`stability`. Of the
        sufficient sets of the smallest size the most probable is taken. With up to 12 known
        columns all sets are tried; with more it is a search, and ``proven`` says whether every
        smaller set was tried.

        Parameters
        ----------
        row
            One row, as ``predict`` takes it.
        threshold
            The decision is "yes" from this expected output on.
        probability
            How probable the same decision must be.
        of
            The class, or the index of the output.

        Returns
        -------
        Sufficient
            Cost: one distribution for each set that is tried.
        """
        from expecta.ask.decisions import sufficient

        return sufficient(self.expected_output(of), row, threshold, probability=probability)

    def shapley(self, rows: Any, *, of: Any = None, random_state: int = 0) -> Shapley:
        """Compute conditional Shapley values: how the known columns share the expected output.

        The value of a coalition S is E[output | the columns in S], everything else unknown, as
        ``predict`` has it; so columns share what they tell together. A row's values and the
        base add up to its prediction. With up to 12 known columns all coalitions are asked, and
        the values are as exact as means are; with more, a value is the mean over random orders
        of the columns and their reverses, with a standard error.

        Parameters
        ----------
        rows
            Rows, as ``predict`` takes them.
        of
            The class, or the index of the output.
        random_state
            Seed of the random orders.

        Returns
        -------
        Shapley
            Cost: 2^columns expectations for each row, of which equal ones are shared; beyond 12
            columns at most 512 orders for each row.
        """
        from expecta.ask.shapley import shapley

        return shapley(self.expected_output(of), rows, random_state)

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
        population: str = "both",
    ) -> Disparities:
        """Search groups in which a sensitive column changes the expected output by ``delta``.

        A group is a conjunction of up to ``size`` facts on other columns: a category, or one of
        four ranges of about equal share of a number. Disclosed is one value of a sensitive
        column, or one of each where several are named. The gap, E[output | group, attribute] -
        E[output | group], combines rows and density as :meth:`compare` does. The most evident
        gaps are reported, by the gap over its standard error, and which are beyond chance; groups
        with nearly the same members once. Groups whose probability with the attribute is below
        0.001 are left out, and so are the least probable ones beyond 20,000.

        Parameters
        ----------
        sensitive
            One or several columns.
        delta
            Report gaps of at least this size; by default the 20 most evident.
        size
            The largest number of facts that make a group.
        rows
            A table: parity is then also that of its rows' predictions. A row in which the
            sensitive column is unknown counts for each of its values with the exact posterior
            probability given the rest of the row.
        given
            The population, as :meth:`ask` takes groups; None is everyone.
        of
            The class, or the index of the output.
        population
            What means are over; see :meth:`ask`.

        Returns
        -------
        Disparities
            Cost: two expectations for each group and attribute, and a look at each training row.
        """
        from expecta.ask.disparities import disparities

        output = self.expected_output(of)
        options = {"delta": delta, "size": size, "rows": rows, "given": given}
        return disparities(output, sensitive, **options, population=population)

    def outliers(self, rows: Any) -> Outliers:
        """Measure how unlike the training data rows are, whatever is missing in them.

        Log-probabilities, of rows and of each column given the other known ones, are exact under
        the learned density, in which a number is its bin. Since the size of a bin decides how
        likely it is, rows are compared with 2,000 random rows known in the same columns, with a
        standard error, and columns by the probability of a value that is at most as likely.

        Parameters
        ----------
        rows
            Rows, as ``predict`` takes them.

        Returns
        -------
        Outliers
            Cost: the random rows for each pattern of missing values, and two passes over the
            circuit for each cell.
        """
        from expecta.ask.outliers import outliers

        return outliers(self._asked_density(), rows)

    # ---------------------------------------------------------------------------------

    @abstractmethod
    def expected_output(self, of: Any = None) -> ExpectedOutput:
        """Return one number that the model outputs, to ask its mean, variance and distribution.

        Parameters
        ----------
        of
            The class, or the index of the output.
        """

    @abstractmethod
    def _asked_density(self) -> Density:
        """Return the density that all answers are about."""
