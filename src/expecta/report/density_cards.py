"""Describe how far the density agrees with the training rows, and which answers to trust."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from expecta.ask.checks.density_check import DensityCheck
from expecta.ask.checks.group_check import GroupCheck
from expecta.ask.checks.pair_check import PairCheck
from expecta.ask.displays import GroupCheckDisplay, PairCheckDisplay
from expecta.common.text import figure
from expecta.report.blocks import FigureCard, HtmlTable
from expecta.report.facts import ReportFacts
from expecta.report.svg_figure import svg_figure

MAX_ROWS = 10  # of the worst pairs and means
SQUARE_INCHES = 4.4  # height of a figure with equal axes and labels


class DensityCards(NamedTuple):
    """Sentences on the density, and figures of pairs and of groups with their worst."""

    sentences: list[str]
    cards: list[FigureCard]


def density_cards(facts: ReportFacts) -> DensityCards | None:
    """Check the density against the training rows; None where these were not kept."""
    if facts.seen is None or not hasattr(facts.model, "check_density"):
        return None
    check: DensityCheck = facts.model.check_density()
    cards = [_pairs_card(check.pairs)] if check.pairs.count else []
    if len(check.groups.size):
        cards.append(_groups_card(check.groups))
    likelihood = f"Log-likelihood: {check.likelihood.sentence()}."
    return DensityCards([*check.verdict, likelihood, *check.remarks], cards)


def _pairs_card(pairs: PairCheck) -> FigureCard:
    label = "Dependence of pairs of columns, in the training rows and under the density"
    numbers = np.stack([pairs.rows, pairs.density, pairs.error], axis=1).tolist()
    rows = [
        [
            f"{pairs.columns[pairs.first[i]]} and {pairs.columns[pairs.second[i]]}",
            *(f"{round(x, 3) + 0.0:.3f}" for x in numbers[i]),
            figure(round(float(pairs.apart[i]), 1)),
            "yes" if pairs.beyond[i] else "no",
        ]
        for i in range(min(pairs.count, MAX_ROWS))
    ]
    head = ["worst pairs", "rows", "density", "standard error", "errors apart", "beyond chance"]
    svg = svg_figure(PairCheckDisplay(pairs), label, height=SQUARE_INCHES)
    note = (
        "From 0, unrelated, to 1: the correlation of normal scores of numbers, the correlation "
        "ratio of a number and a category, Cramér's V of categories. Orange is negative."
    )
    return FigureCard("Pairs of columns", svg, HtmlTable(label, head, rows), [note])


def _groups_card(groups: GroupCheck) -> FigureCard:
    label = "Means and shares over groups, in the training rows against the density"
    rows = []
    for i in range(min(len(groups.size), MAX_ROWS)):
        mean = groups.means[groups.mean[i]]
        rows.append(
            [
                groups.name(i),
                mean.text(float(groups.rows[i])),
                mean.text(float(groups.density[i])),
                mean.text(float(groups.error[i]), spread=True),
                figure(round(float(groups.apart[i]), 1)),
                "yes" if groups.beyond[i] else "no",
            ]
        )
    head = ["worst groups", "rows", "density", "standard error", "errors apart", "beyond chance"]
    svg = svg_figure(GroupCheckDisplay(groups), label, height=SQUARE_INCHES)
    note = (
        "Each point is the mean of a column, or the share of a value, over a group by one column "
        "or two; in standard deviations of the column. Within the band a difference is small."
    )
    return FigureCard("Means over groups", svg, HtmlTable(label, head, rows), [note])
