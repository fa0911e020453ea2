"""Draw and tabulate what a model predicts: overall, by columns, along columns, for groups."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from expecta.ask.dependence import Dependence
from expecta.ask.disparities import Disparities
from expecta.ask.displays import (
    DependenceDisplay,
    DisparitiesDisplay,
    GroupDisplay,
    NextQuestionDisplay,
    SplitDisplay,
)
from expecta.ask.split import Split
from expecta.common.text import percent
from expecta.report.blocks import FigureCard, HtmlTable, columns_to_rows
from expecta.report.facts import OutputFacts, variance_between
from expecta.report.svg_figure import svg_figure

CURVE_INCHES = 2.7  # height of a figure of curves


class OutputCards:
    """The figures of one number that a model returns; the template has the words around them."""

    def __init__(self, facts: OutputFacts) -> None:
        self.facts = facts
        self.name = facts.name

    @cached_property
    def overall(self) -> FigureCard:
        """The distribution of the output over everyone."""
        facts, group = self.facts, self.facts.overall
        quantiles = group.quantiles
        names = ["mean", "standard deviation", *(f"{level:.0%} quantile" for level in quantiles)]
        values = [facts.mean_text(group.mean, group.standard_error)]
        values += map(facts.text, (group.std, *quantiles.values()))
        head = ["of the model's output", "value"]
        table = HtmlTable("Summary of the model's output", head, columns_to_rows(names, values))
        levels = list(quantiles)
        label = (
            f"Distribution of the model's output {self.name}: mean {facts.text(group.mean)}, "
            f"nine tenths between {facts.text(quantiles[levels[0]])} and "
            f"{facts.text(quantiles[levels[-1]])}"
        )
        title = f"Distribution of the model's output: {self.name}"
        return FigureCard(title, svg_figure(GroupDisplay(group), label, height=CURVE_INCHES), table)

    @cached_property
    def telling(self) -> FigureCard | None:
        """How much each column tells; None where nothing varies."""
        answer = self.facts.telling
        if not answer.columns or not answer.std > 0:
            return None
        label = f"Share of the variance of {self.name} that knowing each column removes"
        rows = columns_to_rows(
            answer.columns,
            map(percent, answer.share.tolist()),
            map(self.facts.text, answer.remaining.tolist()),
        )
        table = HtmlTable(label, ["column", "variance removed", "standard deviation left"], rows)
        note = "Shares need not add up to 100%: columns can carry the same information."
        title = "Share of the variance that each column removes"
        return FigureCard(title, svg_figure(NextQuestionDisplay(answer), label), table, [note])

    @cached_property
    def by_column(self) -> list[FigureCard]:
        """The groups of each column."""
        return [self._split(split) for split in self.facts.splits]

    @cached_property
    def by_pair(self) -> FigureCard | None:
        """The groups of the two columns that divide the population most."""
        return None if self.facts.pair is None else self._split(self.facts.pair)

    @property
    def pair_spread(self) -> str:
        """The standard deviation of the means of these groups."""
        assert self.facts.pair is not None
        return self.facts.text(float(np.sqrt(variance_between(self.facts.pair))))

    @cached_property
    def along(self) -> list[FigureCard]:
        """How the output goes with each column."""
        return [self._dependence(answer) for answer in self.facts.dependence]

    @cached_property
    def disparities(self) -> list[tuple[Disparities, FigureCard | None]]:
        """What disclosing each sensitive column does, with a figure where groups are compared."""
        return [
            (answer, self._disparities(answer) if len(answer.gap) else None)
            for answer in self.facts.disparities
        ]

    def _split(self, split: Split) -> FigureCard:
        facts, display = self.facts, SplitDisplay(split)
        shown, columns = display.shown(), ", ".join(split.columns)
        means = zip(split.mean.tolist(), split.standard_error.tolist(), strict=True)
        cells = {
            "group": [", ".join(parts) for parts in zip(*split.labels, strict=True)],
            "share": [percent(share) for share in split.share.tolist()],
            "mean ± standard error": [facts.mean_text(mean, error) for mean, error in means],
            "std": [facts.text(std) for std in split.std.tolist()],
        }
        if split.rows is not None and split.rows_mean is not None:
            cells["by the density"] = [facts.text(mean) for mean in split.density_mean.tolist()]
            cells["by training rows"] = [facts.text(mean) for mean in split.rows_output.tolist()]
            cells["training rows"] = [f"{n:,}" for n in split.rows.tolist()]
            cells["average of their target"] = [facts.text(m) for m in split.rows_mean.tolist()]
        notes = []
        if len(shown) < len(split):
            notes.append(f"The {len(shown)} largest of {len(split)} groups.")
        if split.rare is not None and np.any(split.rare[shown]):
            notes.append("Hollow: fewer than five such training rows are expected.")
        label = f"Model's output {self.name} by {columns}"
        table = HtmlTable(label, list(cells), columns_to_rows(*cells.values()))
        svg = svg_figure(display, f"Mean and spread of the model's output {self.name} by {columns}")
        return FigureCard(f"By {columns}", svg, table, [*notes, *split.remarks])

    def _dependence(self, answer: Dependence) -> FigureCard:
        label = (
            f"Model's output {self.name} by {answer.column}: given the column with what goes with "
            f"it, and with the column alone changed"
        )
        rows = columns_to_rows(
            answer.labels,
            map(percent, answer.share.tolist()),
            map(self.facts.mean_text, answer.mean.tolist(), answer.standard_error.tolist()),
            map(self.facts.text, answer.partial.tolist()),
        )
        table = HtmlTable(label, ["value", "share", "given it", "alone changed"], rows)
        notes = [answer.difference, *answer.remarks]
        height = None if answer.at is None else CURVE_INCHES
        svg = svg_figure(DependenceDisplay(answer), label, height=height)
        return FigureCard(f"Along {answer.column}", svg, table, notes)

    def _disparities(self, answer: Disparities) -> FigureCard:
        column = answer.parity[0].column
        label = f"Most evident changes of the expected {self.name} when {column} is disclosed"
        seen = ["" if np.isnan(n) else f"{n:,.0f}" for n in answer.rows]
        counted = [seen] if any(seen) else []  # where training rows are known
        rows = columns_to_rows(
            answer.disclosed,
            answer.group,
            map(self.facts.text, answer.without.tolist()),
            map(self.facts.text, answer.value.tolist()),
            map(self.facts.change_text, answer.gap.tolist()),
            map(self.facts.text, answer.standard_error.tolist()),
            ["yes" if one else "no" for one in answer.beyond_chance],
            map(percent, answer.share.tolist()),
            *counted,
        )
        head = ["disclosed", "group", "without", "with", "change", "standard error"]
        head += ["beyond chance", "share", *(["training rows"] * len(counted))]
        table = HtmlTable(label, head, rows, text_columns=2)
        return FigureCard(label, svg_figure(DisparitiesDisplay(answer), label), table)
