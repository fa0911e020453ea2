"""Compute the whole distribution of g, or of y = g + noise, given what is known.

Rows with few possible completions are enumerated: their atoms are exact. For the
others the distribution function is an integral of the characteristic function against
normal noise; where the variance σ²(x) of the noise depends on the inputs, that function is
E[exp(i t g - t² σ² / 2)], the same walk with other parameters. Without noise of its own, a row
is blurred by a normal distribution whose width is a small share of g's range; ``resolution``
says how far a step may seem moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.circuits.evidence import Evidence, Rows, as_evidence
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import DomainError
from expecta.queries.distribution_parts import (
    TINY,
    UNLIKELY,
    DistributionPart,
    EnumeratedPart,
    SpectralPart,
    completions,
    enumerated,
)
from expecta.queries.exponentials import NoiseOutput, likely
from expecta.queries.impossible import check_possible
from expecta.queries.moments import extremes_of, support_rounding
from expecta.queries.spectral import NORMAL, check_tolerance, coarse

if TYPE_CHECKING:
    from expecta.queries.pair import Pair

MAX_ATOMS = 1024  # completions of a row up to which they are enumerated,
MAX_ROUGH_ATOMS, ROUGH_TOL = 32, 1e-6  # and with noise, where such an error will do
FLAT_SHARE = 1e-12  # a range of g below this part of its parameters is rounding
BLURS_IN_RANGE = 500.0  # the range of g over the width of the blur, where there is no noise
MAX_BLURS_IN_RANGE = 4000.0  # the same, where there is noise: less noise than that is blurred too


@dataclass(frozen=True, eq=False, repr=False)
class Distribution:
    """The distribution of g or y for each row (and output) of a batch.

    With ``noise > 0`` everything is about y = g + N(0, noise²): unknown inputs and
    residual noise together; of noise that depends on the inputs, ``noise`` is the least. With
    ``noise = 0`` it is about g alone, the spread of the model's output, and the distribution is
    discrete.

    Answers have shape (rows,) for one number asked, (rows, m) for a list of m; with
    several outputs (rows, outputs) and (rows, outputs, m). A two-dimensional question of
    shape (rows, m) asks different numbers of each row.

    Parameters
    ----------
    parts
        Rows that are answered alike.
    impossible
        Which rows have probability zero.
    outputs
        Number of outputs.
    noise
        Standard deviation of the noise.
    error
        See below.
    resolution
        See below.

    Attributes
    ----------
    error
        Bound on the error of every probability, beside the resolution. Zero where the row was
        enumerated: exact, but for rounding.
    resolution
        How far the argument may be off: the true P(g <= c) lies between the answers at
        c - resolution and c + resolution, give or take ``error``. Zero where the row was
        enumerated, and where the noise is wide enough to be all the blur there is; rounding of
        g itself, of the size of its parameters, is not counted.

    Examples
    --------
    >>> from expecta import Pair, Vtree
    >>> from expecta.circuits import independent, linear
    >>> vtree = Vtree.balanced(2)
    >>> pair = Pair(independent(vtree, [[0.5, 0.5]] * 2), linear(vtree, [[0.0, 1.0], [0.0, 10.0]]))
    >>> distribution = pair.distribution([[1, -1]])
    >>> distribution.cdf([0.0, 5.0, 11.0]).round(9).tolist()
    [[0.0, 0.5, 1.0]]
    """

    parts: tuple[DistributionPart, ...]
    impossible: Bools
    outputs: int
    noise: Floats
    error: Floats
    resolution: Floats

    def __repr__(self) -> str:
        rows = f"{len(self.impossible)} rows, {self.outputs} output(s)"
        return f"Distribution({rows}, noise={self.noise.tolist()})"

    def cdf(self, c: npt.ArrayLike) -> Floats:
        """P(y <= c).

        Parameters
        ----------
        c
            Where: a number, a list, or a list for each row.

        Returns
        -------
        array
            P(y <= c).
        """
        return self._answer(c, lambda part, entries, at: part.cdf(entries, at))

    def above(self, c: npt.ArrayLike) -> Floats:
        """P(y > c).

        Parameters
        ----------
        c
            Where: a number, a list, or a list for each row.

        Returns
        -------
        array
            P(y > c).
        """
        return 1.0 - self.cdf(c)

    def density(self, y: npt.ArrayLike) -> Floats:
        """Density of y; needs noise, since g alone has atoms and no density.

        For rows that are not enumerated, noise below 1/4000 of g's range is widened to
        that, and ``resolution`` is then not zero.

        Parameters
        ----------
        y
            Where: a number, a list, or a list for each row.

        Returns
        -------
        array
            Per unit of y.
        """
        if np.any(self.noise <= 0):
            raise DomainError("g alone has no density: pass noise > 0, or ask for the cdf")
        return self._answer(y, lambda part, entries, at: part.density(entries, at))

    def quantile(self, q: npt.ArrayLike) -> Floats:
        """Least c with P(y <= c) >= q, for rows that are enumerated.

        For others some c with P(y <= c) = q, give or take ``error`` and ``resolution``:
        on a plateau between two steps that can be any place of the plateau. The levels 0 and 1
        give the least and the greatest y that is possible: with noise, minus and plus infinity.

        Parameters
        ----------
        q
            Levels between 0 and 1.

        Returns
        -------
        array
            In units of y.
        """
        levels = np.asarray(q, np.float64)
        if not np.all((levels >= 0) & (levels <= 1)):
            raise DomainError(f"a quantile level must be between 0 and 1, not {q!r}")
        return self._answer(levels, lambda part, entries, at: part.quantile(entries, at))

    def interval(self, coverage: float = 0.9) -> tuple[Floats, Floats]:
        """Return the ends of the central interval that holds y with this probability.

        Parameters
        ----------
        coverage
            The share that an interval is to hold.
        """
        if not 0 < coverage < 1:
            raise DomainError(f"coverage must be between 0 and 1, not {coverage}")
        ends = self.quantile([(1 - coverage) / 2, (1 + coverage) / 2])
        return ends[..., 0], ends[..., 1]

    def pinned(self, rows: Bools, value: Floats, noise: Floats | None = None) -> Distribution:
        """Return the same where some rows are known to be a value.  # (rows,), (of these,).

        Their noise is that of all rows, unless it is given.  # (of these,)
        """
        parts: list[DistributionPart] = []
        for part in self.parts:
            keep = ~rows[part.entries // self.outputs]
            parts.append(replace(part, entries=part.entries[keep], local=part.local[keep]))
        at = value.reshape(-1, self.outputs)
        for output, size in enumerate(self.noise.tolist()):
            entries = np.flatnonzero(rows) * self.outputs + output
            each = size if noise is None else noise
            parts.append(EnumeratedPart.certain(entries, at[:, output], each))
        error, resolution = self.error.copy(), self.resolution.copy()
        error[rows] = resolution[rows] = 0.0
        return replace(
            self,
            parts=tuple(parts),
            impossible=self.impossible & ~rows,
            error=error,
            resolution=resolution,
        )

    def _answer(
        self, asked: npt.ArrayLike, answer: Callable[[DistributionPart, Ints, Floats], Floats]
    ) -> Floats:
        """Let each part answer for its entries."""
        question = np.asarray(asked, np.float64)
        rows = len(self.impossible)
        if question.ndim > 2 or (question.ndim == 2 and len(question) != rows):
            raise DomainError(
                f"ask for a number, a list, or one list per row of {rows}, "
                f"not an array of shape {question.shape}"
            )
        if np.any(np.isnan(question)):
            raise DomainError("the question is not a number")
        columns = question.shape[-1] if question.ndim else 1
        if columns == 0:
            return np.empty((rows, self.outputs, 0))[:, 0 if self.outputs == 1 else slice(None)]
        table = np.broadcast_to(question, (rows, columns)) if question.ndim < 2 else question
        out = np.full((rows, self.outputs, columns), np.nan)
        flat = out.reshape(-1, columns)  # an entry is a row and an output
        for part in self.parts:
            local = np.repeat(part.local, columns)
            at = table[part.entries // self.outputs].reshape(-1)
            flat[part.entries] = answer(part, local, at).reshape(-1, columns)
        if self.outputs == 1:
            out = out[:, 0]
        return out if question.ndim else out[..., 0]


def distribution(
    pair: Pair, X: Rows, noise: float | npt.ArrayLike, tol: float, on_impossible: str
) -> Distribution:
    """Answer :meth:`expecta.Pair.distribution`."""
    check_tolerance(tol)
    tau = _noise(noise, pair.g.n_outputs)
    rough = tol >= ROUGH_TOL and bool(np.all(tau > 0))  # noise needs few frequencies
    asked = _Asked.of(pair, as_evidence(X, pair.p.cardinalities), tol, rough, on_impossible)
    parts = enumerated(pair, asked.evidence, asked.few, tau)
    entries = len(asked.evidence) * len(tau)
    error, resolution = np.zeros((2, entries))
    for output, size in enumerate(tau.tolist()):
        low, high = asked.low[:, output], asked.high[:, output]
        rest, flat = asked.rest, asked.flat(output)
        if np.any(flat):  # nothing that is unknown matters: one atom
            at = rest[flat] * len(tau) + output
            parts.append(EnumeratedPart.certain(at, high[rest[flat]], size))
            resolution[at] = (high - low)[rest[flat]]
        rows = rest[~flat]
        blurs = MAX_BLURS_IN_RANGE if size else BLURS_IN_RANGE
        blur = np.maximum(size, coarse((high - low)[rows]) / blurs)
        end = np.inf if size else 0.0
        limits = np.stack([low[rows] - end, high[rows] + end], axis=1)
        for part in asked.spectral(rows, output, blur, low[rows], high[rows], limits):
            parts.append(part)
            error[part.entries] = part.error + support_rounding(pair)
            if part.margin > size * NORMAL.tail(tol):
                resolution[part.entries] = part.margin
    return _distribution(parts, asked.impossible, tau, error, resolution)


def noisy_distribution(pair: Pair, X: Rows, tol: float, on_impossible: str) -> Distribution:
    """Answer :meth:`expecta.Pair.noisy_distribution`."""
    check_tolerance(tol)
    if pair.g.n_outputs != 2 or min(pair.g.weight[:, 1].min(), pair.g.bias[1]) < 0:
        raise DomainError(
            "g has two outputs, the second of which is a variance: its parameters are not negative"
        )
    evidence, rough = as_evidence(X, pair.p.cardinalities), tol >= ROUGH_TOL
    asked = _Asked.of(pair, evidence, tol, rough, on_impossible)
    least, most = np.maximum(asked.low[:, 1], 0.0), np.maximum(asked.high[:, 1], 0.0)
    parts = enumerated(pair, asked.evidence, asked.few, NoiseOutput(1))
    error, resolution = np.zeros((2, len(asked.evidence)))
    rest, flat = asked.rest, asked.flat(0) & asked.flat(1)
    if np.any(flat):
        at = rest[flat]
        noise = np.sqrt(np.maximum(most[at], TINY))
        parts.append(EnumeratedPart.certain(at, asked.high[at, 0], noise))
        resolution[at] = (asked.high - asked.low)[at, 0]
    rows = rest[~flat]
    # the noise that all completions have is the blur, and what some have beyond it is in their
    # characteristic function; where it is too narrow for that, all is blurred besides
    always = np.sqrt(max(pair.g.bias[1], TINY))  # most rows have hardly more: they lose nothing
    shared = 0.5 * always * coarse(np.sqrt(least[rows]) / always * (1 + 1e-12), 1)
    reach = NORMAL.tail(0.5 * UNLIKELY * tol) * np.sqrt(most[rows])
    low, high = asked.low[rows, 0] - reach, asked.high[rows, 0] + reach
    blur = np.maximum(shared, coarse(high - low, 1) / MAX_BLURS_IN_RANGE)
    limits = np.full((len(rows), 2), np.inf) * [-1.0, 1.0]
    for narrow in (False, True):
        here = (blur > shared) == narrow
        for part in asked.spectral(
            rows[here], 0, blur[here], low[here], high[here], limits[here], is_noise=not narrow
        ):
            parts.append(part)
            error[part.entries] = part.error + support_rounding(pair) + UNLIKELY * tol
            if narrow:
                resolution[part.entries] = part.margin
    noise = np.sqrt(least[~asked.impossible].min(initial=np.inf, keepdims=True))
    return _distribution(parts, asked.impossible, noise, error, resolution)


def _distribution(
    parts: list[DistributionPart], impossible: Bools, noise: Floats, error: Floats, shift: Floats
) -> Distribution:
    shape = (len(impossible), len(noise)) if len(noise) > 1 else (len(impossible),)
    return Distribution(
        tuple(parts), impossible, len(noise), noise, error.reshape(shape), shift.reshape(shape)
    )


class _Asked(NamedTuple):
    """Rows that a distribution is asked of, and the range of each output."""

    pair: Pair
    evidence: Evidence
    tol: float
    low: Floats  # (rows, outputs)
    high: Floats  # (rows, outputs)
    impossible: Bools  # (rows,)
    few: Ints  # rows with few completions
    rest: Ints  # the others that are possible

    @classmethod
    def of(
        cls, pair: Pair, evidence: Evidence, tol: float, rough: bool, on_impossible: str
    ) -> _Asked:
        low, high, impossible = extremes_of(pair, evidence)
        check_possible(impossible, on_impossible)
        limit = min(MAX_ATOMS, MAX_ROUGH_ATOMS) if rough else MAX_ATOMS
        few = completions(evidence) <= limit
        which = np.flatnonzero(few & ~impossible), np.flatnonzero(~few & ~impossible)
        return cls(pair, evidence, tol, low, high, impossible, *which)

    def flat(self, output: int) -> Bools:
        """Which of the rest have an output that does not vary beyond rounding."""
        low, high = self.low[self.rest, output], self.high[self.rest, output]
        most = np.abs(low) + np.abs(high)
        largest = np.abs(self.pair.g.weight[:, output]).max()
        return high - low <= FLAT_SHARE * (most + largest)

    def spectral(
        self,
        rows: Ints,
        output: int,
        blur: Floats,
        low: Floats,
        high: Floats,
        limits: Floats,
        is_noise: bool | None = None,
    ) -> Iterator[SpectralPart]:
        """Yield parts of rows that share their blur, which ``is_noise`` of the second output.

        With ``is_noise`` False the noise of the second output comes beside the blur; None is for
        a pair without such an output.
        """
        pair = self.pair
        for size in np.unique(blur).tolist():
            here = np.flatnonzero(blur == size)
            noise = None
            if is_noise is not None:
                noise = NoiseOutput(1, size * size if is_noise else 0.0)
            each = np.full(len(here), size)
            ends = likely(
                pair,
                self.evidence[rows[here]],
                low[here, None],
                high[here, None],
                each,
                UNLIKELY * self.tol,
                output,
                noise,
            )
            around = np.concatenate(ends, axis=1)
            around += pair.rounding * pair.parameter_size[output] * np.array([-1.0, 1.0])
            # noise that depends on the inputs has many sizes: fewer steps keep rows together
            reach = coarse((around[:, 1] - around[:, 0]) / size, 2 if noise is None else 1)
            for distance in np.unique(reach).tolist():
                some = reach == distance
                yield SpectralPart.of(
                    pair,
                    self.evidence,
                    rows[here[some]],
                    output,
                    size,
                    distance,
                    self.tol,
                    around[some],
                    limits[here[some]],
                    noise,
                )


def _noise(noise: float | npt.ArrayLike, outputs: int) -> Floats:
    tau = np.asarray(noise, np.float64)
    if tau.shape not in ((), (outputs,)) or not np.all(np.isfinite(tau) & (tau >= 0)):
        raise DomainError(
            f"noise is a standard deviation >= 0, or one for each of {outputs} outputs, "
            f"not {noise!r}"
        )
    return np.broadcast_to(tau, (outputs,)).copy()
