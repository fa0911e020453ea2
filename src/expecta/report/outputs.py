"""What a model says: overall, by column, by two columns, along columns."""

from __future__ import annotations

import numpy as np

from expecta.ask.dependence import Dependence
from expecta.ask.group_answers import Group
from expecta.ask.next_question import NextQuestion
from expecta.ask.split import Split
from expecta.common.text import figure, percent
from expecta.report.facts import PAIRED, Facts, Output
from expecta.report.figures import Bar, Dot, bars, curves, dots, histogram
from expecta.report.html import Html, details, figure_of, join, paragraphs, table, tag
from expecta.report.times import named
from expecta.tables.number_column import NumberColumn

__all__ = ["along", "by_column", "by_pair", "overall", "telling", "written"]

POINTS = 61  # of a distribution
MOST = 16  # groups in a figure
SEEN = 1e-4  # of the size of a number: an error that is written


def written(output: Output, value: float) -> str:
    """Write a value of the model's output."""
    return percent(value) if output.is_share else figure(value)


def _error(output: Output, error: float) -> str:
    """Write an error that shows among the digits of a mean."""
    group = output.overall
    size = max(abs(group.mean), group.std)
    return f" ± {written(output, error)}" if error > SEEN * size else ""


def overall(output: Output) -> Html:
    """Write what the model says of everyone."""
    group = output.overall
    mean = written(output, group.mean)
    said = [
        join(
            [
                "Over the whole population the model's output averages ",
                tag("strong", mean),
                f", with a standard deviation of {written(output, group.std)}: so much do people "
                "differ in what the model says of them, which is not how far it may be off.",
            ]
        )
    ]
    if group.rows_mean is not None:
        rows = group.rows_mean
        said.append(
            join(
                [
                    f"The {group.rows:,} training rows average {written(output, rows.mean)} "
                    f"(95% interval {written(output, rows.low)} to {written(output, rows.high)}).",
                ]
            )
        )
    return join([paragraphs(said), _distribution(output, group), *_remarks(group.remarks)])


def _distribution(output: Output, group: Group) -> Html:
    law = group.law()
    lines = [
        ("mean", written(output, group.mean) + _error(output, group.error)),
        ("standard deviation", written(output, group.std)),
        *(
            (f"{level:.0%} quantile", written(output, one))
            for level, one in group.quantiles.items()
        ),
    ]
    numbers = table(["of the model's output", "value"], lines, "Summary of the model's output")
    if law is None:
        return numbers
    edges, below = law.curve(POINTS)
    mass = np.diff(below)
    if output.is_share:  # nothing lies beyond 0 and 1
        inside = (edges[1:] > 0) & (edges[:-1] < 1)
        mass, edges = mass[inside], np.append(edges[:-1][inside], edges[1:][inside][-1])
        edges = np.clip(edges, 0.0, 1.0)
    levels = list(group.quantiles)
    ends = (group.quantiles[levels[0]], group.quantiles[levels[-1]])
    label = (
        f"Distribution of the model's output {output.name}: mean {written(output, group.mean)}, "
        f"nine tenths between {written(output, ends[0])} and {written(output, ends[1])}"
    )
    picture = histogram(edges, mass, label, middle=group.mean, ends=ends, share=output.is_share)
    note = "Orange: mean. Shaded: from the 5% to the 95% quantile."
    card = figure_of(
        join(["Distribution of the model's output: ", output.name]),
        picture,
        tag("p", note, class_="note"),
    )
    return tag("div", card, tag("div", numbers, class_="card"), class_="grid two")


def telling(output: Output, found: NextQuestion) -> Html:
    """Write which column tells most."""
    if not found.columns or not found.std > 0:
        return tag("p", "The model's output is the same whatever the columns are.")
    most = MOST
    rows = [
        Bar(name, float(share), percent(float(share)))
        for name, share in zip(found.columns[:most], found.share[:most].tolist(), strict=True)
    ]
    said = join(
        [
            "When nothing is known, ",
            tag("strong", found.columns[0]),
            f" tells most: knowing it takes away {percent(float(found.share[0]))} of the variance "
            f"of the model's output, on average, and leaves a standard deviation of "
            f"{written(output, float(found.remaining[0]))} of {written(output, found.std)}.",
        ]
    )
    label = f"Share of the variance of {output.name} that knowing each column takes away"
    lines = [
        [name, percent(share), written(output, left)]
        for name, share, left in zip(
            found.columns, found.share.tolist(), found.remaining.tolist(), strict=True
        )
    ]
    head = ["column", "variance taken away", "standard deviation left"]
    note = "Shares need not add up to 100%: columns tell the same things, or only together."
    card = figure_of(
        "Share of the variance that each column takes away",
        bars(rows, label, whole=1.0),
        tag("p", note, class_="note"),
    )
    numbers = tag("div", table(head, lines, label), class_="card")
    return join([tag("p", said), tag("div", card, numbers, class_="grid two")])


def by_column(output: Output) -> Html:
    """Write the groups of each column."""
    if not output.splits:
        return tag("p", "No column varies.")
    cards = (
        _split(output, one, details(join(["Numbers by ", *one.columns]), _split_table(output, one)))
        for one in output.splits
    )
    return tag("div", *cards, class_="grid")


def by_pair(output: Output) -> Html:
    """Write the two columns whose groups differ most."""
    found = output.pair
    if found is None:
        return tag("p", "There are no two columns that vary.")
    spread = np.sqrt(found.share @ (found.mean - found.share @ found.mean) ** 2)
    few = len(output.telling.columns) > PAIRED
    said = join(
        [
            f"Of all pairs of the {PAIRED} most telling columns, " if few else "Of all pairs, ",
            tag("strong", found.columns[0]),
            " and ",
            tag("strong", found.columns[1]),
            " divide the population most: the means of their groups have a standard deviation of "
            f"{written(output, float(spread))}.",
        ]
    )
    beside = tag("div", _split_table(output, found), class_="card")
    return join([tag("p", said), tag("div", _split(output, found), beside, class_="grid two")])


def _split(output: Output, found: Split, *after: Html) -> Html:
    shown = np.sort(np.argsort(-found.share, kind="stable")[:MOST]).tolist()
    names = _groups(found)
    rare = np.zeros(len(found), bool) if found.rare is None else found.rare
    rows = [
        Dot(
            names[i],
            float(found.mean[i]),
            float(found.std[i]),
            mark=None if found.rows_mean is None else float(found.rows_mean[i]),
            hollow=bool(rare[i]),
        )
        for i in shown
    ]
    columns = ", ".join(found.columns)
    label = f"Mean and spread of the model's output {output.name} by {columns}"
    notes = []
    if len(shown) < len(found):
        notes.append(f"The {len(shown)} largest of {len(found)} groups.")
    if np.any(rare[shown]):
        notes.append("Hollow: fewer than five such training rows are expected.")
    return figure_of(
        join(["By ", columns]),
        dots(rows, label, share=output.is_share),
        *(tag("p", note, class_="note") for note in [*notes, *found.remarks]),
        *after,
    )


def _groups(found: Split) -> list[str]:
    return [", ".join(parts) for parts in zip(*found.labels, strict=True)]


def _split_table(output: Output, found: Split) -> Html:
    head = ["group", "share", "mean", "std"]
    lines = [
        [name, percent(share), written(output, mean) + _error(output, error), written(output, std)]
        for name, share, mean, error, std in zip(
            _groups(found),
            found.share.tolist(),
            found.mean.tolist(),
            found.error.tolist(),
            found.std.tolist(),
            strict=True,
        )
    ]
    if found.rows is not None and found.rows_mean is not None:
        head += ["training rows", "their average"]
        for line, n, average in zip(
            lines, found.rows.tolist(), found.rows_mean.tolist(), strict=True
        ):
            line += [f"{n:,}", written(output, average)]
    return table(head, lines, f"Model's output {output.name} by {', '.join(found.columns)}")


def along(facts: Facts, output: Output) -> Html:
    """Write how the output goes with each column."""
    if not output.dependence:
        return tag("p", "No column varies.")
    cards = (_dependence(facts, output, one) for one in output.dependence)
    return tag("div", *cards, class_="grid")


def _dependence(facts: Facts, output: Output, found: Dependence) -> Html:
    label = (
        f"Model's output {output.name} by {found.column}: given the column with what goes with it, "
        f"and with the column alone changed"
    )
    if found.at is not None:
        column = facts.encoder.column(found.column)
        assert isinstance(column, NumberColumn)
        picture = curves(
            found.at,
            found.mean,
            found.std,
            found.partial,
            label,
            share=output.is_share,
            named=named(column, float(found.at[0]), float(found.at[-1])),
        )
    else:
        shown = np.sort(np.argsort(-found.share, kind="stable")[:MOST]).tolist()
        rows = [
            Dot(
                found.labels[i],
                float(found.mean[i]),
                float(found.std[i]),
                other=float(found.partial[i]),
            )
            for i in shown
        ]
        picture = dots(rows, label, share=output.is_share)
    head = ["value", "share", "given it", "alone changed"]
    lines = [
        [name, percent(share), written(output, mean), written(output, partial)]
        for name, share, mean, partial in zip(
            found.labels,
            found.share.tolist(),
            found.mean.tolist(),
            found.partial.tolist(),
            strict=True,
        )
    ]
    return figure_of(
        join(["Along ", found.column]),
        picture,
        *(tag("p", note, class_="note") for note in [found.difference, *found.remarks]),
        details(join(["Numbers along ", found.column]), table(head, lines, label)),
    )


def _remarks(remarks: tuple[str, ...]) -> list[Html]:
    return [tag("p", one, class_="note") for one in remarks]
