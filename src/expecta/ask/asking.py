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
    """Questions that a model with a density answers, besides predictions.

    A group is a text such as ``"smoker == 'yes' and 30 <= age < 40"``, a mapping from columns
    to values (a value, a list, an interval ``(low, high)``), or a table with one row. Rows are
    given as to ``predict``; one row may be a mapping from columns to values. ``of`` names the class
    whose probability the question is about, by default the second of two; for a regressor with
    several outputs it is the index of one. Answers can be printed, and have ``to_dict``,
    ``to_frame`` and mostly ``plot``. Their ``exactness`` states what is exact, given the learned
    density.
    """

    # -- groups -----------------------------------------------------------------------

    def ask(
        self, query: Any = None, /, *, of: Any = None, population: str = "both", **facts: Any
    ) -> Group:
        """Describe the model's output over a group: mean, spread, quantiles, share.

        All are those of the *model's output* over the members of the group, not of the target.
        The mean combines two sources: the average over the training rows in the group, which has
        sampling error, and the expectation under the density, which has the density's error. The
        size of both errors is learned from the differences between the two over many groups. With
        many rows in the group the rows decide, and with none the density does;
        ``standard_error`` is the standard error of the result. Spread, quantiles and share come
        from the density: exact, given the learned density, or with a stated error.

        Parameters
        ----------
        query
            The group: a text, a mapping from columns to values, or one row; None is all rows.
        of
            The class, or the index of the output.
        population
            The source of the mean: "density", the learned distribution; "rows", the training
            rows in the group; "both", the two combined by their precision.
        **facts
            Further conditions, by column: ``ask(smoker="yes", age=(30, 40))``. For a column
            named ``of`` or ``population`` pass a mapping.

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
        Cost: mean and variance for each of the disjoint boxes that make up the group, and a pass
        over the training rows; for quantiles, when they are first read, one distribution for each
        box. The first question also computes the model's output for all training rows and for up
        to 20,000 samples from the density.
        """
        from expecta.ask.groups import ask

        return ask(self.expected_output(of), query, facts, population)

    def compare(self, a: Any, b: Any, *, of: Any = None, population: str = "both") -> Comparison:
        """Compare two groups: difference and ratio of means, and P(a > b).

        Means are those of :meth:`ask`. The standard error of their difference accounts for errors
        of the density that the groups share, and for rows that are in both. The probability that
        the output for a random member of ``a`` is above that for one of ``b`` is computed under
        the density, from both distributions on a grid, with its error.

        Parameters
        ----------
        a, b
            The groups; see :meth:`ask`.
        of
            The class, or the index of the output.
        population
            The source of means; see :meth:`ask`.

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
        """Group a population by some columns, and describe the output over each group.

        Means combine rows and density as in :meth:`ask`, and are then shifted, usually by less
        than their standard errors, so that their weighted mean is that of the population. Groups
        in which the density expects fewer than five training rows are marked as rare.

        Parameters
        ----------
        *columns
            Columns to group by; all possible combinations of their values are groups.
        given
            The population, given like a group of :meth:`ask`; None is all rows.
        bins
            Number of intervals of about equal share into which numbers are grouped, at edges of
            the density's bins.
        of
            The class, or the index of the output.
        population
            The source of means; see :meth:`ask`.

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
        """Compute the expected output by the value of a column, and its partial dependence.

        In E[output | column = value] the other columns vary with the value. Partial dependence is
        the expectation if only this column were set to the value while the others keep their
        distribution in the population; it includes combinations that never occur. The first
        combines rows and density as :meth:`split` does; the second comes from the density, and
        is as exact as its means. Neither is causal.

        Parameters
        ----------
        column
            The column.
        given
            The population, given like a group of :meth:`ask`; None is all rows.
        grid
            The values, or the number of groups into which bins of numbers are merged; by
            default 50.
        of
            The class, or the index of the output.
        population
            The source of E[output | column = value]; see :meth:`ask`.

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
        """Rank unknown columns by how much knowing them would reduce the output's variance.

        The expected reduction of the variance is Var(E[output | known, column]) over the possible
        values of the column. Exact, given the learned density, where means are exact; otherwise
        with a standard error, and corrected for the bias of sampling. A number counts as known
        up to its bin.

        Parameters
        ----------
        row_or_query
            What is known: one row, given as to ``predict``, or a group. In a row, a missing value
            in a column of ``missing_is_value`` is known. In a group, a column restricted to a set
            or an interval counts as unknown.
        cost
            The cost of knowing each column, above zero; 1 for columns that are not named.
        of
            The class, or the index of the output.

        Returns
        -------
        NextQuestion
            Sorted by reduction, or by reduction per cost where costs are given. Cost: one batch
            of expectations, with a row for each value of each unknown column.
        """
        from expecta.ask.next_question import next_question

        return next_question(self.expected_output(of), row_or_query, cost=cost)

    def stability(self, rows: Any, threshold: float, *, of: Any = None) -> Stability:
        """Compute the probability that each row's decision stays the same once all is known.

        The decision is whether E[output | known] >= threshold. It stays the same with probability
        P(output >= threshold | known) or its complement; for a complete row that is 1.

        Parameters
        ----------
        rows
            Rows, given as to ``predict``.
        threshold
            The decision is "yes" where the expected output is at least this.
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
        """Find a smallest set of known columns that suffices for a row's decision.

        A set is sufficient if the decision has at least ``probability`` given these columns
        alone, with all others unknown; probabilities are those of :meth:`stability`. Among the
        smallest sufficient sets, that of the highest probability is returned. With up to 12 known
        columns all sets are tried; with more it is a search, and ``proven`` tells whether all
        smaller sets were tried.

        Parameters
        ----------
        row
            One row, given as to ``predict``.
        threshold
            The decision is "yes" where the expected output is at least this.
        probability
            The probability that the same decision must have.
        of
            The class, or the index of the output.

        Returns
        -------
        Sufficient
            Cost: one distribution for each set tried.
        """
        from expecta.ask.decisions import sufficient

        return sufficient(self.expected_output(of), row, threshold, probability=probability)

    def shapley(self, rows: Any, *, of: Any = None, random_state: int = 0) -> Shapley:
        """Compute conditional Shapley values: the contribution of each known column.

        The value of a coalition S is E[output | the columns in S], with all others unknown, as in
        ``predict``; so correlated columns share their contribution. A row's values and the base
        add up to its prediction. With up to 16 known columns all coalitions are evaluated, and
        the values are as exact as means are; with more, a value is the mean over random orders
        of the columns and their reverses, with a standard error.

        Parameters
        ----------
        rows
            Rows, given as to ``predict``.
        of
            The class, or the index of the output.
        random_state
            Seed of the random orders.

        Returns
        -------
        Shapley
            Cost: 2^columns expectations for each row, each computed once; beyond 16
            columns, or 12 where means are sampled, at most 512 orders for each row.
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
        """Search for groups in which a sensitive column changes the expected output by ``delta``.

        A group is a conjunction of up to ``size`` conditions on other columns: a category, or one
        of four ranges of about equal share of a number. The attribute is one value of a sensitive
        column, or one value of each where several are named. The gap, E[output | group,
        attribute] - E[output | group], combines rows and density as :meth:`compare` does. The
        gaps with the most evidence (the gap over its standard error) are reported, with those
        beyond chance marked; groups with nearly the same members appear once. Groups whose
        probability with the attribute is below 0.001 are left out, and so are the least probable
        ones beyond 20,000.

        Parameters
        ----------
        sensitive
            One or several columns.
        delta
            Report gaps of at least this size; by default the 20 with the most evidence.
        size
            The largest number of conditions that define a group.
        rows
            A table: parity is then also that of its rows' predictions. A row in which the
            sensitive column is unknown counts for each of its values with the exact posterior
            probability given the rest of the row.
        given
            The population, given like a group of :meth:`ask`; None is all rows.
        of
            The class, or the index of the output.
        population
            The source of means; see :meth:`ask`.

        Returns
        -------
        Disparities
            Cost: two expectations for each group and attribute, and a pass over training rows.
        """
        from expecta.ask.disparities import disparities

        output = self.expected_output(of)
        options = {"delta": delta, "size": size, "rows": rows, "given": given}
        return disparities(output, sensitive, **options, population=population)

    def outliers(self, rows: Any) -> Outliers:
        """Measure how unlike the training data rows are, with any cells missing.

        Log-probabilities, of rows and of each column given the other known ones, are exact under
        the learned density, in which a number is known up to its bin. Since the width of a bin
        determines its probability, rows are compared with 2,000 random rows known in the same
        columns, with a standard error, and columns by the probability of a value that is at most
        as likely. Rows with values unlike the training data (new categories, numbers far from
        all of its) come first.

        Parameters
        ----------
        rows
            Rows, given as to ``predict``.

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
        """Return one output of the model, for its mean, variance and distribution.

        Parameters
        ----------
        of
            The class, or the index of the output.
        """

    @abstractmethod
    def _asked_density(self) -> Density:
        """Return the density of all answers."""
