"""The model card: what was learned from what, how well it holds, and what is assumed."""

from __future__ import annotations

import platform
from datetime import datetime
from typing import Any

import numpy as np

from expecta.ask.displays.calibration_plot import binned
from expecta.common.text import figure, percent
from expecta.report.facts import Facts
from expecta.report.figures import reliability
from expecta.report.html import Html, figure_of, join, table, tag
from expecta.report.population import missing
from expecta.report.times import when
from expecta.tables.column import Column
from expecta.tables.number_column import NumberColumn

__all__ = ["assumptions", "card", "columns_table", "quality", "tiles"]

MOST_VALUES = 6  # of a column, that are listed
MOST_CLASSES = 20
LEVELS = np.arange(1, 10) / 10
BINS = 10


def tiles(facts: Facts) -> Html:
    """Write the figures at the top."""
    found = [("predicts", facts.target)] if facts.target else []
    if facts.classes is not None:
        found.append(("classes", f"{len(facts.classes):,}"))
    if facts.seen is not None:
        found.append(("training rows", f"{len(facts.seen):,}"))
    found.append(("columns", f"{len(facts.encoder.columns_):,}"))
    noise = getattr(facts.model, "noise_", None)
    if noise is not None:
        found.append(("held-out error", f"± {figure(noise)}"))
    explained = _explained(facts)
    if explained is not None and explained > 0:
        found.append(("variance explained", f"{explained:.0%}"))
    pairs = (tag("div", tag("dt", name), tag("dd", value)) for name, value in found)
    return tag("dl", *pairs, class_="tiles")


def card(facts: Facts) -> Html:
    """Write what the model is and what it was learned from."""
    model = facts.model
    lines: list[tuple[str, object]] = [("kind", _kind(facts))]
    if facts.classes is not None:
        lines.append(("classes", _listed([str(one) for one in facts.classes], MOST_CLASSES)))
    learned = getattr(getattr(model, "density_", None), "learned_", None)
    density = getattr(model, "density_", None)
    if density is not None:
        how = f", {learned.how}" if learned is not None else ""
        lines.append(("density", f"{type(density).__name__}{how}"))
    if learned is not None:
        whose = f"{learned.held_out_rows:,} rows held out" if learned.held_out_rows else "its rows"
        score = (
            f"{learned.score:.2f} nats a row on {whose}; "
            f"{learned.independent:.2f} if the columns were independent"
        )
        lines.append(("score of the density", score))
    if getattr(model, "n_splits_", None) is not None:
        lines.append(("splits of the circuit", f"{model.n_splits_} (penalty {model.penalty_:g})"))
    lines += [
        ("versions", _versions()),
        ("written", f"{datetime.now().astimezone():%Y-%m-%d %H:%M}"),
    ]
    return tag("dl", *(join([tag("dt", a), tag("dd", b)]) for a, b in lines), class_="facts")


def _kind(facts: Facts) -> str:
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


def columns_table(facts: Facts) -> Html:
    """Write a line for each column: what it is, what it has, and how often it is missing."""
    head = ["column", "kind", "values or range"] + ["missing"] * (facts.seen is not None)
    lines = []
    for place, column in enumerate(facts.encoder.columns_):
        line = [column.name, column.kind, _values(column.plain)]
        if facts.seen is not None:
            line.append(percent(missing(facts.seen, place)))
        lines.append(line)
    return table(head, lines, "Columns of the model", texts=3)


def _values(column: Column) -> str:
    if isinstance(column, NumberColumn):
        bins = "1 value" if column.cardinality == 1 else f"{column.cardinality} bins"
        return f"{when(column, float(column.lows.min()), float(column.highs.max()))} ({bins})"
    return _listed([str(one) for one in column.labels], MOST_VALUES)


def _listed(texts: list[str], most: int) -> str:
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def quality(facts: Facts) -> Html:
    """Write how well predictions hold on rows that training did not see."""
    said: list[object] = []
    noise = getattr(facts.model, "noise_", None)
    if noise is not None:
        said.append(
            f"The target lies about predictions of complete rows that were held out with a "
            f"standard deviation of {figure(noise)}."
        )
    explained = _explained(facts)
    if explained is not None and explained > 0:
        said.append(f"That explains {explained:.1%} of the target's variance.")
    elif explained is not None:
        said.append("The target itself varies no more: the model explains none of it.")
    loss = _loss(facts)
    if loss is not None:
        said.append(
            f"Held-out loss: {loss[0]:.3f} nats a row; {loss[1]:.3f} if every row had the "
            f"shares of the classes."
        )
    figures = [one for one in (_intervals(facts), _probabilities(facts)) if one is not None]
    if not said and not figures:
        said.append("Nothing was held out: how well the model predicts is not known from here.")
    grid = [tag("div", *figures, class_="grid two")] if figures else []
    return join([tag("p", join(said, " ")), *grid])


def _explained(facts: Facts) -> float | None:
    noise = getattr(facts.model, "noise_", None)
    if noise is None or facts.classes is not None or facts.seen is None:
        return None
    target, weight = facts.seen.target, facts.seen.weight
    if target is None:
        return None
    spread = np.average((target - np.average(target, weights=weight)) ** 2, weights=weight)
    return float(1.0 - noise**2 / spread) if spread > 0 else None


def _loss(facts: Facts) -> tuple[float, float] | None:
    """Return the held-out loss of a classifier, and that of the classes' shares."""
    tried = getattr(facts.model, "validation_", None)
    if facts.classes is None or facts.seen is None or facts.seen.target is None or not tried:
        return None
    model = facts.model
    found = tried.get(model.penalty_, {}).get(model.n_splits_)
    if found is None:
        return None
    share = np.bincount(facts.seen.target.astype(int), facts.seen.weight, len(facts.classes))
    share = share / share.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nan_to_num(share * np.log(share))
        entropy -= np.nan_to_num((1 - share) * np.log1p(-share))
    return float(found), float(entropy[1:].sum() if len(share) == 2 else entropy.sum())


def _intervals(facts: Facts) -> Html | None:
    """Draw how many held-out rows lay in predicted intervals, before these were calibrated."""
    found: Any = getattr(facts.model, "calibration_", None)
    if found is None or not hasattr(found, "distance") or not len(found.distance):
        return None
    missing_ = np.asarray(found.missing)
    series, head, columns = [], ["predicted share"], []
    parts = (("all known", missing_ == 0, "a"), ("some unknown", missing_ > 0, "b"))
    for name, some, class_ in parts:
        if np.any(some):
            seen = np.array([np.mean(found.distance[some] <= level) for level in LEVELS])
            series.append((LEVELS, seen, class_))
            head.append(name)
            columns.append(seen)
    lines = [
        [f"{level:.0%}", *(percent(float(seen[i])) for seen in columns)]
        for i, level in enumerate(LEVELS.tolist())
    ]
    label = "Share of held-out rows inside predicted intervals, by the share that was predicted"
    n = len(np.unique(found.row))
    note = (
        f"{n:,} rows held out; blue: all columns known, orange: some hidden at random. Intervals "
        f"are corrected by what is seen here, for each number of unknown columns, so that they "
        f"hold what they say."
    )
    picture = figure_of(
        "Intervals before calibration: predicted and seen",
        reliability(series, label),
        tag("p", note, class_="note"),
    )
    return join([picture, tag("div", table(head, lines, label), class_="card")])


def _probabilities(facts: Facts) -> Html | None:
    """Draw predicted probabilities against what happened, in training rows."""
    output = facts.outputs[0] if facts.outputs else None
    if output is None or not output.is_share or facts.seen is None:
        return None
    happened = facts.seen.outcome(output.subject.of_class)
    if happened is None:
        return None
    rows = np.arange(min(len(facts.seen), 2000))
    hidden = np.zeros((len(rows), len(facts.encoder.columns_)), np.bool_)
    predicted, _ = output.subject.of_table(facts.seen.to_table(facts.encoder), rows, hidden)
    found = binned(predicted, happened[rows], output.name, BINS)
    label = f"Predicted {output.name} against the share in which it happened"
    lines = [
        [percent(said), percent(seen), f"{percent(low)} to {percent(high)}", f"{n:,}"]
        for said, seen, low, high, n in zip(
            found.said.tolist(),
            found.seen.tolist(),
            found.low.tolist(),
            found.high.tolist(),
            found.rows.tolist(),
            strict=True,
        )
    ]
    head = ["predicted", "happened", "95% interval", "rows"]
    note = "Training rows, which the model has seen: new rows will lie further off."
    picture = figure_of(
        join(["Calibration of ", output.name]),
        reliability([(found.said, found.seen, "a")], label),
        tag("p", note, class_="note"),
    )
    return join([picture, tag("div", table(head, lines, label), class_="card")])


def assumptions(facts: Facts) -> Html:
    """Write what is assumed, and what is exact."""
    assumed = [
        "Given what is seen, that a value is missing carries no information.",
        "Rows to come are like the training rows: the density speaks of that population.",
        "What goes together is no cause: a group differs in more than what names it.",
    ]
    exact = facts.outputs[0].subject.exactness if facts.outputs else ""
    return join(
        [
            tag("h3", "What is assumed"),
            tag("ul", *(tag("li", one) for one in assumed)),
            *([tag("h3", "What is exact"), tag("p", exact)] if exact else []),
        ]
    )
