"""Compute the whole distribution of g, or of y = g + noise, given what is known.

Rows with few possible completions are enumerated: their atoms are exact. For the
others the distribution function is an integral of the characteristic function against
normal noise. Without noise of its own, a row is blurred by a normal distribution whose
width is a small share of g's range; ``resolution`` says how far a step may seem moved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from expecta.circuits.evidence import Rows, as_evidence
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import DomainError
from expecta.queries.distribution_parts import (
    UNLIKELY,
    DistributionPart,
    EnumeratedPart,
    SpectralPart,
    completions,
    enumerated,
)
from expecta.queries.exponentials import likely
from expecta.queries.impossible import check_possible
from expecta.queries.moments import extremes_of, support_rounding
from expecta.queries.spectral import check_tolerance, coarse

if TYPE_CHECKING:
    from expecta.queries.pair import Pair

MAX_ATOMS = 1024  # completions of a row up to which they are enumerated
FLAT_SHARE = 1e-12  # a range of g below this part of its parameters is rounding
BLURS_IN_RANGE = 500.0  # the range of g over the width of the blur, where there is no noise
MAX_BLURS_IN_RANGE = 4000.0  # the same, where there is noise: less noise than that is blurred too


@dataclass(frozen=True, eq=False, repr=False)
class Distribution:
    """The distribution of g or y for each row (and output) of a batch.

    With ``noise > 0`` everything is about y = g + N(0, noise²): unknown inputs and
    residual noise together. With ``noise = 0`` it is about g alone, the spread of the
    model's output, and the distribution is discrete.

    Answers have shape (rows,) for one number asked, (rows, m) for a list of m; with
    several outputs (rows, outputs) and (rows, outputs, m). A two-dimensional question of
    shape (rows, m) asks different numbers of each row.

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
        """P(y <= c)."""
        return self._answer(c, lambda part, entries, at: part.cdf(entries, at))

    def above(self, c: npt.ArrayLike) -> Floats:
        """P(y > c)."""
        return 1.0 - self.cdf(c)

    def density(self, y: npt.ArrayLike) -> Floats:
        """Density of y; needs noise, since g alone has atoms and no density.

        For rows that are not enumerated, noise below 1/4000 of g's range is widened to
        that, and ``resolution`` is then not zero.
        """
        if np.any(self.noise <= 0):
            raise DomainError("g alone has no density: pass noise > 0, or ask for the cdf")
        return self._answer(y, lambda part, entries, at: part.density(entries, at))

    def quantile(self, q: npt.ArrayLike) -> Floats:
        """Least c with P(y <= c) >= q, for rows that are enumerated.

        For others some c with P(y <= c) = q, give or take ``error`` and ``resolution``:
        on a plateau between two steps that can be any place of the plateau. The levels 0 and 1
        give the least and the greatest y that is possible: with noise, minus and plus infinity.
        """
        levels = np.asarray(q, np.float64)
        if not np.all((levels >= 0) & (levels <= 1)):
            raise DomainError(f"a quantile's level lies between 0 and 1, not {q!r}")
        return self._answer(levels, lambda part, entries, at: part.quantile(entries, at))

    def interval(self, coverage: float = 0.9) -> tuple[Floats, Floats]:
        """Return the ends of the central interval that holds y with this probability."""
        if not 0 < coverage < 1:
            raise DomainError(f"coverage lies between 0 and 1, not {coverage}")
        ends = self.quantile([(1 - coverage) / 2, (1 + coverage) / 2])
        return ends[..., 0], ends[..., 1]

    def pinned(self, rows: Bools, value: Floats) -> Distribution:
        """Return the same where some rows are known to be a value.  # (rows,), (of these,)."""
        parts: list[DistributionPart] = []
        for part in self.parts:
            keep = ~rows[part.entries // self.outputs]
            parts.append(replace(part, entries=part.entries[keep], local=part.local[keep]))
        at = value.reshape(-1, self.outputs)
        for output, noise in enumerate(self.noise.tolist()):
            entries = np.flatnonzero(rows) * self.outputs + output
            parts.append(EnumeratedPart.certain(entries, at[:, output], noise))
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
    evidence = as_evidence(X, pair.p.cardinalities)
    outputs = pair.g.n_outputs
    tau = _noise(noise, outputs)
    low, high, impossible = extremes_of(pair, evidence)
    check_possible(impossible, on_impossible)
    few = completions(evidence) <= MAX_ATOMS
    parts = enumerated(pair, evidence, np.flatnonzero(few & ~impossible), tau)
    error, resolution = np.zeros(low.size), np.zeros(low.size)
    rest = np.flatnonzero(~few & ~impossible)
    for output in range(outputs):
        width = (high - low)[rest, output]
        most = np.abs(low[rest, output]) + np.abs(high[rest, output])
        flat = width <= FLAT_SHARE * (most + np.abs(pair.g.weight[:, output]).max())
        if np.any(flat):  # nothing that is unknown matters: one atom
            entries = rest[flat] * outputs + output
            parts.append(EnumeratedPart.certain(entries, high[rest[flat], output], tau[output]))
            resolution[entries] = width[flat]
        rows, width = rest[~flat], width[~flat]
        blurs = MAX_BLURS_IN_RANGE if tau[output] else BLURS_IN_RANGE
        blur = np.maximum(tau[output], coarse(width) / blurs)
        ends = np.concatenate(
            likely(
                pair,
                evidence[rows],
                low[rows, output, None],
                high[rows, output, None],
                blur,
                UNLIKELY * tol,
                output,
            ),
            axis=1,
        )
        ends += pair.rounding * pair.parameter_size[output] * np.array([-1.0, 1.0])
        reach = coarse((ends[:, 1] - ends[:, 0]) / blur)
        noise_end = np.inf if tau[output] else 0.0
        limits = np.stack([low[rows, output] - noise_end, high[rows, output] + noise_end], axis=1)
        for size, distance in np.unique(np.stack([blur, reach]), axis=1).T.tolist():
            here = (blur == size) & (reach == distance)
            part = SpectralPart.of(
                pair,
                evidence,
                rows[here],
                output,
                size,
                distance,
                tol,
                ends[here],
                limits[here],
            )
            parts.append(part)
            error[part.entries] = part.error + support_rounding(pair)
            if size > tau[output]:
                resolution[part.entries] = part.margin
    shape = (len(evidence), outputs) if outputs > 1 else (len(evidence),)
    return Distribution(
        tuple(parts), impossible, outputs, tau, error.reshape(shape), resolution.reshape(shape)
    )


def _noise(noise: float | npt.ArrayLike, outputs: int) -> Floats:
    tau = np.asarray(noise, np.float64)
    if tau.shape not in ((), (outputs,)) or not np.all(np.isfinite(tau) & (tau >= 0)):
        raise DomainError(
            f"noise is a standard deviation >= 0, or one for each of {outputs} outputs, "
            f"not {noise!r}"
        )
    return np.broadcast_to(tau, (outputs,)).copy()
