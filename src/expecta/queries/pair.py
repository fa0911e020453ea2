"""Pair a distribution and a function over one vtree, and answer all that is exact on them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from operator import index
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from expecta.circuits.evidence import Rows
from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.regression import RegressionCircuit
from expecta.common.arrays import Complexes, Floats
from expecta.common.errors import DomainError, FormatError, PropertyError, VtreeMismatchError

if TYPE_CHECKING:
    from expecta.queries.links import Expected, Link
    from expecta.queries.output_distribution import Distribution

T = TypeVar("T", bound=npt.NDArray[Any])

MAX_CELLS = 1 << 28  # bounds what a hostile file can make us allocate


class Pair:
    """Every exact question about g under p, when some inputs are unknown.

    Compiled once, then used for any number of rows, from any number of threads.

    In every method ``X`` is a table of values in which NaN (or -1 among integers) is
    unknown, or :class:`~expecta.Evidence` for sets, intervals and likelihoods. What is
    unknown is averaged over p given what is known: that a value is missing is taken to
    carry no information beyond that. Rows that are impossible under p give NaN and one
    warning, or an error with ``on_impossible="raise"``. With one output answers have
    shape (rows, ...), with several (rows, outputs, ...). A table on a card (CuPy, torch) is
    answered there, where the question allows it (docs/gpu.md).

    Parameters
    ----------
    p
        A normalised probabilistic circuit.
    g
        A deterministic regression circuit over the same vtree and values.

    Examples
    --------
    >>> from expecta import Vtree
    >>> from expecta.circuits import independent, linear
    >>> vtree = Vtree.balanced(3)
    >>> p = independent(vtree, [[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])
    >>> g = linear(vtree, [[0, 1], [0, 10], [0, 100]], bias=5)
    >>> pair = Pair(p, g)
    >>> pair.expectation([[1, -1, 0], [-1, -1, -1]]).round(9).tolist()
    [14.0, 23.5]
    >>> pair.std([[1, -1, 0], [1, 1, 1]]).round(9).tolist()
    [4.0, 0.0]
    """

    def __init__(self, p: ProbabilisticCircuit, g: RegressionCircuit) -> None:
        from expecta.engine.plan import Plan

        if not (isinstance(p, ProbabilisticCircuit) and isinstance(g, RegressionCircuit)):
            raise TypeError(
                f"Pair(p, g) takes a ProbabilisticCircuit and a RegressionCircuit, "
                f"not {type(p).__name__} and {type(g).__name__}"
            )
        if p.vtree != g.vtree:
            raise VtreeMismatchError(
                "p and g decompose along different vtrees, and the expectation of such a pair is "
                "#P-hard (Theorem 2 of the paper); build or learn one of them on the vtree of the "
                "other, or estimate by sampling: g(p.sample(n))"
            )
        if not np.array_equal(p.cardinalities, g.cardinalities):
            raise VtreeMismatchError("p and g disagree on how many values their variables have")
        p.require_normalised()
        g.properties.require_deterministic("an expectation under g")
        self.p, self.g = p, g
        self.plan = Plan.of(p.merged(), g.merged())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Pair:
        """Read a pair from a file in Expecta's own format; one beyond reason is refused.

        Parameters
        ----------
        path
            The file.
        """
        from expecta.files import load

        p, g = load("pair", path)
        if _cells(p, g) > MAX_CELLS:
            raise FormatError(str(path), None, "its two circuits are too large to be paired")
        try:
            with np.errstate(over="ignore"):  # a weight beyond all floats is refused like others
                return cls(p, g)
        except PropertyError as problem:
            raise FormatError(str(path), None, f"the file is damaged: {problem}") from None

    def save(self, path: str | PathLike[str]) -> None:
        """Write both circuits to one file in Expecta's own format. Atomic.

        Parameters
        ----------
        path
            The file.
        """
        from expecta.files import save

        if _cells(self.p, self.g) > MAX_CELLS:
            raise DomainError("a file holds no pair that large; write its circuits one by one")
        save("pair", (self.p, self.g), path)

    def __reduce__(self) -> tuple[Any, ...]:
        return Pair, (self.p, self.g)

    def __repr__(self) -> str:
        return f"Pair({self.p!r}, {self.g!r}, {self.plan.n_joins} pairs of AND gates)"

    @cached_property
    def parameter_size(self) -> Floats:
        """The greatest sum of absolute parameters that g adds up, its bias too.  # (outputs,)."""
        from expecta.queries import moments

        return moments.parameter_size(self)

    @cached_property
    def rounding(self) -> float:
        """Bound on the relative rounding error of a sum of products of parameters."""
        from expecta.queries import moments

        return moments.rounding(self)

    # -- moments ----------------------------------------------------------------------

    def expectation(self, X: Rows, *, on_impossible: str = "nan") -> Floats:
        """E[g | what is known] (EC2, Propositions 1 and 2). Exact.

        Cost: a few multiplications per pair of AND gates whose supports meet, per
        distinct row, less where rows agree on the variables below a vtree node.

        Parameters
        ----------
        X
            Rows: a table in which NaN, or -1 among integers, is unknown, or `Evidence`.
        on_impossible
            ``"nan"``: rows that are impossible under p give NaN and one warning; ``"raise"``: an
            `ImpossibleEvidenceError`.

        Returns
        -------
        array
            One number per row; (rows, outputs) with several outputs.
        """
        from expecta.queries import moments

        return self._shape(moments.expectation(self, X, on_impossible), X)

    def moments(
        self, X: Rows, order: int, *, central: bool = False, on_impossible: str = "nan"
    ) -> Floats:
        """M_0 .. M_order of g given what is known (MC2, Propositions 3 and 4). Exact.

        With ``central=True`` the moments about the mean (C_0 = 1, C_1 = 0, C_2 the
        variance), computed about the mean from the start and not from raw moments,
        which would cancel. Probability off g's support counts where it exceeds rounding, as in
        :meth:`range`. The last axis counts the order. Cost: order² times that of the
        expectation.

        Parameters
        ----------
        X
            Rows: a table in which NaN, or -1 among integers, is unknown, or `Evidence`.
        order
            The highest moment.
        central
            Whether about the mean.
        on_impossible
            ``"nan"``: rows that are impossible under p give NaN and one warning; ``"raise"``: an
            `ImpossibleEvidenceError`.

        Returns
        -------
        array
            Moments 0 to ``order``.  # (rows, order + 1)
        """
        from expecta.queries import moments

        order = index(order)
        if order < 0:
            raise ValueError(f"the order of a moment is at least 0, not {order}")
        compute = moments.central if central else moments.raw
        return self._shape(compute(self, X, order, on_impossible), X)

    def variance(self, X: Rows, *, on_impossible: str = "nan") -> Floats:
        """Variance of g over what is unknown: zero for a complete row. Exact.

        This is the spread of the model's output, not the uncertainty of y.

        Parameters
        ----------
        X
            Rows: a table in which NaN, or -1 among integers, is unknown, or `Evidence`.
        on_impossible
            ``"nan"``: rows that are impossible under p give NaN and one warning; ``"raise"``: an
            `ImpossibleEvidenceError`.

        Returns
        -------
        array
            One number per row; (rows, outputs) with several outputs.
        """
        from expecta.queries import moments

        return self._shape(moments.central(self, X, 2, on_impossible)[:, :, 2], X)

    def std(self, X: Rows, *, on_impossible: str = "nan") -> Floats:
        """Return the square root of :meth:`variance`.

        Parameters
        ----------
        X
            Rows: a table in which NaN, or -1 among integers, is unknown, or `Evidence`.
        on_impossible
            ``"nan"``: rows that are impossible under p give NaN and one warning; ``"raise"``: an
            `ImpossibleEvidenceError`.
        """
        from expecta.queries import moments

        return self._shape(np.sqrt(moments.central(self, X, 2, on_impossible)[:, :, 2]), X)

    # -- probabilities ----------------------------------------------------------------

    def support_probability(self, X: Rows, *, on_impossible: str = "nan") -> Floats:
        """Pr(n, m): the probability that g's formula holds given what is known. Exact.

        One wherever g covers everything; off its support g is its bias. Within rounding of
        one it is one. Shape (rows,), whatever the number of outputs.

        Parameters
        ----------
        X
            Rows: a table in which NaN, or -1 among integers, is unknown, or `Evidence`.
        on_impossible
            ``"nan"``: rows that are impossible under p give NaN and one warning; ``"raise"``: an
            `ImpossibleEvidenceError`.

        Returns
        -------
        array
            (rows,)
        """
        from expecta.queries import card_answers, moments

        return card_answers.same_kind(moments.support(self, X, on_impossible), X)

    def log_prob(self, X: Rows) -> Floats:
        """Logarithm of the probability of what is known; ``-inf`` where impossible. Exact.

        Shape (rows,), whatever the number of outputs.

        Parameters
        ----------
        X
            Rows: a table in which NaN, or -1 among integers, is unknown, or `Evidence`.

        Returns
        -------
        array
            Nats.  # (rows,)
        """
        return self.p.log_prob(X)

    def range(self, X: Rows, *, on_impossible: str = "nan") -> tuple[Floats, Floats]:
        """Return the least and the greatest g that is possible given what is known. Exact.

        Where g's formula does not cover everything, its value off the support (the bias)
        counts if the probability of being there exceeds rounding: 1e-15 times the number
        of vtree nodes plus 16, and for each vtree node 2e-16 times the terms of its longest
        sum. Cost: that of the expectation.

        Parameters
        ----------
        X
            Rows: a table in which NaN, or -1 among integers, is unknown, or `Evidence`.
        on_impossible
            ``"nan"``: rows that are impossible under p give NaN and one warning; ``"raise"``: an
            `ImpossibleEvidenceError`.
        """
        from expecta.queries import moments

        low, high = moments.extremes(self, X, on_impossible)
        return self._shape(low, X), self._shape(high, X)

    def characteristic(self, X: Rows, t: npt.ArrayLike, *, on_impossible: str = "nan") -> Complexes:
        """E[exp(i t g) | what is known] for each frequency t. Exact.

        The last axis runs over ``t``; a single number leaves it out. Cost: that of the
        expectation per frequency, twice.

        Parameters
        ----------
        X
            Rows: a table in which NaN, or -1 among integers, is unknown, or `Evidence`.
        t
            Frequencies.
        on_impossible
            ``"nan"``: rows that are impossible under p give NaN and one warning; ``"raise"``: an
            `ImpossibleEvidenceError`.

        Returns
        -------
        array
            Complex.  # (rows, frequencies)
        """
        from expecta.queries import exponentials

        frequencies = np.atleast_1d(np.asarray(t, np.float64))
        if frequencies.ndim != 1 or not np.all(np.isfinite(frequencies)):
            raise ValueError("t is a finite number or a list of finite numbers")
        values = exponentials.characteristic(self, X, frequencies, on_impossible)
        return self._shape(values[:, :, 0] if np.ndim(t) == 0 else values, X)

    # -- links and distributions ------------------------------------------------------

    def expected(
        self,
        X: Rows,
        link: str | Link = "logistic",
        *,
        method: str = "spectral",
        tol: float = 1e-9,
        order: int = 1,
        alpha: float | Sequence[float] | None = None,
        offset: npt.ArrayLike | None = None,
        on_impossible: str = "nan",
    ) -> Expected:
        """E[link(g) | what is known] and a bound on its error.

        Parameters
        ----------
        X
            Rows or evidence.
        link
            ``"logistic"``, ``"probit"``, ``"tanh"``, ``"exp"`` or a :class:`Link`.
        method
            ``"spectral"``: an integral of the characteristic function, within ``tol``
            (``"exp"`` is exact). Cost: that of the expectation times a number of
            frequencies that grows like (greatest absolute g + log 1/tol) log 1/tol.
            ``"taylor"``: the paper's T_d, for any link with derivatives; cost of
            ``order`` moments.
        tol
            Error that the spectral method stays within.
        order, alpha
            Of the Taylor expansion: its order d, and the point it is taken at: a number,
            one per output, or an array (rows, outputs); by default each row's mean.
        offset
            What is added to g before the link, for each row: (rows,) or (rows, outputs).
        on_impossible
            ``"nan"``: rows that are impossible under p give NaN and one warning; ``"raise"``: an
            `ImpossibleEvidenceError`.

        Returns
        -------
        Expected
            ``value`` and ``error``: a bound on the absolute error, NaN where none is known.

        Examples
        --------
        >>> from expecta import Vtree
        >>> from expecta.circuits import independent, linear
        >>> vtree = Vtree.balanced(2)
        >>> pair = Pair(independent(vtree, [[0.5, 0.5]] * 2), linear(vtree, [[-1, 1], [0, 2]]))
        >>> pair.expected([[-1, 0], [1, 0]], tol=1e-12).value.round(9).tolist()
        [0.5, 0.731058579]
        """
        from expecta.queries.links import expected

        return expected(self, X, link, method, tol, order, alpha, offset, on_impossible)

    def distribution(
        self,
        X: Rows,
        *,
        noise: float | npt.ArrayLike = 0.0,
        tol: float = 1e-9,
        on_impossible: str = "nan",
    ) -> Distribution:
        """Distribution of g, or of y = g + N(0, noise²), given what is known.

        ``noise`` is the residual standard deviation of y, or one per output. See
        :class:`~expecta.Distribution` for what is exact. Cost: that of the expectation
        times tens of frequencies, hundreds without noise, for rows that are not enumerated.

        Parameters
        ----------
        X
            Rows: a table in which NaN, or -1 among integers, is unknown, or `Evidence`.
        noise
            Standard deviation of normal noise that is added to g.
        tol
            Largest error of a probability.
        on_impossible
            ``"nan"``: rows that are impossible under p give NaN and one warning; ``"raise"``: an
            `ImpossibleEvidenceError`.

        Returns
        -------
        Distribution
            With ``cdf``, ``quantile``, ``above`` and ``interval``.

        Examples
        --------
        >>> from expecta import Vtree
        >>> from expecta.circuits import independent, linear
        >>> vtree = Vtree.balanced(2)
        >>> pair = Pair(independent(vtree, [[0.5, 0.5]] * 2), linear(vtree, [[0, 1], [0, 2]]))
        >>> answer = pair.distribution([[-1, -1]])
        >>> answer.cdf([0, 1, 2.5])[0].tolist(), answer.quantile(0.5)[0].tolist()
        ([0.25, 0.5, 0.75], 1.0)
        """
        from expecta.queries.output_distribution import distribution

        return distribution(self, X, noise, tol, on_impossible)

    def noisy_distribution(
        self, X: Rows, *, tol: float = 1e-9, on_impossible: str = "nan"
    ) -> Distribution:
        """Distribution of y = g₁ + N(0, g₂) given what is known, of a g with two outputs.

        The second output is the variance of y given the inputs; none of its parameters is
        negative. As exact, and nearly as cheap, as :meth:`distribution` with its noise of one
        size, unless some inputs make the noise many times that of others.

        Parameters
        ----------
        X
            Rows: a table in which NaN, or -1 among integers, is unknown, or `Evidence`.
        tol
            Largest error of a probability.
        on_impossible
            ``"nan"``: rows that are impossible under p give NaN and one warning; ``"raise"``: an
            `ImpossibleEvidenceError`.

        Returns
        -------
        Distribution
            With ``cdf``, ``quantile``, ``above`` and ``interval``.

        Examples
        --------
        >>> from expecta import Vtree
        >>> from expecta.circuits import independent, linear
        >>> vtree = Vtree.balanced(2)
        >>> g = linear(vtree, [[[0, 0], [1, 8]], [[0, 0], [2, 0]]], bias=[0, 1])
        >>> pair = Pair(independent(vtree, [[0.5, 0.5]] * 2), g)
        >>> low, high = pair.noisy_distribution([[0, 0], [1, 0]]).interval(0.9)
        >>> (high - low).round(2).tolist()
        [3.29, 9.87]
        """
        from expecta.queries.output_distribution import noisy_distribution

        return noisy_distribution(self, X, tol, on_impossible)

    def _shape(self, values: T, X: Rows) -> T:
        """Drop the axis of outputs where there is only one; answer arrays on a card by such."""
        from expecta.queries.card_answers import same_kind

        return same_kind(values[:, 0] if self.g.n_outputs == 1 else values, X)


def _cells(p: ProbabilisticCircuit, g: RegressionCircuit) -> float:
    """Count what compiling a pair needs memory for: nodes and elements of p times nodes of g."""
    ours = np.diff(p.structure.node_start) + np.diff(p.structure.element_start)
    return float(ours.astype(np.float64) @ np.diff(g.structure.node_start))
