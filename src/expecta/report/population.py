"""Compare each column's distribution under the density with that of the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from expecta.ask.displays import Display
from expecta.ask.displays.display import (
    ACCENT,
    BLUE,
    label_rows,
    number_axis,
    percent_axis,
    rows_size,
    shorten,
)
from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Floats
from expecta.common.text import figure, percent
from expecta.report.blocks import FigureCard, HtmlTable, columns_to_rows
from expecta.report.facts import ReportFacts
from expecta.report.svg_figure import svg_figure
from expecta.tables.column import Column
from expecta.tables.column_notes import is_code
from expecta.tables.number_column import NumberColumn
from expecta.tables.training_rows import TrainingRows

BINS = 24  # of a histogram
MAX_SINGLE_NUMBERS = 60  # up to which each whole number has a bin
MAX_BARS = 12
MAX_TAIL = 0.005  # of the shares, at each end, that may be cut off
LONG_TAILS = 2.0  # how many times longer the axis is with the tails for these to be cut off
SECOND, MINUTE, FOUR_DAYS = 1_000_000, 60_000_000, 4 * 86_400_000_000  # in microseconds


@dataclass(frozen=True, eq=False)
class ColumnShares:
    """Shares of a column's values, or of ranges of numbers, under a density and among rows.

    ``edges`` are those of the ranges, ``ticks`` those of an axis of times, and ``cut`` says
    whether the tails are left out.
    """

    name: str
    labels: list[str]
    density: Floats
    rows: Floats | None
    edges: Floats | None = None
    cut: bool = False
    ticks: tuple[list[float], list[str]] | None = None

    def shown(self) -> list[int]:
        """Return the indices of the values that are shown: all ranges, or the commonest values."""
        indices = np.argsort(-self.density, kind="stable")
        return sorted((indices if self.edges is not None else indices[:MAX_BARS]).tolist())


class ColumnSharesDisplay(Display[ColumnShares]):
    """The distribution of a column: steps for numbers, bars for categories."""

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return rows_size(len(self.answer.shown())) if self.answer.edges is None else (6.4, 2.4)

    def draw(self, ax: Any) -> None:
        """Draw the density, and the training rows over it."""
        shares, shown = self.answer, self.answer.shown()
        rows = shares.rows
        if shares.edges is None:
            y = np.arange(len(shown))
            ax.barh(y, shares.density[shown], color=BLUE, height=0.62, alpha=0.5, label="density")
            if rows is not None:
                ax.plot(rows[shown], y, "|", color=ACCENT, ms=11, mew=2, label="training rows")
            label_rows(ax, [shares.labels[i] for i in shown])
            percent_axis(ax.xaxis)
        else:
            ax.stairs(shares.density, shares.edges, fill=True, color=BLUE, alpha=0.25, lw=0)
            ax.stairs(shares.density, shares.edges, color=BLUE, lw=1.2, label="density")
            if rows is not None:
                ax.stairs(rows, shares.edges, color=ACCENT, lw=1.2, label="training rows")
            ax.set_ylim(bottom=0)
            percent_axis(ax.yaxis)
            if shares.ticks is None:
                number_axis(ax.xaxis, shares.name, shares.edges)
            else:
                ax.set_xticks(*shares.ticks)
        self.title(ax, f"Distribution of {shares.name}")
        ax.set_xlabel(shorten(shares.name) if shares.edges is not None else "share")
        self.legend(ax)


def population_cards(facts: ReportFacts) -> list[FigureCard]:
    """Return a figure for each of the most telling columns."""
    circuit = facts.outputs[0].subject.circuit if facts.outputs else facts.model.refined_.circuit
    marginals = circuit.marginals(Evidence.unknown(facts.encoder.cardinalities_))
    variables = [facts.encoder.variable(name) for name in facts.columns]
    return [
        _card(shares_of(facts.encoder.columns_[v], marginals[v][0], facts.seen, v))
        for v in variables
    ]


def _card(shares: ColumnShares) -> FigureCard:
    label, shown = f"Distribution of {shares.name}", shares.shown()
    columns = {"value": [shares.labels[i] for i in shown]}
    columns["density"] = [percent(share) for share in shares.density[shown].tolist()]
    if shares.rows is not None:
        columns["training rows"] = [percent(share) for share in shares.rows[shown].tolist()]
    notes = []
    if len(shown) < len(shares.labels):
        notes.append(f"The {len(shown)} most frequent of {len(shares.labels)} values.")
    if shares.cut:
        notes.append("The tails, less than 0.5% at each end, are cut off.")
    table = HtmlTable(label, list(columns), columns_to_rows(*columns.values()))
    return FigureCard(shares.name, svg_figure(ColumnSharesDisplay(shares), label), table, notes)


def shares_of(
    column: Column, density: Floats, seen: TrainingRows | None, variable: int
) -> ColumnShares:
    """Compare a column's distribution with the training rows'."""
    if isinstance(column, NumberColumn):
        return _shares_of_numbers(column, density, seen, variable)
    rows: Floats | None = None
    if seen is not None:
        codes = seen.codes(column, variable)
        known = codes >= 0
        counts = np.bincount(codes[known], seen.weight[known], column.cardinality) * 1.0
        rows = counts / (counts.sum() or 1.0)
    return ColumnShares(column.name, [str(label) for label in column.labels], density, rows)


def _shares_of_numbers(
    column: NumberColumn, density: Floats, seen: TrainingRows | None, variable: int
) -> ColumnShares:
    edges, cut = _edges(column, density)
    rows = None
    if seen is not None:
        values = seen.columns[variable]
        known = ~np.isnan(values)
        rows = np.histogram(values[known], edges, weights=seen.weight[known])[0]
        rows = rows / (seen.weight[known].sum() or 1.0)
    half = 0.5 * column.step
    labels = [
        range_text(column, low + half, high - half)
        for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]
    ticks = _time_ticks(column, float(edges[0]), float(edges[-1]))
    return ColumnShares(
        column.name, labels, rebinned(column, density, edges), rows, edges, cut, ticks
    )


def _edges(column: NumberColumn, density: Floats) -> tuple[Floats, bool]:
    """Return edges of equal ranges, whole numbers in the middle; and whether tails are cut."""
    half = 0.5 * column.step
    low, high = float(column.lows.min()), float(column.highs.max())
    below = np.cumsum(density)
    inner = np.flatnonzero((below > MAX_TAIL) & (below - density < 1 - MAX_TAIL))
    first, last = float(column.lows[inner[0]]), float(column.highs[inner[-1]])
    cut = last > first and high - low > LONG_TAILS * (last - first)
    if cut:
        low, high = first, last
    if column.step:
        numbers = round((high - low) / column.step) + 1
        narrowest = 1 if numbers <= MAX_SINGLE_NUMBERS else -(-numbers // BINS)
        widths = range(narrowest, 2 * narrowest + 1)
        width = min(widths, key=lambda width: (-numbers % width, width))  # best with none left over
        count = -(-numbers // width)
        return low - half + width * column.step * np.arange(count + 1), cut
    if not high > low:
        margin = 0.5 * (abs(low) or 1.0)
        low, high = low - margin, high + margin
    return np.linspace(low, high, BINS + 1), cut


def rebinned(column: NumberColumn, density: Floats, edges: Floats) -> Floats:
    """Return the share of each range; see `NumberColumn.below` for how the numbers of a bin lie."""
    below = [column.below(edge, inclusive=i == len(edges) - 1) for i, edge in enumerate(edges)]
    return np.diff(np.array(below) @ density)


def range_text(column: NumberColumn, low: float, high: float) -> str:
    """Write a range of numbers or times; a single one where they are the same."""
    write = (lambda value: column._text(value, 4)) if _is_time(column) else figure
    if not _is_time(column) and is_code(column.name, low, high):
        write = "{:.0f}".format
    first, last = write(low), write(high)
    return first if first == last else f"{first} to {last}"


def _time_ticks(
    column: NumberColumn, low: float, high: float
) -> tuple[list[float], list[str]] | None:
    """Return ticks of an axis of times; None for numbers, which need no names."""
    if not _is_time(column):
        return None
    at = np.linspace(low, high, 5)[1::2] if high > low else np.array([low])
    unit = SECOND if column.kind == "duration" and high - low > MINUTE else 1
    texts = [column._text(unit * round(time / unit), 4) for time in at.tolist()]
    if column.kind != "duration" and high - low > FOUR_DAYS:
        texts = [text[:10] for text in texts]  # the day
    return at.tolist(), texts


def _is_time(column: NumberColumn) -> bool:
    return column.kind in ("date", "datetime", "duration")
