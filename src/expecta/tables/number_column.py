"""Encode columns of numbers and times by bins that keep statistics of the training data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincinv

from expecta.common.arrays import Floats, Ints
from expecta.common.row_random import RowRandom
from expecta.tables.bins import Sample, bin_edges
from expecta.tables.cells import Cells
from expecta.tables.column import Column, closed_ends
from expecta.tables.column_notes import ColumnNotes
from expecta.tables.durations import write_duration
from expecta.tables.scalars import DAY, TIMES, on_the_clock

if TYPE_CHECKING:
    from expecta.tables.table_sketch import ColumnSketch

MAX_EXACT = 2.0**53  # from here on floats are further than 1 apart
QUANTILES = 128  # of a bin that are kept
DEFAULT_BINS = 8, 32  # smallest and largest default of max_bins


@dataclass(frozen=True, eq=False)
class NumberColumn(Column):
    """A column of numbers; a value of the variable is a bin."""

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A readable text for every bin: the range of what was in it."""
        for digits in (4, 6, 9, 12, 17):
            lows = [self._text(x, digits) for x in self.lows.tolist()]
            highs = [self._text(x, digits) for x in self.highs.tolist()]
            labels = tuple(
                low if low == high else f"{low} to {high}"
                for low, high in zip(lows, highs, strict=True)
            )
            if len(set(labels)) == len(labels):
                break
        return labels

    @property
    def ordered(self) -> bool:
        """Numbers and times have an order."""
        return True

    def text(self, value: float) -> str:
        """Write a number or a time of the column for people to read."""
        return self._text(value, 6)

    def _text(self, value: float, digits: int) -> str:
        """Write a number; ``digits`` counts up until all labels differ."""
        if self.kind not in TIMES or abs(value) >= 2.0**62:
            whole = value == np.floor(value) and abs(value) < 10.0 ** max(digits, 9)
            long = 10.0 ** (digits - 1) <= abs(value) < 1e15  # no decimals are wanted
            return f"{value:.0f}" if whole or long else f"{value:.{digits}g}"
        if self.kind == "duration":
            return write_duration(int(value))
        value = on_the_clock(value, self.zone)
        text = str(np.datetime64(int(value), "us")).replace("T", " ")  # to the microsecond
        return text[: {4: 10 if self.step else 16, 6: 16, 9: 19}.get(digits, len(text))]

    def encode(self, cells: Cells, *, unseen: str = "unknown") -> Ints:
        """Return the bin of every number; beyond the training range it is an end bin."""
        numbers = cells.as_numbers(self.kind, self.zone)
        codes = np.searchsorted(self.edges, numbers, side="right").astype(np.int32)
        codes[np.isnan(numbers)] = -1
        return codes

    def decode(self, codes: Ints, rng: np.random.Generator | RowRandom | None) -> Any:
        """Return the mean of each bin, or a random number like those that were in it.

        Random numbers follow the beta distribution between the ends of the bin that has the bin's
        mean and spread; whole ones are rounded from half a step beyond the ends. Those of a
        `RowRandom` follow straight lines between its quantiles, each 1/128 of the bin.
        """
        known = codes >= 0
        code = codes[known]
        out = np.full(len(codes), np.nan)
        out[known] = self.means[code]
        if rng is not None:
            unit, start, span, *shape = self._within
            wide = self.highs > self.lows
            some = known & wide[codes]
            code = codes[some]
            if isinstance(rng, RowRandom):
                drawn = self._quantiles(code, rng.random(len(codes))[some])
            else:
                drawn = rng.beta(*(of_bin[code] for of_bin in shape))
            draw = (start[code] + span[code] * drawn) * unit[code]
            if self.step:
                draw = np.rint(draw / self.step) * self.step
            out[some] = np.clip(draw, self.lows[code], self.highs[code])
        grid = {"date": DAY, "integer": 1}.get(self.kind, 0)
        return np.rint(out / grid) * grid if grid else out

    def numeric(self) -> Floats:
        """Return the mean of each bin."""
        return self.means

    def code(self, value: Any) -> int:
        """Return the bin that a number falls in."""
        return int(np.searchsorted(self.edges, self.to_number(value), side="right"))

    @cached_property
    def _within(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """A unit for each bin, where its numbers begin, their span, and the parameters of a beta.

        The beta distribution that has the mean and the spread of the bin's training numbers: evenly
        spread ones are even in it. Those of a step reach half a step beyond their ends. The span of
        a single number is 0; numbers of a wide bin whose spread is not known are even.
        """
        unit = np.maximum(np.maximum(np.abs(self.lows), np.abs(self.highs)), 1e-300)  # no overflow
        step = np.where(self.highs > self.lows, self.step, 0.0) / unit
        start = self.lows / unit - step / 2
        span = self.highs / unit - self.lows / unit + step
        width = np.where(span > 0, span, 1.0)
        middle = np.clip((self.means / unit - start) / width, 1e-9, 1 - 1e-9)
        square = np.clip(self.stds / unit / width, 1e-6, 1.0) ** 2 + (step / width) ** 2 / 12
        strength = np.maximum(middle * (1 - middle) / square - 1, 1e-3)
        told = self.stds > 0
        first, second = (np.where(told, m * strength, 1.0) for m in (middle, 1 - middle))
        return unit, start, span, first, second

    @cached_property
    def _beta_quantiles(self) -> Floats:
        """Where so many even shares of each bin end, from 0 to 1.  # (bins, levels)."""
        *_, first, second = self._within
        levels = np.linspace(0.0, 1.0, QUANTILES + 1)
        return np.asarray(betaincinv(first[:, None], second[:, None], levels))

    def _quantiles(self, code: Ints, level: Floats) -> Floats:
        """Return the quantiles of bins at levels below 1."""
        part = (QUANTILES * level).astype(np.int64)
        low, high = self._beta_quantiles[code, part], self._beta_quantiles[code, part + 1]
        return np.asarray(low + (QUANTILES * level - part) * (high - low))

    def below(self, number: float, *, inclusive: bool = True) -> Floats:
        """Return the share of each bin that lies below a number, or is it.

        What is in a bin is taken to follow the beta distribution between the least and the largest
        training number in it that has their mean and spread, over whole numbers (or days) where all
        were whole. So a bin counts in full when its data lie below, not at all when they lie above;
        and the least and the largest number are one row each at least, if others are not whole.
        """
        _, _, span, first, second = self._within
        reached = self.lows <= number if inclusive else self.lows < number
        passed = self.highs <= number if inclusive else self.highs < number
        if self.step and np.isfinite(number):
            steps = number / self.step
            number = (np.floor(steps) + 0.5 if inclusive else np.ceil(steps) - 0.5) * self.step
            return np.where(span > 0, betainc(first, second, self._place(number)), reached)
        share = betainc(first, second, self._place(number))
        one_row = np.minimum(1.0 / np.maximum(self.counts, 1.0), 0.5)
        share = np.clip(share, one_row, 1.0 - one_row)
        return np.where(passed, 1.0, np.where(reached, share, 0.0))

    def _place(self, number: float | Floats) -> Floats:
        """Return where a number lies in each bin, from 0 to 1; at and beyond its ends exactly."""
        unit, start, span, _, _ = self._within
        with np.errstate(over="ignore"):  # where a number is far from a tiny bin
            place = (number / unit - start) / np.where(span > 0, span, 1.0)
        place = np.where(number <= self.lows, 0.0, np.where(number >= self.highs, 1.0, place))
        return np.clip(place, 0.0, 1.0)

    def narrowed(self, low: float, high: float) -> NumberColumn:
        """Return the column with what its bins hold between two numbers, both included.

        A bin that is cut has the ends, the mean and the spread of its part, under the distribution
        that `below` describes; all others, and the edges of bins, stay.
        """
        step = self.step
        mean: Floats
        std: Floats
        if low == high and np.isfinite(
            low
        ):  # one number, which may lie beyond the training numbers of its bin
            at = np.arange(self.cardinality) == np.searchsorted(self.edges, low, side="right")
            bottom = top = mean = np.full(self.cardinality, low)
            std = np.zeros(self.cardinality)
        else:
            bottom = np.maximum(np.ceil(low / step) * step if step else low, self.lows)
            top = np.minimum(np.floor(high / step) * step if step else high, self.highs)
            at = (bottom <= top) & ((bottom > self.lows) | (top < self.highs))
            inside = np.where(at, bottom, self.lows), np.where(at, top, self.highs)
            mean, std = self._moments(*inside)
        return replace(
            self,
            lows=np.where(at, bottom, self.lows),
            highs=np.where(at, top, self.highs),
            means=np.where(at, mean, self.means),
            stds=np.where(at, std, self.stds),
        )

    def _moments(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return mean and spread of each bin's numbers between two, under their beta."""
        unit, start, span, first, second = self._within
        width = np.where(span > 0, span, 1.0)
        half = np.where(span > 0, self.step / unit / width / 2, 0.0)
        ends = [self._place(low - self.step / 2), self._place(high + self.step / 2)]
        below = [[betainc(first + k, second, end) for end in ends] for k in range(3)]
        part = [upto - before for before, upto in below]
        share, total = np.where(part[0] > 0, part[0], np.inf), first + second
        mean = first / total * part[1] / share
        square = first * (first + 1) / (total * (total + 1)) * part[2] / share
        std = np.sqrt(np.maximum(square - mean**2 - half**2 / 3, 0.0))
        return np.clip((start + width * mean) * unit, low, high), std * width * unit

    def between(self, low: float | None, high: float | None, *, closed: str = "both") -> Floats:
        """Return the share of each bin that lies between two ends; None is an open end.

        See `below` for how the numbers of a bin are taken to lie. An interval beyond the training
        data is impossible.
        """
        from_low, upto_high = closed_ends(closed)
        start = -np.inf if low is None else low
        end = np.inf if high is None else high
        upto = self.below(end, inclusive=upto_high)
        return np.maximum(upto - self.below(start, inclusive=not from_low), 0.0)


def fit_numbers(
    cells: Cells,
    kind: str,
    weight: Floats | None,
    method: str | npt.ArrayLike,
    max_bins: int | None,
    thresholds: Floats,
    notes: ColumnNotes,
) -> NumberColumn | None:
    """Cut a column into bins; None where no finite number is known."""
    zone = cells.zone if kind == "datetime" else None
    numbers = cells.as_numbers(kind, zone)
    sample = Sample.from_numbers(numbers, weight)
    if not len(sample.values):
        return None
    if cells.rounded:
        notes.add("rounded", cells.name)
    edges = _edges(sample, method, max_bins, thresholds)
    bins = np.searchsorted(edges, numbers, side="right")
    known = ~np.isnan(numbers)
    counts = np.bincount(bins[known], None if weight is None else weight[known], len(edges) + 1)
    grid = sample.values / (DAY if kind in TIMES else 1)
    stepped = bool(np.all(grid == np.floor(grid)))
    facts = cells.name, kind, cells.dtype, zone
    return _number_column(*facts, sample, edges, counts, stepped, notes)


def fit_number_sketch(
    sketch: ColumnSketch,
    kind: str,
    method: str | npt.ArrayLike,
    max_bins: int | None,
    thresholds: Floats,
    notes: ColumnNotes,
) -> NumberColumn:
    """Cut a column into bins by a summary of its numbers; infinite ones are not counted."""
    numbers = sketch.numbers
    assert numbers is not None
    if sketch.rounded:
        notes.add("rounded", sketch.name)
    edges = _edges(numbers.ends, method, max_bins, thresholds)
    sample = numbers.moments
    bins = np.searchsorted(edges, sample.values, side="right")
    counts = np.bincount(bins, sample.mass, len(edges) + 1)
    facts = sketch.name, kind, sketch.dtype, sketch.zone if kind == "datetime" else None
    return _number_column(*facts, sample, edges, counts, sketch.stepped, notes)


def _number_column(
    name: str,
    kind: str,
    dtype: str,
    zone: str | None,
    sample: Sample,
    edges: Floats,
    counts: Floats | Ints,
    stepped: bool,
    notes: ColumnNotes,
) -> NumberColumn:
    if len(sample.values) == 1:
        notes.add("constant", name)
    means, stds, lows, highs = _statistics(sample, edges)
    grid = DAY if kind in TIMES else 1
    exact = np.max(np.abs(sample.values)) < MAX_EXACT * grid
    return NumberColumn(
        name,
        kind,
        dtype,
        len(edges) + 1,
        counts.astype(np.float64),
        edges=edges,
        means=means,
        stds=stds,
        lows=lows,
        highs=highs,
        step=float(grid) if exact and stepped else 0.0,
        zone=zone,
    )


def _edges(
    sample: Sample, method: str | npt.ArrayLike, max_bins: int | None, thresholds: Floats
) -> Floats:
    if max_bins is None:
        max_bins = int(np.clip(np.ceil(2 * np.cbrt(sample.mass.sum())), *DEFAULT_BINS))
    return bin_edges(sample, method, max_bins, thresholds)


def _statistics(sample: Sample, edges: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return mean, spread, least and largest number of every bin.

    A bin without data, which only a threshold or equal widths can make, is a point in
    its middle.
    """
    values = sample.values
    start = np.searchsorted(values, edges)
    first = np.append(0, start)
    end = np.append(start, len(values))
    filled = end > first
    lows, highs = np.zeros(len(first)), np.zeros(len(first))
    lows[filled], highs[filled] = values[first[filled]], values[end[filled] - 1]
    if not np.all(filled):
        ends = np.concatenate([[np.nan], edges, [np.nan]])
        middle = ends[:-1] / 2 + ends[1:] / 2
        middle = np.where(middle < ends[1:], middle, ends[:-1])
        middle[0] = np.nextafter(ends[1], -np.inf)
        middle[-1] = ends[-2]
        lows = np.where(filled, lows, middle)
        highs = np.where(filled, highs, middle)
    scale = max(float(np.max(np.abs(values))), 1e-300)
    bins = np.searchsorted(edges, values, side="right")
    total = np.bincount(bins, sample.mass, len(first))
    total[total == 0] = 1.0
    unit = values / scale
    centre = np.bincount(bins, sample.mass * unit, len(first)) / total
    spread = np.bincount(bins, sample.mass * (unit - centre[bins]) ** 2, len(first)) / total
    means = np.clip(np.where(filled, centre * scale, lows), lows, highs)
    stds = np.where(lows == highs, 0.0, np.sqrt(spread) * scale)
    return means, stds, lows, highs
