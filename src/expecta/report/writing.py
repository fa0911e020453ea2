"""A report on a model, as one file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from expecta.common.atomic_files import replace_file
from expecta.report.audit import audit
from expecta.report.card import assumptions, card, columns_table, quality, tiles
from expecta.report.facts import MOST_COLUMNS, Facts, Output, gather
from expecta.report.glossary import glossary
from expecta.report.html import Html, join, tag
from expecta.report.outputs import along, by_column, by_pair, overall, telling
from expecta.report.page import Section, page
from expecta.report.population import population

__all__ = ["write_report"]


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    sensitive: str | Sequence[str] | None = None,
) -> None:
    """Write what a model has learned and what it says into one page of HTML. Atomic.

    The page needs no network, prints, has a dark face, and can be used by keyboard. It holds
    shares and averages of the training rows, but no row of them.

    Numbers are those of the model's own answers (``ask``, ``split``, ``next_question``,
    ``dependence``, ``disparities``), as exact as these say; the page says it too. Figures are
    drawn of the twelve most telling columns, and of the first three classes where there are
    more than two.

    Parameters
    ----------
    model
        A `CircuitRegressor`, `CircuitClassifier` or `ExpectedPredictor` that has learned.
    path
        The file.
    title
        Its title; by default after the target.
    sensitive
        Columns whose disclosure is looked into: where it moves the model's output most.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from expecta import ChowLiu, CircuitRegressor
    >>> table = {"sky": ["sun", "rain"] * 30, "wind": [3, 5, 8, 4, 6] * 12}
    >>> degrees = [28.0 if sky == "sun" else 14.0 for sky in table["sky"]]
    >>> model = CircuitRegressor(density=ChowLiu(), random_state=0).fit(table, degrees)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "weather.html"
    ...     write_report(model, path, title="Weather")
    ...     "<title>Weather</title>" in path.read_text("utf-8")
    True

    Notes
    -----
    Cost: a batch of expectations for each column, and for each pair of the six most telling
    ones; a second for a few columns.
    """
    named = [sensitive] if isinstance(sensitive, str) else list(sensitive or ())
    facts = gather(model, named)
    heading = f"What a model says of {facts.target}" if facts.target else "What a model says"
    text = page(heading if title is None else title, tiles(facts), _sections(facts))
    replace_file(os.fspath(path), text.encode("utf-8"))


def _sections(facts: Facts) -> list[Section]:
    found = [
        Section("model", "The model", join([card(facts), *_columns(facts)])),
        Section("quality", "How well it holds", join([quality(facts), assumptions(facts)])),
        Section("population", "The population", join([*_limited(facts), population(facts)])),
    ]
    if not facts.outputs:
        only = "The model knows a single class, whose probability is 1: there is nothing to ask."
        found.append(Section("output-1", "What it says", tag("p", only)))
    for place, output in enumerate(facts.outputs, start=1):
        title = join(["What it says: ", output.name])
        note = _others(facts) if place == 1 else []
        found.append(Section(f"output-{place}", title, join([*note, _said(facts, output)])))
    return [*found, Section("words", "What the words mean", glossary())]


def _columns(facts: Facts) -> list[Html]:
    notes = [tag("li", note) for note in facts.encoder.notes_]
    after = [tag("ul", *notes, class_="note")] if notes else []
    return [tag("h3", "Columns"), columns_table(facts), *after]


def _limited(facts: Facts) -> list[Html]:
    total = len(facts.encoder.columns_)
    if total <= MOST_COLUMNS:
        return []
    return [tag("p", f"Figures are drawn of the {MOST_COLUMNS} most telling of {total} columns.")]


def _others(facts: Facts) -> list[Html]:
    if not facts.left_out:
        return []
    shown, total = len(facts.outputs), len(facts.outputs) + facts.left_out
    what = "classes" if facts.classes is not None else "outputs"
    return [tag("p", f"Reported on are the first {shown} of {total} {what}.")]


def _said(facts: Facts, output: Output) -> Html:
    mean = "Dots: mean of the model's output; bars: one standard deviation to either side."
    if facts.seen is not None:
        mean += " Orange lines: averages of the training rows."
    both = (
        "Blue: given the column, with one standard deviation of the output to either side. "
        "Orange, dashed or as diamonds: the column alone changed for everyone."
    )
    parts = [
        ("Overall", overall(output)),
        ("Which column tells most", telling(output, output.telling)),
        ("By one column", join([tag("p", mean), by_column(output)])),
        ("By two columns", by_pair(output)),
        ("Along each column", join([tag("p", both), along(facts, output)])),
    ]
    if output.disparities:
        parts.append(("Sensitive columns", audit(output)))
    return join(join([tag("h3", title), inside]) for title, inside in parts)
