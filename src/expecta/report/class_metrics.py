"""Measure predicted probabilities of classes at each share of unknown cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.text import percent
from expecta.expected.expected_model import ExpectedModel, ModelRows
from expecta.report.blocks import HtmlTable
from expecta.report.facts import ReportFacts

SHARES = (0.0, 0.1, 0.3, 0.5, 0.7)  # of known cells that are hidden
MAX_ROWS = 1000
GROUPS = 10  # of equal size, by probability, that calibration is measured over
LEAST = 1e-15  # probability that a logarithm is taken of
HEAD = ("cells hidden", "log-loss", "AUC", "Brier score", "calibration error")


class ClassMetrics(NamedTuple):
    """How good probabilities of classes are; of several classes all but the first are means."""

    log_loss: float  # in nats
    auc: float  # of each class against the rest; NaN where there is one class
    brier: float  # of each class
    calibration_error: float  # mean distance of a group's probability from its share

    @classmethod
    def of(cls, probability: Floats, happened: Ints) -> ClassMetrics:
        """Compare probabilities with the classes that rows have.  # (rows, classes), (rows,)."""
        rows = np.arange(len(happened))
        loss = -np.log(np.maximum(probability[rows, happened], LEAST))
        first = 1 if probability.shape[1] == 2 else 0  # of two, the other says the same
        parts = []
        for k in range(first, probability.shape[1]):
            p, is_it = probability[:, k], (happened == k).astype(np.float64)
            parts.append((_auc(p, is_it), np.mean((p - is_it) ** 2), _calibration(p, is_it)))
        auc, *others = zip(*parts, strict=True)
        known = [area for area in auc if not np.isnan(area)] or [np.nan]
        return cls(float(loss.mean()), *(float(np.mean(part)) for part in (known, *others)))


def _auc(p: Floats, is_it: Floats) -> float:
    """Return how often a row of the class has the greater probability; ties count half."""
    _, place, count = np.unique(p, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - 0.5 * (count - 1))[place]
    ones = is_it.sum()
    pairs = ones * (len(p) - ones)
    return float((rank @ is_it - 0.5 * ones * (ones + 1)) / pairs) if pairs else np.nan


def _calibration(p: Floats, is_it: Floats) -> float:
    parts = np.array_split(np.argsort(p, kind="stable"), GROUPS)
    off = [len(rows) * abs(p[rows].mean() - is_it[rows].mean()) for rows in parts if len(rows)]
    return float(sum(off) / len(p))


def class_metrics(facts: ReportFacts) -> HtmlTable | None:
    """Tell how good probabilities are if cells of training rows are hidden at random.

    Cost: that of the predictions, of 1,000 rows at five shares.
    """
    if facts.classes is None or len(facts.classes) < 2 or facts.seen is None or not facts.outputs:
        return None
    if facts.seen.target is None or not facts.outputs[0].subject.is_probability:
        return None
    model: ExpectedModel = facts.model.expected_model
    table = facts.seen.to_table(facts.encoder)
    rows = ModelRows(table, model.density.encoder_.codes(table))
    rng = np.random.default_rng(0)
    which = np.sort(rng.permutation(len(rows.codes))[:MAX_ROWS])
    happened = facts.seen.target[which].astype(np.int64)
    order = rng.random((len(which), rows.codes.shape[1]))
    order[:, model.fixed_columns] = 1.0
    lines = []
    for share in SHARES:
        asked = model.hide(rows, which, (order < share) | (rows.codes[which] < 0))
        probability = model.answer(asked).mean
        known = np.all(np.isfinite(probability), axis=1)
        metrics = ClassMetrics.of(probability[known], happened[known])
        figures = (f"{number:.3f}" for number in metrics[:-1])
        lines.append([percent(share), *figures, percent(metrics.calibration_error)])
    label = f"Predicted probabilities of {len(which):,} training rows with cells hidden at random"
    return HtmlTable(label, HEAD, lines)
