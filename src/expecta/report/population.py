"""Who the density believes in: each column's distribution, beside the training rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Floats
from expecta.common.text import percent
from expecta.report.facts import Facts
from expecta.report.figures import Bar, bars, histogram
from expecta.report.html import Html, details, figure_of, join, table, tag
from expecta.report.times import named, when
from expecta.tables.column import Column
from expecta.tables.number_column import NumberColumn
from expecta.tables.training_rows import TrainingRows

__all__ = ["missing", "population", "rebinned"]

BINS = 24  # of a histogram
WHOLE = 60  # numbers up to which each whole number has a bin
MOST_BARS = 12
TAIL = 0.005  # of the shares, at each end, that may be cut off
LONG = 2.0  # how many times longer the axis is with the tails for these to be cut off


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of a column's values, or of ranges of numbers, under a density and among rows."""

    labels: list[str]
    density: Floats
    rows: Floats | None
    edges: Floats | None = None
    cut: bool = False


def population(facts: Facts) -> Html:
    """Write the section."""
    circuit = facts.outputs[0].subject.circuit if facts.outputs else facts.model.refined_.circuit
    marginals = circuit.marginals(Evidence.unknown(facts.encoder.cardinalities_))
    said = "Bars and areas: the learned density, exact."
    if facts.seen is not None:
        said += " Orange: shares of the training rows in which the value is known."
    cards = []
    for name in facts.columns:
        variable = facts.encoder.variable(name)
        column = facts.encoder.columns_[variable]
        shares = shares_of(column, marginals[variable][0], facts.seen, variable)
        cards.append(_card(column, shares))
    return join([tag("p", said), tag("div", *cards, class_="grid")])


def shares_of(column: Column, density: Floats, seen: TrainingRows | None, variable: int) -> Shares:
    """Compare a column's distribution with the training rows'."""
    if isinstance(column, NumberColumn):
        return _of_numbers(column, density, seen, variable)
    rows: Floats | None = None
    if seen is not None:
        codes = seen.codes(column, variable)
        known = codes >= 0
        counts = np.bincount(codes[known], seen.weight[known], column.cardinality) * 1.0
        rows = counts / (counts.sum() or 1.0)
    return Shares([str(one) for one in column.labels], density, rows)


def _of_numbers(
    column: NumberColumn, density: Floats, seen: TrainingRows | None, variable: int
) -> Shares:
    edges, cut = _edges(column, density)
    rows = None
    if seen is not None:
        values = seen.columns[variable]
        known = ~np.isnan(values)
        rows = np.histogram(values[known], edges, weights=seen.weight[known])[0]
        rows = rows / (seen.weight[known].sum() or 1.0)
    half = 0.5 * column.step
    labels = [
        when(column, low + half, high - half)
        for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]
    return Shares(labels, rebinned(column, density, edges), rows, edges, cut)


def _edges(column: NumberColumn, density: Floats) -> tuple[Floats, bool]:
    """Return edges of equal ranges, whole numbers in the middle; and whether tails are cut."""
    half = 0.5 * column.step
    low, high = float(column.lows.min()), float(column.highs.max())
    below = np.cumsum(density)
    inner = np.flatnonzero((below > TAIL) & (below - density < 1 - TAIL))
    near, far = float(column.lows[inner[0]]), float(column.highs[inner[-1]])
    cut = far > near and high - low > LONG * (far - near)
    if cut:
        low, high = near, far
    if column.step:
        numbers = round((high - low) / column.step) + 1
        least = 1 if numbers <= WHOLE else -(-numbers // BINS)
        each = min(range(least, 2 * least + 1), key=lambda one: (-numbers % one, one))
        count = -(-numbers // each)
        return low - half + each * column.step * np.arange(count + 1), cut
    if not high > low:
        margin = 0.5 * (abs(low) or 1.0)
        low, high = low - margin, high + margin
    return np.linspace(low, high, BINS + 1), cut


def rebinned(column: NumberColumn, density: Floats, edges: Floats) -> Floats:
    """Return the share of each range: the numbers of a bin lie evenly between its ends.

    Whole numbers (or days) of a bin are evenly likely where the edges lie between them.
    """
    half = 0.5 * column.step
    low, high = column.lows - half, column.highs + half
    width = np.where(high > low, high - low, 1.0)
    part = np.clip((edges[:, None] - low) / width, 0.0, 1.0)
    part = np.where(high > low, part, edges[:, None] > low)
    part[-1] = np.where((high == low) & (low == edges[-1]), 1.0, part[-1])  # the last is closed
    found: Floats = np.diff(part @ density)
    return found


def missing(seen: TrainingRows, variable: int) -> float:
    """Return the share of training rows in which a column is unknown."""
    values = seen.columns[variable]
    gone = np.isnan(values) if values.dtype == np.float64 else values < 0
    return float(seen.weight[gone].sum() / seen.weight.sum())


def _card(column: Column, shares: Shares) -> Html:
    head = ["value", "density"] + ["training rows"] * (shares.rows is not None)
    shown = np.arange(len(shares.labels))
    if shares.edges is None:
        shown = np.sort(np.argsort(-shares.density, kind="stable")[:MOST_BARS])
    label = f"Distribution of {column.name}"
    rows = shares.rows
    lines = [
        [
            shares.labels[i],
            *(percent(float(one[i])) for one in (shares.density, rows) if one is not None),
        ]
        for i in shown.tolist()
    ]
    notes = []
    if len(lines) < len(shares.labels):
        notes.append(f"The {len(lines)} most frequent of {len(shares.labels)} values.")
    if shares.cut:
        notes.append("The tails, less than 0.5% at each end, are cut off.")
    return figure_of(
        column.name,
        _picture(column, shares, shown.tolist(), label),
        *(tag("p", note, class_="note") for note in notes),
        details(join(["Numbers of ", column.name]), table(head, lines, label)),
    )


def _picture(column: Column, shares: Shares, shown: list[int], label: str) -> Html:
    rows, edges = shares.rows, shares.edges
    if edges is not None and isinstance(column, NumberColumn):
        ticks = named(column, float(edges[0]), float(edges[-1]))
        return histogram(edges, shares.density, label, beside=rows, named=ticks)
    found = []
    for i in shown:
        share = float(shares.density[i])
        mark = None if rows is None else float(rows[i])
        found.append(Bar(shares.labels[i], share, percent(share), mark))
    return bars(found, label)
