"""Write a report on a model, as one file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from expecta.common.atomic_files import replace_file
from expecta.report.class_metrics import class_metrics
from expecta.report.density_cards import density_cards
from expecta.report.facts import MAX_COLUMNS, PAIRED_COLUMNS, gather
from expecta.report.model_card import (
    calibration_cards,
    columns_table,
    model_facts,
    quality_sentences,
    tiles,
)
from expecta.report.output_cards import OutputCards
from expecta.report.page import check_libraries, render_page
from expecta.report.population import population_cards


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    sensitive: str | Sequence[str] | None = None,
) -> None:
    """Write what a model has learned and what it predicts into one page of HTML. Atomic.

    The page needs no network, prints, has a dark theme, and can be used by keyboard. It holds
    shares and averages of the training rows, but no row of them.

    Numbers are those of the model's own answers (``ask``, ``split``, ``next_question``,
    ``dependence``, ``disparities``, ``check_density``), as exact as these say; the page says it
    too. Figures are those of the answers' ``plot()``, of the twelve most telling columns, and of
    the first three classes where there are more than two.

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

    Raises
    ------
    ImportError
        If Jinja2 or matplotlib is not installed (``expecta[report]``).

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
    ones; that of ``check_density``; and a fraction of a second for each figure.
    """
    check_libraries()
    names = [sensitive] if isinstance(sensitive, str) else list(sensitive or ())
    facts = gather(model, names)
    heading = f"Report: predictions of {facts.target}" if facts.target else "Report on a model"
    text = render_page(
        title=heading if title is None else title,
        facts=facts,
        tiles=tiles(facts),
        model_facts=model_facts(facts),
        columns=columns_table(facts),
        quality=quality_sentences(facts),
        calibration=calibration_cards(facts),
        class_metrics=class_metrics(facts),
        density=density_cards(facts),
        population=population_cards(facts),
        outputs=[OutputCards(output) for output in facts.outputs],
        max_columns=MAX_COLUMNS,
        paired_columns=PAIRED_COLUMNS,
    )
    replace_file(os.fspath(path), text.encode("utf-8"))
