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
from expecta.tables.refine_bins import coarse_codes, refine_encoder

if TYPE_CHECKING:
    from expecta.ask.checks.density_check import DensityCheck


class Density:
    """A joint distribution of the columns of a table: a circuit and an encoding.

    All answers are exact for the distribution (but :meth:`mpe` for some, which says
    so). Numbers are known up to their bin: the probability of a row is that of its
    values and bins, and a mean takes each bin at the mean of its training numbers.
    Missing values are summed out, which assumes that *being* missing says nothing.

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
        """Return the log-probability, in nats, of what is known of each row. Exact.

        ``X`` is a table like the one learned from, or :class:`~expecta.Evidence`.
        """
        return self.circuit.log_prob(self._evidence(X))

    def score(self, X: Any) -> float:
        """Return the mean log-probability of the rows, in nats; NaN if there are no rows."""
        log_prob = self.score_samples(X)
        return float(np.mean(log_prob)) if len(log_prob) else float("nan")

    def sample(self, n: int = 1, *, given: Any = None, random_state: Any = 0) -> Any:
        """Draw complete rows, as a table of the kind that was learned from.

        With ``given``, a table with missing values or evidence, ``n`` rows are drawn for each
        of its rows, one after the other. A number, known or not, is drawn within its bin, with the
        bin's range, mean and spread; so it may lie outside an interval that cuts the bin.
        The same random state gives the same table; None draws a new one every time.
        """
        n = check_integer("n", n, 0)
        rng = np.random.default_rng(random_state)
        evidence = None if given is None else self._evidence(given)
        codes = self.circuit.sample(n, given=evidence, seed=rng)
        return self._encoder.inverse_transform(codes.reshape(-1, codes.shape[-1]), random_state=rng)

    def condition(self, facts: Any = None, /, **more: Any) -> Density:
        """Return the density given facts about some columns. Exact.

        Facts are keywords or a mapping from names: a value, a list of values, an interval
        ``(low, high)`` of numbers or dates with both ends included, or None for unknown; see
        :meth:`Encoder.where`. Or a table with one row, or evidence on one row. Impossible
        facts raise an ImpossibleEvidenceError. A bin that an interval cuts keeps its share
        of the probability, and means and samples are of the part inside; a number that is
        given stands for its whole bin, and is what samples have.

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
            evidence = self._evidence(facts).both(self._encoder.where(more))
        return Density(self.circuit.condition(evidence), self._encoder.narrowed(more))

    def marginal(self, column: str) -> Marginal:
        """Return the distribution of one column, all others summed out. Exact."""
        variable = self._encoder.variable(column)
        unknown = Evidence.unknown(self.circuit.cardinalities)
        probabilities = self.circuit.marginals(unknown)[variable][0]
        return Marginal(self._encoder.columns_[variable], probabilities)

    def mpe(self, X: Any) -> Any:
        """Fill in the missing values of each row by its most probable completion (MPE).

        Exact where the circuit is deterministic (Chow-Liu, naive Bayes, PSDD); for a latent
        tree it is the max-product approximation. Known numbers come back as the mean of
        their bin.
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

        Every old edge stays. The probability of an old bin is what it was, exactly, and so
        is all that the old bins tell of other columns. Which of its new bins a number lies
        in is taken to be independent of all else, with the shares that the numbers of X
        have; a new bin that holds no number has half a row's times its part of the old one's
        width, so that none is impossible. Categories, Booleans and the integers of arrays stay.

        Parameters
        ----------
        X
            The table learned from: its numbers say where to cut. Without it only
            thresholds cut, and the numbers of an old bin are taken to lie as those of
            :meth:`Encoder.where` do.
        max_bins
            Maximum number of bins per column, not counting those that only thresholds add;
            a column that has as many or more is not cut but by thresholds. Bins hold about
            the same weight, and up to so many distinct numbers are all kept apart, where
            no old bin is empty.
        thresholds
            A mapping from columns to numbers t such that ``x <= t`` and ``x > t`` shall
            never share a bin, to the last bit: the edge is the next float after t.
        sample_weight
            How much each row of X counts.  # (rows,)

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
        """Check against rows, best held-out ones, which answers can be trusted.

        Compares the likelihood of the rows with that of independent columns and of a Chow-Liu
        tree, the dependence of every pair of columns, and means and shares of every column over
        all rows and over groups by one column and by two; over all rows also how the numbers of
        a column are distributed over eight ranges. Values that training did not have and rows of
        probability zero are counted, and nothing is called trusted then. What the density says is
        summed over its circuit, and exact; what the rows say has a standard error. Of all that is
        said to be beyond chance, 5% at most is expected to be chance, also with the chance that
        was in the rows learned from.

        Parameters
        ----------
        X
            Rows, with missing values or not: each comparison takes those in which its columns
            are known, which assumes that *being* missing says nothing. Rows learned from
            are recognised, and said to be optimistic.
        sample_weight
            How much each row counts.  # (rows,)

        Returns
        -------
        DensityCheck
            Prints a verdict, of which a learned density's summary keeps a few lines. ``pairs``,
            ``groups`` and ``likelihood`` hold the comparisons, each with ``to_frame()``;
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
        """Write the density and its encoding into one file. Atomic."""
        from expecta.densities.density_files import DENSITY_FILE

        _ = self.circuit  # complains where there is none
        DENSITY_FILE.save(self, path)

    @staticmethod
    def load(path: str | PathLike[str]) -> Density:
        """Read a density of any kind. Runs no code; a damaged file gives a FormatError."""
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
