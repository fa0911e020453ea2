"""Answer questions about a joint distribution of columns, however it was learned."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError

from expecta.circuits.evidence import Evidence, as_evidence
from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.common.arrays import Floats
from expecta.common.checks import check_integer
from expecta.common.errors import DomainError
from expecta.densities.finer_circuit import finer_circuit
from expecta.densities.marginal import Marginal
from expecta.tables import Encoder
from expecta.tables.estimator_inputs import read_rows
from expecta.tables.refine_bins import coarse_codes, refine_encoder
from expecta.tables.row_reader import check_one_row, row_facts

if TYPE_CHECKING:
    from expecta.ask.checks.density_check import DensityCheck


class Density:
    """A joint distribution of the columns of a table: a circuit and an encoding.

    All answers are exact, given the distribution (except :meth:`mpe` for some circuits). Numbers
    are known up to their bin: the probability of a row is that of its values and bins, and a
    mean uses the mean of the training numbers in each bin. Missing values are summed out, which
    assumes that missingness carries no information.

    Parameters
    ----------
    circuit
        The distribution.
    encoder
        What its variables are to the user.

    Attributes
    ----------
    circuit_, encoder_
        The same two.

    Examples
    --------
    >>> from expecta import ChowLiu
    >>> rows = {"rain": ["yes", "no"] * 10, "wet": ["yes", "no"] * 10}
    >>> density = ChowLiu(pseudo_count=0).fit(rows)
    >>> density.condition(wet="yes").marginal("rain").to_dict()
    {'no': 0.0, 'yes': 1.0}
    """

    circuit_: ProbabilisticCircuit
    encoder_: Encoder
    checked_: tuple[str, ...] = ()  # what the last check said, a line each

    def __init__(self, circuit: ProbabilisticCircuit, encoder: Encoder) -> None:
        if not np.array_equal(circuit.cardinalities, encoder.cardinalities_):
            raise DomainError("the circuit and the encoder have different variables")
        self.circuit_ = circuit
        self.encoder_ = encoder

    @property
    def circuit(self) -> ProbabilisticCircuit:
        """The distribution as a circuit."""
        if not hasattr(self, "circuit_"):
            raise NotFittedError(f"this {type(self).__name__} has not learned yet; call fit first")
        return self.circuit_

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._encoder.feature_names_in_.tolist())

    def score_samples(self, X: Any) -> Floats:
        """Return the log-probability, in nats, of the known cells of each row. Exact.

        ``X`` is a table like the training data, or :class:`~expecta.Evidence`.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        """
        return self.circuit.log_prob(self._evidence(X))

    def score(self, X: Any) -> float:
        """Return the mean log-probability of the rows, in nats; NaN if there are no rows.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        """
        log_prob = self.score_samples(X)
        return float(np.mean(log_prob)) if len(log_prob) else float("nan")

    def sample(self, n: int = 1, *, given: Any = None, random_state: Any = 0) -> Any:
        """Draw complete rows, as a table of the same kind as the training data.

        With ``given``, a table with missing values or evidence, ``n`` rows are drawn for each
        of its rows, one after the other. A number, known or not, is drawn within its bin, with the
        bin's range, mean and spread; so it may lie outside an interval that cuts the bin.
        The same random state gives the same table; None draws a new one every time.

        Parameters
        ----------
        n
            How many rows.
        given
            Facts by column, or rows to complete.
        random_state
            Seed: the same one gives the same rows.

        Returns
        -------
        table
            Of the kind that ``fit`` was given.
        """
        n = check_integer("n", n, 0)
        rng = np.random.default_rng(random_state)
        evidence = None if given is None else self._evidence(given)
        codes = self.circuit.sample(n, given=evidence, seed=rng)
        return self._encoder.inverse_transform(codes.reshape(-1, codes.shape[-1]), random_state=rng)

    def condition(self, facts: Any = None, /, **more: Any) -> Density:
        """Return the density given values of some columns. Exact.

        Values are keywords or a mapping from names: a value, a list of values, an interval
        ``(low, high)`` of numbers or dates with both ends included, or None for unknown; see
        :meth:`Encoder.where`. Or a table with one row, or evidence on one row. Impossible
        values raise an ImpossibleEvidenceError. A bin that an interval cuts keeps its share
        of the probability, and means and samples are those of the part inside; a given number
        stands for its whole bin, and appears in samples as it is.

        Parameters
        ----------
        facts
            A mapping from columns to facts.
        **more
            Further facts, by column.

        Examples
        --------
        >>> from expecta import ChowLiu
        >>> table = {"smoker": ["yes", "yes", "no", "no"], "cough": ["yes", "yes", "no", "yes"]}
        >>> density = ChowLiu(pseudo_count=0).fit(table)
        >>> density.condition(smoker="no").marginal("cough").probabilities.round(9).tolist()
        [0.5, 0.5]
        """
        if facts is None or isinstance(facts, Mapping):
            more = {**(facts or {}), **more}
            evidence = self._encoder.where(more)
        else:
            evidence = self._encoder.where(more)
            if isinstance(facts, Evidence):
                evidence = self._evidence(facts).both(evidence)
            else:
                table = check_one_row(read_rows(facts, self._encoder, "the density"))
                evidence = self._encoder.evidence(table).both(evidence)
                more = {**row_facts(table, self._encoder), **more}
        return Density(self.circuit.condition(evidence), self._encoder.narrowed(more))

    def marginal(self, column: str) -> Marginal:
        """Return the distribution of one column, all others summed out. Exact.

        Parameters
        ----------
        column
            The column's name.
        """
        variable = self._encoder.variable(column)
        unknown = Evidence.unknown(self.circuit.cardinalities)
        probabilities = self.circuit.marginals(unknown)[variable][0]
        return Marginal(self._encoder.columns_[variable], probabilities)

    def mpe(self, X: Any) -> Any:
        """Fill in the missing values of each row by its most probable completion (MPE).

        Exact where the circuit is deterministic (Chow-Liu, naive Bayes, PSDD); for a latent
        tree it is the max-product approximation. Known numbers come back as the mean of
        their bin.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.

        Returns
        -------
        table
            Of the kind that ``fit`` was given.
        """
        return self._encoder.inverse_transform(self.circuit.mpe(self._evidence(X)).x)

    def refined(
        self,
        X: Any = None,
        *,
        max_bins: int = 256,
        thresholds: Mapping[str, Any] | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Density:
        """Return the density over finer bins of numbers and times.

        Every old edge is kept. The probability of an old bin does not change, nor does its
        dependence on other columns. Within an old bin, the new bin of a number is independent of
        all other columns, with the shares of the numbers of X; a new bin without numbers has the
        share of half a row times its part of the old bin's width, so that none is impossible.
        Categories, Booleans and the integers of arrays are not changed.

        Parameters
        ----------
        X
            The training data, whose numbers determine the new edges. Without it only
            thresholds do, and the numbers of an old bin are distributed as in
            :meth:`Encoder.where`.
        max_bins
            Maximum number of bins per column, not counting those that only thresholds add;
            a column that has as many or more is divided by thresholds only. Bins have about
            equal weight, and up to this many distinct numbers get a bin each, where no old bin
            is empty.
        thresholds
            A mapping from columns to numbers t such that ``x <= t`` and ``x > t`` never share
            a bin, exact to the last bit: the edge is the next float after t.
        sample_weight
            Weight of each row of X.  # (rows,)

        Returns
        -------
        Density
            Means are those of the old bins, as far as bins and shares allow. The same
            input gives the same bins. Cost: sorting the columns, and the edges of the new
            circuit: as many times more at the leaves as there are new bins.

        >>> from expecta import ChowLiu, Encoder
        >>> table = {"age": [20, 30, 40, 50, 60, 70], "smoker": ["no", "no", "yes"] * 2}
        >>> density = ChowLiu(encoder=Encoder(max_bins=2)).fit(table)
        >>> density.marginal("age").labels
        ('20 to 40', '50 to 70')
        >>> density.refined(table, max_bins=4, thresholds={"age": [30]}).marginal("age").labels
        ('20 to 30', '40', '50', '60 to 70')
        """
        coarse = self._encoder
        fine, shares = refine_encoder(coarse, X, max_bins, thresholds, sample_weight)
        return Density(finer_circuit(self.circuit, coarse_codes(fine, coarse), shares), fine)

    def check(self, X: Any, *, sample_weight: npt.ArrayLike | None = None) -> DensityCheck:
        """Check against rows, preferably held-out ones, which answers can be trusted.

        Compares the likelihood of the rows with that of independent columns and of a Chow-Liu
        tree, the dependence of every pair of columns, and means and shares of every column over
        all rows and over groups by one column and by two; over all rows also the distribution of
        the numbers of a column over eight ranges. Values that are not in the training data and
        rows of probability zero are counted, and nothing is called trusted if there are many.
        Sums over the density are exact; those over rows have a standard error. At most 5% of the
        differences reported as beyond chance are expected to be due to chance, including that of
        the training rows. Where cells are missing depending on other columns the answer says so.

        Parameters
        ----------
        X
            Rows, with or without missing values: each comparison uses those in which its columns
            are known, which assumes that missingness carries no information. Training rows are
            recognised, and the answer says that they are optimistic.
        sample_weight
            Weight of each row.  # (rows,)

        Returns
        -------
        DensityCheck
            Prints a verdict; a few lines of it appear in the density's summary. ``pairs``,
            ``groups`` and ``likelihood`` are the comparisons, each with ``to_frame()``;
            ``plot()`` draws them. Cost: two passes over the circuit for each value of each
            column (numbers in at most 16 groups) and each group compared, and learning ten
            Chow-Liu trees from X. At most 50,000 rows, 64 columns and 400 groups by two columns
            are compared, and the answer says so.

        >>> import numpy as np
        >>> from expecta import Independent
        >>> x = np.random.default_rng(0).integers(2, size=(400, 2))
        >>> table = {"rain": x[:, 0], "wind": x[:, 1], "umbrella": x[:, 0] & x[:, 1]}
        >>> check = Independent().fit(table).check(table)
        >>> check.pairs.beyond.tolist()
        [True, True, False]
        """
        from expecta.ask.checks.density_check import check_density

        return check_density(self, X, sample_weight=sample_weight)

    # -- files ------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the density and its encoding into one file. Atomic.

        Parameters
        ----------
        path
            The file.
        """
        from expecta.densities.density_files import DENSITY_FILE

        _ = self.circuit  # complains where there is none
        DENSITY_FILE.save(self, path)

    @staticmethod
    def load(path: str | PathLike[str]) -> Density:
        """Read a density of any kind. Runs no code; a damaged file gives a FormatError.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        Density
            Of the kind that was saved.
        """
        from expecta.densities.density_files import DENSITY_FILE

        return DENSITY_FILE.load(path)

    # ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        s = self.circuit.structure
        return f"Density({s.n_variables} columns, {s.n_nodes} nodes, {s.n_edges} parameters)"

    @property
    def _encoder(self) -> Encoder:
        """The encoder; that of a learner is there once it has learned."""
        _ = self.circuit
        return self.encoder_

    def _evidence(self, X: Any) -> Evidence:
        if isinstance(X, Evidence):
            return as_evidence(X, self.circuit.cardinalities)
        return self._encoder.evidence(X)
