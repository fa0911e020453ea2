"""Describe the model: what was learned from what, and how well it holds."""

from __future__ import annotations

import platform
from datetime import datetime
from typing import Any

import numpy as np
from scipy.special import ndtr

from expecta.ask.displays import CalibrationDisplay
from expecta.ask.displays.calibration_display import (
    CalibrationCurve,
    interval_calibration,
    probability_calibration,
)
from expecta.common.text import figure, percent
from expecta.queries.one_vs_rest import loss_of_shares
from expecta.report.blocks import FigureCard, HtmlTable, columns_to_rows
from expecta.report.facts import ReportFacts
from expecta.report.population import range_text
from expecta.report.svg_figure import svg_figure
from expecta.tables.column import Column
from expecta.tables.number_column import NumberColumn

MAX_VALUES = 6  # of a column, that are listed
MAX_CLASSES = 20
MAX_CALIBRATION_ROWS = 2000
COVERAGES = np.arange(1, 10) / 10
BINS = 10
SQUARE_INCHES = 3.7  # height of a figure with equal axes and a legend


def tiles(facts: ReportFacts) -> list[tuple[str, str]]:
    """Return the numbers at the top, with their names."""
    pairs = [("predicts", facts.target)] if facts.target else []
    if facts.classes is not None:
        pairs.append(("classes", f"{len(facts.classes):,}"))
    if facts.training is not None:
        pairs.append(("training rows", f"{len(facts.training):,}"))
    pairs.append(("columns", f"{len(facts.encoder.columns_):,}"))
    noise = getattr(facts.model, "noise_", None)
    if noise is not None:
        pairs.append(("held-out error", f"± {figure(noise)}"))
    explained = _explained_variance(facts)
    if explained is not None and explained > 0:
        pairs.append(("variance explained", f"{explained:.0%}"))
    return pairs


def model_facts(facts: ReportFacts) -> list[tuple[str, str]]:
    """Return what the model is and what it was learned from, as names and texts."""
    model = facts.model
    pairs = [("kind", _kind(facts))]
    if facts.classes is not None:
        pairs.append(("classes", _listed([str(label) for label in facts.classes], MAX_CLASSES)))
    density = getattr(model, "density_", None)
    learned = getattr(density, "learned_", None)
    if density is not None:
        how = f", {learned.how}" if learned is not None else ""
        pairs.append(("density", f"{type(density).__name__}{how}"))
    if learned is not None:
        rows = (
            f"{learned.held_out_rows:,} held-out rows"
            if learned.held_out_rows
            else "the training rows"
        )
        score = (
            f"{learned.score:.2f} nats a row on {rows}; "
            f"{learned.independent:.2f} if the columns were independent"
        )
        pairs.append(("log-likelihood of the density", score))
    if getattr(model, "n_splits_", None) is not None:
        pairs.append(("splits of the circuit", f"{model.n_splits_} (penalty {model.penalty_:g})"))
    written = f"{datetime.now().astimezone():%Y-%m-%d %H:%M}"
    return [*pairs, ("versions", _versions()), ("written", written)]


def _kind(facts: ReportFacts) -> str:
    name = type(facts.model).__name__
    inner = getattr(facts.model, "model", None)
    return name if inner is None else f"{name} of a {type(inner).__name__}"


def _versions() -> str:
    from sklearn import __version__ as sklearn

    from expecta import __version__

    return (
        f"Expecta {__version__}, NumPy {np.__version__}, scikit-learn {sklearn}, "
        f"Python {platform.python_version()}"
    )


def columns_table(facts: ReportFacts) -> HtmlTable:
    """Return a line for each column: what it is, what it has, and how often it is missing."""
    columns = facts.encoder.columns_
    cells = {
        "column": [column.name for column in columns],
        "kind": [column.kind for column in columns],
        "values or range": [_values(column.plain) for column in columns],
    }
    if facts.training is not None:
        shares = [facts.training.missing_share(variable) for variable in range(len(columns))]
        cells["missing"] = [percent(share) for share in shares]
    return HtmlTable("Columns of the model", list(cells), columns_to_rows(*cells.values()), 3)


def _values(column: Column) -> str:
    if isinstance(column, NumberColumn):
        bins = "1 value" if column.cardinality == 1 else f"{column.cardinality} bins"
        return f"{range_text(column, float(column.lows.min()), float(column.highs.max()))} ({bins})"
    return _listed([str(label) for label in column.labels], MAX_VALUES)


def _listed(texts: list[str], count: int) -> str:
    more = f" and {len(texts) - count:,} more" if len(texts) > count else ""
    return ", ".join(texts[:count]) + more


def quality_sentences(facts: ReportFacts) -> list[str]:
    """Say how well predictions hold on rows that were held out of training."""
    sentences = []
    noise = getattr(facts.model, "noise_", None)
    if noise is not None:
        sentences.append(
            f"On complete held-out rows, the target differs from the prediction with a standard "
            f"deviation of {figure(noise)}."
        )
        if facts.model.noise_variance_ is not None:
            sentences.append(
                "It depends on the inputs: intervals are narrow where it is small, and wide where "
                "it is large."
            )
    explained = _explained_variance(facts)
    if explained is not None and explained > 0:
        sentences.append(
            f"The model explains {explained:.1%} of the target's variance among these rows."
        )
    elif explained is not None:
        sentences.append(
            "The target itself does not vary more: the model explains none of its variance."
        )
    loss = _loss(facts)
    if loss is not None:
        sentences.append(
            f"Held-out loss: {loss[0]:.3f} nats a row; {loss[1]:.3f} if every row had the "
            f"shares of the classes."
        )
    return sentences


def _explained_variance(facts: ReportFacts) -> float | None:
    if not hasattr(facts.model, "noise_"):
        return None
    explained: float = facts.model.explained_variance_
    return None if np.isnan(explained) else explained


def _loss(facts: ReportFacts) -> tuple[float, float] | None:
    """Return the held-out loss of a classifier, and that of the classes' shares."""
    loss = getattr(facts.model, "held_out_loss_", np.nan)
    if facts.classes is None or facts.training is None or np.isnan(loss):
        return None
    share = facts.training.class_shares(len(facts.classes))
    if share is None:
        return None
    return float(loss), loss_of_shares(share)


def calibration_cards(facts: ReportFacts) -> list[FigureCard]:
    """Return figures of how predicted shares compare with observed ones."""
    return [*_interval_cards(facts), *_probability_cards(facts)]


def _interval_cards(facts: ReportFacts) -> list[FigureCard]:
    """Draw how many held-out rows lay in predicted intervals, before these were calibrated."""
    calibration: Any = getattr(facts.model, "calibration_", None)
    score = getattr(calibration, "score", ())
    if not len(score):
        return []
    distance = np.abs(2.0 * ndtr(score) - 1.0)  # from the middle: the coverage that just holds y
    known = np.asarray(calibration.missing) == 0
    cards = []
    for what, rows in (("all columns known", known), ("some columns hidden at random", ~known)):
        if np.any(rows):
            covered = [np.mean(distance[rows] <= level) for level in COVERAGES]
            count = len(np.unique(calibration.row[rows]))
            curve = interval_calibration(COVERAGES, covered, count)
            note = (
                f"{count:,} held-out rows, {what}. Intervals are corrected by these results, "
                f"by the number of unknown columns and by size and width, so that they cover what "
                f"they promise."
            )
            label = f"Share of held-out rows inside predicted intervals, {what}"
            cards.append(_card(curve, f"Intervals before calibration, {what}", label, note))
    return cards


def _probability_cards(facts: ReportFacts) -> list[FigureCard]:
    """Draw predicted probabilities against what happened, in training rows."""
    output = facts.outputs[0] if facts.outputs else None
    if output is None or not output.subject.is_probability or facts.seen is None:
        return []
    happened = facts.seen.outcome(output.subject.of_class)
    if happened is None:
        return []
    rows = np.arange(min(len(facts.seen), MAX_CALIBRATION_ROWS))
    hidden = np.zeros((len(rows), len(facts.encoder.columns_)), np.bool_)
    predicted, _ = output.subject.mean_of_rows(facts.seen.to_table(facts.encoder), rows, hidden)
    curve = probability_calibration(predicted, happened[rows], output.name, BINS)
    label = f"Predicted {output.name} against the share in which it happened"
    note = "Training rows, which the model has learned from: it does worse on new rows."
    return [_card(curve, f"Calibration of {output.name}", label, note)]


def _card(curve: CalibrationCurve, title: str, label: str, note: str) -> FigureCard:
    ends = zip(curve.low.tolist(), curve.high.tolist(), strict=True)
    rows = columns_to_rows(
        map(percent, curve.predicted.tolist()),
        map(percent, curve.observed.tolist()),
        (f"{percent(low)} to {percent(high)}" for low, high in ends),
        (f"{count:,}" for count in curve.rows.tolist()),
    )
    table = HtmlTable(label, ["predicted", "observed", "95% interval", "rows"], rows)
    svg = svg_figure(CalibrationDisplay(curve), label, height=SQUARE_INCHES)
    return FigureCard(title, svg, table, [note])
