"""The whole distribution of g, or of y = g + noise, given what is known.

Rows with few possible completions are enumerated: their atoms are exact. For the
others the distribution function is an integral of the characteristic function against
normal noise. Without noise of its own, a row is blurred by a normal distribution whose
width is a small share of g's range; ``resolution`` says how far a step may seem moved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from expecta.arrays import Bools, Complexes, Floats, Ints
from expecta.errors import DomainError
from expecta.evidence import Evidence, Rows, as_evidence
from expecta.pair.algebras.spectrum import turn
from expecta.queries.impossible import check_possible
from expecta.queries.moments import exponential_of, extremes_of, off_support
from expecta.queries.spectral import NORMAL, check_tolerance, coarse, quadrature

if TYPE_CHECKING:
    from expecta.pair.pair import Pair

__all__ = ["Distribution", "distribution"]

ATOMS = 1024  # completions of a row up to which they are enumerated
CELLS = 1 << 23  # cells of completions to write out at once
FLAT = 1e-12  # a range of g below this part of its parameters is rounding
BLUR = 500.0  # the range of g over the width of the blur, where there is no noise
NARROW = 4000.0  # the same, where there is noise: less noise than that is blurred too


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
        Bound on the error of every probability, beside the resolution.
    resolution
        How far the argument may be off: the true P(g <= c) lies between the answers at
        c - resolution and c + resolution, give or take ``error``. Zero where the row was
        enumerated, and where the noise is wide enough to be all the blur there is.
    """

    parts: tuple[_Part, ...]
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
        return self._ask(c, lambda part, entries, at: part.cdf(entries, at))

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
        return self._ask(y, lambda part, entries, at: part.density(entries, at))

    def quantile(self, q: npt.ArrayLike) -> Floats:
        """Least c with P(y <= c) >= q, for rows that are enumerated.

        For others some c with P(y <= c) = q, give or take ``error`` and ``resolution``:
        on a plateau between two steps that can be any place of the plateau.
        """
        levels = np.asarray(q, np.float64)
        if not np.all((levels >= 0) & (levels <= 1)):
            raise DomainError(f"a quantile's level lies between 0 and 1, not {q!r}")
        return self._ask(levels, lambda part, entries, at: part.quantile(entries, at))

    def interval(self, coverage: float = 0.9) -> tuple[Floats, Floats]:
        """Return the ends of the central interval that holds y with this probability."""
        if not 0 < coverage < 1:
            raise DomainError(f"coverage lies between 0 and 1, not {coverage}")
        ends = self.quantile([(1 - coverage) / 2, (1 + coverage) / 2])
        return ends[..., 0], ends[..., 1]

    def _ask(self, asked: npt.ArrayLike, answer: Callable[[_Part, Ints, Floats], Floats]) -> Floats:
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
    completions = _completions(evidence)
    few = completions <= ATOMS
    parts = _enumerated(pair, evidence, np.flatnonzero(few & ~impossible), completions, tau)
    error, resolution = np.zeros(low.size), np.zeros(low.size)
    rest = np.flatnonzero(~few & ~impossible)
    for output in range(outputs):
        width = (high - low)[rest, output]
        size = np.abs(low[rest, output]) + np.abs(high[rest, output])
        flat = width <= FLAT * (size + np.abs(pair.g.weight[:, output]).max())
        if np.any(flat):  # nothing that is unknown matters: one atom
            entries = rest[flat] * outputs + output
            atom = high[rest[flat], output][:, None]
            parts.append(_Atoms(entries, np.arange(len(atom)), atom, 0 * atom + 1, tau[output]))
            resolution[entries] = width[flat]
        rows, width = rest[~flat], width[~flat]
        blur = np.maximum(tau[output], coarse(width) / (NARROW if tau[output] else BLUR))
        reach = coarse(width / blur)
        for pick in np.unique(np.stack([blur, reach]), axis=1).T:
            chosen = rows[(blur == pick[0]) & (reach == pick[1])]
            part = _Spectral.of(
                pair, evidence, chosen, output, float(pick[0]), float(pick[1]), tol, low, high
            )
            parts.append(part)
            error[part.entries] = part.error + off_support(pair)
            if pick[0] > tau[output]:
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


def _completions(evidence: Evidence) -> Floats:
    """Count the values that are possible in each row, multiplied over its variables."""
    total = np.ones(len(evidence))
    for states, codes in zip(evidence.states, evidence.codes, strict=True):
        total = np.minimum(total * np.count_nonzero(states, axis=1)[codes], 1e18)
    return total


class _Part:
    """Some entries (row and output) of a distribution that are answered alike.

    ``local`` is each entry's place in the part: equal rows have one place.
    """

    entries: Ints
    local: Ints

    def cdf(self, entry: Ints, c: Floats) -> Floats:
        raise NotImplementedError

    def density(self, entry: Ints, y: Floats) -> Floats:
        raise NotImplementedError

    def support(self, entry: Ints) -> tuple[Floats, Floats]:
        """Return the ends of an interval that holds all but rounding of the probability."""
        raise NotImplementedError

    def quantile(self, entry: Ints, q: Floats) -> Floats:
        """Solve cdf(c) = q between the ends of the support."""
        from scipy.optimize import elementwise

        low, high = self.support(entry)
        found = elementwise.find_root(
            lambda c, number, level: self.cdf(number.astype(np.int64), c) - level,
            (low, high),
            args=(entry.astype(np.float64), np.clip(q, 1e-300, 1.0)),
            tolerances={"xatol": 0.0, "xrtol": 1e-13, "fatol": 0.0, "frtol": 0.0},
        )
        roots: Floats = found.x
        # Beyond what the ends enclose, the ends are the answer.
        at_low, at_high = self.cdf(entry, low) >= q, self.cdf(entry, high) <= q
        return np.where(at_low, low, np.where(at_high, high, roots))


@dataclass(frozen=True, eq=False)
class _Atoms(_Part):
    """Entries whose atoms are known; sorted by value, padded with weight zero."""

    entries: Ints
    local: Ints
    value: Floats  # (places, atoms)
    weight: Floats  # (places, atoms)
    noise: float

    def cdf(self, entry: Ints, c: Floats) -> Floats:
        from scipy.special import ndtr

        out = np.empty(len(entry))
        step = max(1, (1 << 22) // self.value.shape[1])
        for a in range(0, len(entry), step):
            value, weight = self.value[entry[a : a + step]], self.weight[entry[a : a + step]]
            at = c[a : a + step, None]
            below = ndtr((at - value) / self.noise) if self.noise else value <= at
            out[a : a + step] = np.minimum((weight * below).sum(axis=1), 1.0)
        return out

    def density(self, entry: Ints, y: Floats) -> Floats:
        z = (y[:, None] - self.value[entry]) / self.noise
        bell = np.exp(-0.5 * z * z) / (np.sqrt(2 * np.pi) * self.noise)
        total: Floats = (self.weight[entry] * bell).sum(axis=1)
        return total

    def support(self, entry: Ints) -> tuple[Floats, Floats]:
        return self.value[entry, 0] - 40 * self.noise, self.value[entry, -1] + 40 * self.noise

    def quantile(self, entry: Ints, q: Floats) -> Floats:
        if self.noise:
            return super().quantile(entry, q)
        below = np.cumsum(self.weight[entry], axis=1)
        # within rounding of a step, the step is reached
        reached = below >= np.minimum(q, below[:, -1])[:, None] - 1e-14
        first = np.argmax(reached & (below > 0), axis=1)
        atoms: Floats = self.value[entry, first]
        return atoms


@dataclass(frozen=True, eq=False)
class _Spectral(_Part):
    """Entries of one output that share their frequencies."""

    entries: Ints
    local: Ints
    t: Floats  # (frequencies,)
    weight: Floats  # (frequencies,) of the distribution function
    bell: Floats  # (frequencies,) of the density
    phi: Complexes  # (entries, frequencies) characteristic function of g - centre
    centre: Floats  # (entries,)
    half: Floats  # (entries,) half the range of g
    margin: float  # how far beyond the range the blur can carry
    error: float

    @classmethod
    def of(
        cls,
        pair: Pair,
        evidence: Evidence,
        rows: Ints,
        output: int,
        blur: float,
        reach: float,
        tol: float,
        low: Floats,
        high: Floats,
    ) -> _Spectral:
        tail = NORMAL.tail(tol)
        rule = quadrature(NORMAL, reach + tail, tol)
        t = rule.t / blur
        phi = exponential_of(pair, evidence[rows], 1j * t, output)[0][:, 0]
        centre = 0.5 * (low + high)[rows, output]
        return cls(
            entries=rows * pair.g.n_outputs + output,
            local=np.arange(len(rows)),
            t=t,
            weight=rule.weight,
            bell=rule.step / (np.pi * blur) * np.exp(-0.5 * rule.t**2),
            phi=phi * turn(centre[:, None], -1j * t),
            centre=centre,
            half=0.5 * (high - low)[rows, output],
            margin=tail * blur,
            error=rule.error + tol,
        )

    def _turned(self, entry: Ints, c: Floats) -> Any:  # noqa: ANN401
        """φ(t) exp(-i t c), block by block."""
        step = max(1, (1 << 20) // len(self.t))
        for a in range(0, len(entry), step):
            part = slice(a, a + step)
            at = (c[part] - self.centre[entry[part]])[:, None]
            yield part, self.phi[entry[part]] * turn(at, -1j * self.t)

    def cdf(self, entry: Ints, c: Floats) -> Floats:
        low, high = self.support(entry)
        out = np.empty(len(entry))
        for part, turned in self._turned(entry, np.clip(c, low, high)):
            out[part] = 0.5 - turned.imag @ self.weight
        out = np.clip(out, 0.0, 1.0)
        return np.where(c < low, 0.0, np.where(c > high, 1.0, out))

    def density(self, entry: Ints, y: Floats) -> Floats:
        low, high = self.support(entry)
        out = np.empty(len(entry))
        for part, turned in self._turned(entry, np.clip(y, low, high)):
            out[part] = turned.real @ self.bell
        return np.where((y < low) | (y > high), 0.0, np.maximum(out, 0.0))

    def support(self, entry: Ints) -> tuple[Floats, Floats]:
        reach = self.half[entry] + self.margin
        return self.centre[entry] - reach, self.centre[entry] + reach


def _enumerated(
    pair: Pair, evidence: Evidence, rows: Ints, completions: Floats, noise: Floats
) -> list[_Part]:
    """Make parts of rows with few completions; equal rows are enumerated once."""
    if not len(rows):
        return []
    codes = np.stack([code[rows] for code in evidence.codes], axis=1)
    _, first, place = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    place = place.reshape(-1)
    cells = np.cumsum(completions[rows[first]] * codes.shape[1])
    parts: list[_Part] = []
    for chunk in np.split(np.arange(len(first)), np.flatnonzero(np.diff(cells // CELLS)) + 1):
        here = np.flatnonzero((place >= chunk[0]) & (place <= chunk[-1]))
        for output, (value, weight) in enumerate(_atoms(pair, evidence, rows[first[chunk]])):
            entries = rows[here] * len(noise) + output
            parts.append(_Atoms(entries, place[here] - chunk[0], value, weight, noise[output]))
    return parts


def _atoms(pair: Pair, evidence: Evidence, rows: Ints) -> list[tuple[Floats, Floats]]:
    """Write out the completions of some rows, weighed by p and the evidence.

    Returns for each output the sorted values and their weights.  # (rows, atoms) each
    """
    x, who = _complete(evidence, rows)
    log_weight = pair.p.log_prob(x)
    with np.errstate(divide="ignore"):
        for variable in range(x.shape[1]):
            states, codes = evidence.states[variable], evidence.codes[variable]
            log_weight += np.log(states[codes[rows[who]], x[:, variable]])
    value = pair.g(x).reshape(len(x), -1)
    start = np.concatenate([[0], np.cumsum(np.bincount(who, minlength=len(rows)))])
    log_weight -= np.maximum.reduceat(log_weight, start[:-1])[who]
    weight = np.exp(log_weight)
    weight /= np.add.reduceat(weight, start[:-1])[who]
    most = int(np.diff(start).max())
    found: list[tuple[Floats, Floats]] = []
    for column in value.T:
        order = np.lexsort((column, who))
        place = np.arange(len(x)) - start[who[order]]
        # Padding repeats the greatest value with weight zero.
        table = np.repeat(np.maximum.reduceat(column, start[:-1])[:, None], most, axis=1)
        mass = np.zeros((len(rows), most))
        table[who[order], place] = column[order]
        mass[who[order], place] = weight[order]
        found.append((table, mass))
    return found


def _complete(evidence: Evidence, rows: Ints) -> tuple[Ints, Ints]:
    """Write out every completion of some rows; returns them and the number of their row."""
    n_variables = len(evidence.states)
    possible = [[np.flatnonzero(state) for state in states] for states in evidence.states]
    count = np.empty((len(rows), n_variables), np.int64)
    first = np.empty((len(rows), n_variables), np.int64)
    for variable, states in enumerate(evidence.states):
        codes = evidence.codes[variable][rows]
        count[:, variable] = np.count_nonzero(states, axis=1)[codes]
        first[:, variable] = np.argmax(states > 0, axis=1)[codes]
    total = count.prod(axis=1)
    who = np.repeat(np.arange(len(rows)), total)
    x = first[who]
    start = np.concatenate([[0], np.cumsum(total)])
    for number, row in enumerate(rows.tolist()):
        index = np.arange(total[number])
        for variable in np.flatnonzero(count[number] > 1).tolist():
            index, digit = np.divmod(index, count[number, variable])
            values = possible[variable][evidence.codes[variable][row]]
            x[start[number] : start[number + 1], variable] = values[digit]
    return x, who
