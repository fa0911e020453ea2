"""Ask a model, once, all that a report is written from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from expecta.ask.dependence import Dependence
from expecta.ask.disparities import Disparities
from expecta.ask.groups import Group
from expecta.ask.next_question import NextQuestion
from expecta.ask.split import Split
from expecta.common.errors import DomainError
from expecta.common.text import figure, percent
from expecta.common.threads import map_on_threads
from expecta.expected.expected_output import ExpectedOutput
from expecta.tables import Encoder
from expecta.tables.group_sums import GroupSums, TrainingData
from expecta.tables.training_rows import TrainingRows

MAX_COLUMNS = 12  # that figures are drawn of
MAX_OUTPUTS = 3  # classes, or outputs of a regressor
PAIRED_COLUMNS = 6  # most telling columns of which all pairs are compared
MAX_GROUPS = 400  # of a pair of columns
COARSE_POINTS = 20  # along a column, where spreads are sampled
UNNAMED = "prediction"
VISIBLE_ERROR = 1e-4  # relative to the size of a number: an error that is written


@dataclass(frozen=True, eq=False)
class OutputFacts:
    """The answers about one number that a model returns."""

    subject: ExpectedOutput
    overall: Group
    telling: NextQuestion
    splits: tuple[Split, ...]
    pair: Split | None
    dependence: tuple[Dependence, ...]
    disparities: tuple[Disparities, ...]

    @property
    def name(self) -> str:
        """What the number is called."""
        return self.subject.name

    def text(self, value: float) -> str:
        """Write a value of the number: a probability in percent."""
        return percent(value) if self.subject.is_probability else figure(value)

    def change_text(self, gap: float) -> str:
        """Write a difference of values: of probabilities in percentage points."""
        if self.subject.is_probability:
            return f"{figure(100 * gap, signed=True)} points"
        return figure(gap, signed=True)

    def mean_text(self, mean: float, error: float) -> str:
        """Write a mean with its standard error, if that is known and shows among its digits."""
        size = max(abs(self.overall.mean), self.overall.std)
        return self.text(mean) + (f" ± {self.text(error)}" if error > VISIBLE_ERROR * size else "")


@dataclass(frozen=True, eq=False)
class ReportFacts:
    """A model, and the answers about it.

    Attributes
    ----------
    outputs, left_out
        What is reported on, and how many further outputs (or classes) the model has.
    training
        The training rows, or sums over groups of them, if either was kept.
    columns
        Those that figures are drawn of, the most telling first.
    """

    model: Any
    encoder: Encoder
    training: TrainingData | None
    outputs: tuple[OutputFacts, ...]
    left_out: int
    columns: tuple[str, ...]

    @property
    def seen(self) -> TrainingRows | None:
        """The training rows, if they were kept."""
        return None if isinstance(self.training, GroupSums) else self.training

    @property
    def target(self) -> str:
        """What is predicted, by its name; empty where it has none."""
        name = self.training.name if self.training is not None else UNNAMED
        return "" if name == UNNAMED else name

    @property
    def classes(self) -> list[Any] | None:
        """The classes of a classifier."""
        classes = getattr(self.model, "classes_", None)
        return None if classes is None else list(classes.tolist())


def gather(model: Any, sensitive: Sequence[str]) -> ReportFacts:
    """Ask a model all that a report needs."""
    outputs_of, left_out = _reported_outputs(model)
    ranks = [model.next_question(of=of) for of in outputs_of]
    encoder, training = _encoding(model, outputs_of)
    for name in sensitive:
        encoder.variable(name)  # complains where there is none
    columns = _columns(encoder, ranks)
    varied = {name for rank in ranks for name in rank.columns}
    drawn = [name for name in columns if name in varied]
    outputs = tuple(
        _output(model, of, rank, drawn, sensitive)
        for of, rank in zip(outputs_of, ranks, strict=True)
    )
    return ReportFacts(model, encoder, training, outputs, left_out, tuple(columns))


def _reported_outputs(model: Any) -> tuple[list[Any], int]:
    """Return which outputs to report on, as ``of`` takes them, and how many are left out."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        try:
            model.expected_output()
        except DomainError:  # several outputs
            n = model.expected_model.n_outputs
            return list(range(min(n, MAX_OUTPUTS))), max(0, n - MAX_OUTPUTS)
        return [None], 0
    if len(classes) == 1:
        return [], 0
    if len(classes) == 2:
        return [None], 0
    return classes.tolist()[:MAX_OUTPUTS], max(0, len(classes) - MAX_OUTPUTS)


def _encoding(model: Any, outputs_of: list[Any]) -> tuple[Encoder, TrainingData | None]:
    if outputs_of:
        subject = model.expected_output(outputs_of[0])
        return subject.encoder, subject.training_rows
    return model.encoder_, model._training_data


def _columns(encoder: Encoder, ranks: list[NextQuestion]) -> list[str]:
    """Return the most telling columns of all outputs, then those that never vary."""
    best: dict[str, float] = {}
    for rank in ranks:
        for name, share in zip(rank.columns, rank.share.tolist(), strict=True):
            best[name] = max(best.get(name, 0.0), share)
    names = [str(name) for name in encoder.feature_names_in_]
    order = sorted(names, key=lambda name: -best.get(name, -1.0))
    return order[:MAX_COLUMNS]


def _output(
    model: Any, of: Any, telling: NextQuestion, columns: list[str], sensitive: Sequence[str]
) -> OutputFacts:
    subject = model.expected_output(of)
    samples = subject.samples_mean or subject.samples_variance
    grid = COARSE_POINTS if samples else None
    # somebody's model is asked by one thread
    each: Any = map if samples else map_on_threads
    overall = model.ask(of=of)  # first, as the others use what it keeps
    splits = tuple(each(lambda name: model.split(name, of=of), columns))
    size = {split.columns[0]: len(split) for split in splits}
    ranked = [(name, size[name]) for name in telling.columns if name in size]
    pairs = each(lambda pair: model.split(*pair, of=of), _pairs(ranked[:PAIRED_COLUMNS]))
    return OutputFacts(
        subject,
        overall,
        telling,
        splits,
        max(pairs, key=variance_between, default=None),
        tuple(each(lambda name: model.dependence(name, grid=grid, of=of), columns)),
        tuple(_disparities(model, name, of) for name in sensitive),
    )


def _pairs(columns: list[tuple[str, int]]) -> list[tuple[str, str]]:
    """Return pairs of columns, of which each makes so many groups, whose groups are not many."""
    pairs = combinations(columns, 2)
    return [(first, second) for (first, m), (second, n) in pairs if m * n <= MAX_GROUPS]


def variance_between(split: Split) -> float:
    """Return the variance of the means of groups, each counted by its share."""
    middle = np.nansum(split.share * split.mean)
    return float(np.nansum(split.share * (split.mean - middle) ** 2))


def _disparities(model: Any, name: str, of: Any) -> Disparities:
    """Search groups of up to two facts."""
    answer: Disparities = model.disparities(name, of=of)
    return answer
