"""Answer parts of a distribution: rows that are enumerated, and rows by their spectrum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Complexes, Floats, Ints
from expecta.engine.algebras.spectrum_algebra import turn
from expecta.queries.density_queries import scaled_prob
from expecta.queries.exponentials import NoiseOutput, characteristic_of
from expecta.queries.spectral import NORMAL, quadrature

if TYPE_CHECKING:
    from expecta.queries.pair import Pair

MAX_VALUES = 1 << 18  # of atoms to compute at once: what a processor's cache holds
MAX_CELLS = 1 << 23  # of completions to write out at once
UNLIKELY = 0.25  # part of the tolerance that may lie beyond what is likely
TINY = 1e-300  # least variance of noise
MAX_STEPS = 200  # to a quantile; each halves the last, or the bracket


def completions(evidence: Evidence) -> Floats:
    """Count the values that are possible in each row, multiplied over its variables."""
    total = np.ones(len(evidence))
    for states, codes in zip(evidence.states, evidence.codes, strict=True):
        total = np.minimum(total * np.count_nonzero(states, axis=1)[codes], 1e18)
    return total


@dataclass(frozen=True, eq=False)
class DistributionPart(ABC):
    """Some entries (row and output) of a distribution that are answered alike.

    ``local`` is each entry's index in the part: equal rows have one index.
    """

    entries: Ints
    local: Ints

    @abstractmethod
    def cdf(self, entry: Ints, c: Floats) -> Floats:
        """P(y <= c), index by index."""

    @abstractmethod
    def density(self, entry: Ints, y: Floats) -> Floats:
        """Density at y, index by index."""

    @abstractmethod
    def support(self, entry: Ints) -> tuple[Floats, Floats]:
        """Return the ends of an interval that holds all but rounding of the probability."""

    @abstractmethod
    def cdf_and_density(self, entry: Ints, y: Floats) -> tuple[Floats, Floats]:
        """Both at y, index by index, for less than one after the other."""

    @abstractmethod
    def blur(self) -> float:
        """Return the width of the normal noise that is in every entry."""

    @abstractmethod
    def extremes(self, entry: Ints) -> tuple[Floats, Floats]:
        """Return the least and the greatest y that is possible, however improbable."""

    def quantile(self, entry: Ints, q: Floats) -> Floats:
        """Return the extremes at the levels 0 and 1, and between them a c with cdf(c) = q."""
        least, greatest = self.extremes(entry)
        return np.where(q <= 0.0, least, np.where(q >= 1.0, greatest, self._solve(entry, q)))

    def _solve(self, entry: Ints, q: Floats) -> Floats:
        """Solve cdf(c) = q between the ends of the support, by Newton's steps with a bracket.

        The steps are on the normal scale, Φ⁻¹(cdf(c)) = Φ⁻¹(q), on which a cdf is nearly
        straight; one that leaves the bracket, or does not halve the last, is a bisection.
        """
        from scipy.special import ndtri

        low, high = self.support(entry)
        # Beyond what the ends enclose, the ends are the answer.
        at_low, at_high = self.cdf(entry, low) >= q, self.cdf(entry, high) <= q
        c = np.where(at_low, low, np.where(at_high, high, 0.5 * (low + high)))
        left, last = np.flatnonzero(~(at_low | at_high)), high - low
        z = ndtri(q)
        for _ in range(MAX_STEPS):
            if not len(left):
                break
            at = c[left]
            below, density = self.cdf_and_density(entry[left], at)
            less = below < q[left]
            low[left], high[left] = np.where(less, at, low[left]), np.where(less, high[left], at)
            z_at = ndtri(below)
            with np.errstate(all="ignore"):
                bell = np.exp(-0.5 * z_at * z_at) / np.sqrt(2 * np.pi)
                step = (z[left] - z_at) * bell / density
            to = at + step
            good = (to >= low[left]) & (to <= high[left]) & (np.abs(step) <= 0.5 * last[left])
            step = np.where(good, step, 0.5 * (low[left] + high[left]) - at)
            c[left], last[left] = at + step, np.abs(step)
            # a step of Newton's leaves an error of about its square; a bisection, of its size
            enough = np.where(good, 1e-7, 1e-13) * self.blur()
            left = left[np.abs(step) > enough]
        return c


@dataclass(frozen=True, eq=False)
class EnumeratedPart(DistributionPart):
    """Entries whose atoms are known; sorted by value, padded with weight zero."""

    entries: Ints
    local: Ints
    value: Floats  # (indices, atoms)
    weight: Floats  # (indices, atoms)
    noise: float | Floats  # of all atoms, or of each: (indices, atoms), all above zero

    @classmethod
    def certain(cls, entries: Ints, value: Floats, noise: float | Floats) -> EnumeratedPart:
        """Make entries that are certain to be a value each; ``noise`` may be one per entry."""
        ones = np.ones((len(value), 1))
        each = noise if isinstance(noise, float) else noise[:, None]
        return cls(entries, np.arange(len(value)), value[:, None], ones, each)

    def _noise(self, entry: Ints) -> float | Floats:
        return self.noise if isinstance(self.noise, float) else self.noise[entry]

    @property
    def _has_noise(self) -> bool:
        return not isinstance(self.noise, float) or self.noise > 0

    def cdf(self, entry: Ints, c: Floats) -> Floats:
        """Sum the weights at or below c, or their blurred steps."""
        from scipy.special import ndtr

        out = np.empty(len(entry))
        step = max(1, MAX_VALUES // self.value.shape[1])
        for a in range(0, len(entry), step):
            value, weight = self.value[entry[a : a + step]], self.weight[entry[a : a + step]]
            at = c[a : a + step, None]
            noise = self._noise(entry[a : a + step])
            with np.errstate(over="ignore"):  # a step, where the noise is next to none
                below = ndtr((at - value) / noise) if self._has_noise else value <= at
            out[a : a + step] = np.minimum((weight * below).sum(axis=1), 1.0)
        return out

    def density(self, entry: Ints, y: Floats) -> Floats:
        """Sum the bells over the atoms."""
        return self.cdf_and_density(entry, y)[1]

    def cdf_and_density(self, entry: Ints, y: Floats) -> tuple[Floats, Floats]:
        """Sum the blurred steps, and the bells, over the atoms."""
        from scipy.special import ndtr

        below, density = np.empty((2, len(entry)))
        step = max(1, MAX_VALUES // self.value.shape[1])
        for a in range(0, len(entry), step):
            part = slice(a, a + step)
            weight, noise = self.weight[entry[part]], self._noise(entry[part])
            z = (y[part, None] - self.value[entry[part]]) / noise
            below[part] = np.minimum((weight * ndtr(z)).sum(axis=1), 1.0)
            bell = weight if isinstance(noise, float) else weight / noise
            density[part] = (bell * np.exp(-0.5 * z * z)).sum(axis=1)
        unit = self.noise if isinstance(self.noise, float) else 1.0
        with np.errstate(over="ignore"):  # of next to no noise
            return below, density / (np.sqrt(2 * np.pi) * unit)

    def blur(self) -> float:
        """Return the noise, the least of several."""
        return float(np.min(self.noise, initial=np.inf))

    def support(self, entry: Ints) -> tuple[Floats, Floats]:
        """Return the least and greatest atom, noise around them."""
        noise = self._noise(entry)
        most = noise if isinstance(noise, float) else noise.max(axis=1)
        return self.value[entry, 0] - 40 * most, self.value[entry, -1] + 40 * most

    def extremes(self, entry: Ints) -> tuple[Floats, Floats]:
        """Return the least and greatest atom; noise has no end."""
        if self._has_noise:
            return np.full(len(entry), -np.inf), np.full(len(entry), np.inf)
        possible = self.weight[entry] > 0
        last = possible.shape[1] - 1 - np.argmax(possible[:, ::-1], axis=1)
        return self.value[entry, np.argmax(possible, axis=1)], self.value[entry, last]

    def _solve(self, entry: Ints, q: Floats) -> Floats:
        """Return the first atom that reaches q."""
        if self._has_noise and self.value.shape[1] == 1:
            from scipy.special import ndtri

            low, high = self.support(entry)
            noise = self._noise(entry)
            one = noise if isinstance(noise, float) else noise[:, 0]
            return np.clip(self.value[entry, 0] + one * ndtri(q), low, high)
        if self._has_noise:
            return super()._solve(entry, q)
        below = np.cumsum(self.weight[entry], axis=1)
        # within rounding of a step, the step is reached
        reached = below >= np.minimum(q, below[:, -1])[:, None] - 1e-14
        first = np.argmax(reached & (below > 0), axis=1)
        return self.value[entry, first]


@dataclass(frozen=True, eq=False)
class SpectralPart(DistributionPart):
    """Entries of one output that share their frequencies."""

    entries: Ints
    local: Ints
    t: Floats  # (frequencies,)
    weight: Floats  # (frequencies,) of the distribution function
    bell: Floats  # (frequencies,) of the density
    phi: Complexes  # (entries, frequencies) characteristic function of g - centre
    centre: Floats  # (entries,)
    half: Floats  # (entries,) half the range that g is likely to be in
    limits: Floats  # (entries, 2) least and greatest y that is possible
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
        ends: Floats,
        limits: Floats,
        noise: NoiseOutput | None = None,
    ) -> SpectralPart:
        """Choose frequencies for rows whose g is likely to lie between ``ends``.

        With ``noise`` g + noise is likely to, beside what the blur adds.
        """
        tail = NORMAL.tail(tol)
        rule = quadrature(NORMAL, reach + tail, tol, pair.rounding, blur)
        t = rule.frequency
        phi = characteristic_of(pair, evidence[rows], t, output, noise)[0][:, 0]
        centre = ends.mean(axis=1)
        return cls(
            entries=rows if noise else rows * pair.g.n_outputs + output,
            local=np.arange(len(rows)),
            t=t,
            weight=rule.weight,
            bell=rule.step / (np.pi * blur) * np.exp(-0.5 * rule.t**2),
            phi=phi * turn(centre[:, None], -t),
            centre=centre,
            half=0.5 * (ends[:, 1] - ends[:, 0]),
            limits=limits,
            margin=tail * blur,
            error=rule.error + (1.0 + UNLIKELY) * tol,
        )

    def _turned(self, entry: Ints, c: Floats) -> Any:
        """φ(t) exp(-i t c), block by block."""
        step = max(1, (1 << 20) // len(self.t))
        for a in range(0, len(entry), step):
            part = slice(a, a + step)
            at = (c[part] - self.centre[entry[part]])[:, None]
            yield part, self.phi[entry[part]] * turn(at, -self.t)

    def cdf(self, entry: Ints, c: Floats) -> Floats:
        """Integrate the characteristic function."""
        return self.cdf_and_density(entry, c)[0]

    def density(self, entry: Ints, y: Floats) -> Floats:
        """Transform the characteristic function back."""
        return self.cdf_and_density(entry, y)[1]

    def cdf_and_density(self, entry: Ints, y: Floats) -> tuple[Floats, Floats]:
        """Integrate the characteristic function, and transform it back."""
        low, high = self.support(entry)
        below, density = np.empty((2, len(entry)))
        for part, turned in self._turned(entry, np.clip(y, low, high)):
            below[part] = 0.5 - turned.imag @ self.weight
            density[part] = turned.real @ self.bell
        below = np.where(y < low, 0.0, np.where(y > high, 1.0, np.clip(below, 0.0, 1.0)))
        return below, np.where((y < low) | (y > high), 0.0, np.maximum(density, 0.0))

    def blur(self) -> float:
        """Return the width of the bell that the frequencies stand for."""
        return 0.1 * self.margin

    def extremes(self, entry: Ints) -> tuple[Floats, Floats]:
        """Return the limits."""
        return self.limits[entry, 0], self.limits[entry, 1]

    def support(self, entry: Ints) -> tuple[Floats, Floats]:
        """Return the ends that g is likely to lie between, the blur around them."""
        reach = self.half[entry] + self.margin
        return self.centre[entry] - reach, self.centre[entry] + reach


def enumerated(
    pair: Pair, evidence: Evidence, rows: Ints, noise: Floats | NoiseOutput
) -> list[DistributionPart]:
    """Make parts of rows with few completions; equal rows are enumerated once.

    ``noise`` is that of each output, or the output that is the variance of the first one's.
    """
    if not len(rows):
        return []
    codes = np.stack([code[rows] for code in evidence.codes], axis=1)
    _, first, index = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    index = index.reshape(-1)
    cells = np.cumsum(completions(evidence[rows[first]]) * codes.shape[1])
    parts: list[DistributionPart] = []
    for chunk in np.split(np.arange(len(first)), np.flatnonzero(np.diff(cells // MAX_CELLS)) + 1):
        here = np.flatnonzero((index >= chunk[0]) & (index <= chunk[-1]))
        atoms = _Atoms.of(pair, evidence, rows[first[chunk]])
        local = index[here] - chunk[0]
        if isinstance(noise, NoiseOutput):
            variance = atoms.table(atoms.value[:, noise.output], 0)
            std = np.sqrt(np.maximum(variance, TINY))
            value, weight = atoms.table(atoms.value[:, 0], 0), atoms.weights(0)
            parts.append(EnumeratedPart(rows[here], local, value, weight, std))
            continue
        for output, size in enumerate(noise.tolist()):
            value, weight = atoms.table(atoms.value[:, output], output), atoms.weights(output)
            entries = rows[here] * len(noise) + output
            parts.append(EnumeratedPart(entries, local, value, weight, size))
    return parts


class _Atoms(NamedTuple):
    """The completions of some rows, weighed by p and the evidence, one row after the other."""

    value: Floats  # (completions, outputs)
    weight: Floats  # (completions,)
    row: Ints  # (completions,)
    start: Ints  # (rows + 1,)

    @classmethod
    def of(cls, pair: Pair, evidence: Evidence, rows: Ints) -> _Atoms:
        x, who = _complete(evidence, rows)
        # fractions and powers of two: a logarithm of thousands would take as many digits away
        fraction, power = scaled_prob(pair.p._plan, x)
        for variable, (states, codes) in enumerate(
            zip(evidence.states, evidence.codes, strict=True)
        ):
            if np.any((states != 0) & (states != 1)):
                factor, more = np.frexp(states[codes[rows[who]], x[:, variable]])
                fraction, shift = np.frexp(fraction * factor)
                power += more + shift
        value = pair.g(x).reshape(len(x), -1)
        start = np.concatenate([[0], np.cumsum(np.bincount(who, minlength=len(rows)))])
        power = np.where(fraction > 0, power, np.iinfo(np.int64).min // 2)
        power -= np.maximum.reduceat(power, start[:-1])[who]
        weight = np.ldexp(fraction, np.maximum(power, -2000))
        weight /= np.add.reduceat(weight, start[:-1])[who]
        return cls(value, weight, who, start)

    def table(self, numbers: Floats, output: int) -> Floats:
        """Lay numbers out in the order of an output, padded with the last.  # (rows, atoms)."""
        order = np.lexsort((self.value[:, output], self.row))
        last = numbers[order[self.start[1:] - 1]]
        table = np.repeat(last[:, None], int(np.diff(self.start).max()), axis=1)
        table[self.row[order], self._rank(order)] = numbers[order]
        return table

    def weights(self, output: int) -> Floats:
        """Return the weights in the order of an output, padded with zero.  # (rows, atoms)."""
        order = np.lexsort((self.value[:, output], self.row))
        table = np.zeros((len(self.start) - 1, int(np.diff(self.start).max())))
        table[self.row[order], self._rank(order)] = self.weight[order]
        return table

    def _rank(self, order: Ints) -> Ints:
        return np.arange(len(order)) - self.start[self.row[order]]


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
