"""All answers that a report is written from, asked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from expecta.ask.dependence import Dependence
from expecta.ask.disparities import Disparities
from expecta.ask.group_answers import Group
from expecta.ask.next_question import NextQuestion
from expecta.ask.split import Split
from expecta.common.errors import DomainError
from expecta.expected.expected_output import ExpectedOutput
from expecta.tables import Encoder
from expecta.tables.training_rows import TrainingRows

__all__ = ["Facts", "Output", "gather"]

MOST_COLUMNS = 12  # that figures are drawn of
MOST_OUTPUTS = 3  # classes, or outputs of a regressor
PAIRED = 6  # most telling columns of which all pairs are compared
MOST_GROUPS = 400  # of a pair of columns
COARSE = 20  # points along a column where spreads are sampled
UNNAMED = "prediction"
SIZES = (2, 1, 0)  # facts that make a group, the most that can be afforded


@dataclass(frozen=True, eq=False)
class Output:
    """What is said about one number that a model returns."""

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

    @property
    def is_share(self) -> bool:
        """Whether it is a probability."""
        return self.subject.of_class is not None and self.name.startswith("P(")


@dataclass(frozen=True, eq=False)
class Facts:
    """A model, and what is said of it.

    Attributes
    ----------
    outputs, left_out
        What is reported on, and how many further outputs (or classes) the model has.
    columns
        Those that figures are drawn of, the most telling first.
    """

    model: Any
    encoder: Encoder
    seen: TrainingRows | None
    outputs: tuple[Output, ...]
    left_out: int
    columns: tuple[str, ...]

    @property
    def target(self) -> str:
        """What is predicted, by its name; empty where it has none."""
        name = self.seen.name if self.seen is not None else UNNAMED
        return "" if name == UNNAMED else name

    @property
    def classes(self) -> list[Any] | None:
        """The classes of a classifier."""
        found = getattr(self.model, "classes_", None)
        return None if found is None else list(found.tolist())


def gather(model: Any, sensitive: Sequence[str]) -> Facts:
    """Ask a model all that a report needs."""
    asked, left_out = _asked(model)
    ranks = [model.next_question(of=of) for of in asked]
    encoder, seen = _encoding(model, asked)
    for name in sensitive:
        encoder.variable(name)  # complains where there is none
    columns = _columns(encoder, ranks)
    varied = {name for rank in ranks for name in rank.columns}
    drawn = [name for name in columns if name in varied]
    outputs = tuple(
        _output(model, of, rank, drawn, sensitive) for of, rank in zip(asked, ranks, strict=True)
    )
    return Facts(model, encoder, seen, outputs, left_out, tuple(columns))


def _asked(model: Any) -> tuple[list[Any], int]:
    """Return which outputs to report on, as ``of`` takes them, and how many are left out."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        try:
            model.expected_output()
        except DomainError:  # several outputs
            n = len(model.answers.scale)
            return list(range(min(n, MOST_OUTPUTS))), max(0, n - MOST_OUTPUTS)
        return [None], 0
    if len(classes) == 1:
        return [], 0
    if len(classes) == 2:
        return [None], 0
    return classes.tolist()[:MOST_OUTPUTS], max(0, len(classes) - MOST_OUTPUTS)


def _encoding(model: Any, asked: list[Any]) -> tuple[Encoder, TrainingRows | None]:
    if asked:
        subject = model.expected_output(asked[0])
        return subject.encoder, subject.seen
    return model.encoder_, model.training_rows_


def _columns(encoder: Encoder, ranks: list[NextQuestion]) -> list[str]:
    """Return the most telling columns of all outputs, then those that never vary."""
    best: dict[str, float] = {}
    for rank in ranks:
        for name, share in zip(rank.columns, rank.share.tolist(), strict=True):
            best[name] = max(best.get(name, 0.0), share)
    names = [str(name) for name in encoder.feature_names_in_]
    order = sorted(names, key=lambda name: -best.get(name, -1.0))
    return order[:MOST_COLUMNS]


def _output(
    model: Any, of: Any, telling: NextQuestion, columns: list[str], sensitive: Sequence[str]
) -> Output:
    subject = model.expected_output(of)
    grid = COARSE if subject.sampled or _spread_is_sampled(subject) else None
    splits = tuple(model.split(name, of=of) for name in columns)
    size = {one.columns[0]: len(one) for one in splits}
    ranked = [(name, size[name]) for name in telling.columns if name in size]
    return Output(
        subject,
        model.ask(of=of),
        telling,
        splits,
        _pair(model, of, ranked[:PAIRED]),
        tuple(model.dependence(name, grid=grid, of=of) for name in columns),
        tuple(_disparities(model, name, of) for name in sensitive),
    )


def _spread_is_sampled(subject: ExpectedOutput) -> bool:
    return type(subject)._variance is ExpectedOutput._variance


def _pair(model: Any, of: Any, columns: list[tuple[str, int]]) -> Split | None:
    """Return the split by two columns whose means differ most: their variance between groups.

    Columns come with how many groups each makes.
    """
    best, most = None, -1.0
    for (first, m), (second, n) in combinations(columns, 2):
        if m * n > MOST_GROUPS:
            continue
        found = model.split(first, second, of=of)
        middle = found.share @ found.mean
        spread = float(found.share @ (found.mean - middle) ** 2)
        if spread > most:
            best, most = found, spread
    return best


def _disparities(model: Any, name: str, of: Any) -> Disparities:
    """Search groups as large as can be afforded."""
    for size in SIZES[:-1]:
        try:
            found: Disparities = model.disparities(name, size=size, of=of)
        except DomainError as problem:
            if "at most" not in str(problem):
                raise
        else:
            return found
    smallest: Disparities = model.disparities(name, size=SIZES[-1], of=of)
    return smallest
