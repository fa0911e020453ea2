"""What is to be learned from a table, and the model of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from expecta.densities import PSDD, ChowLiu
from expecta.errors import DomainError
from expecta.estimators import CircuitClassifier, CircuitRegressor
from expecta.estimators.base import CircuitEstimator
from expecta.explore.language.conditions import quoted
from expecta.explore.questions.showing import number

__all__ = ["Task", "held_out", "learn"]

FEW = 10  # values of a number that may be classes
MANY = 200  # classes that are rather names


@dataclass(frozen=True)
class Task:
    """Inputs and a target as Arrow tables have them, and what kind of target it is."""

    table: Any
    y: Any
    target: str
    classify: bool
    why: str
    skipped: int
    notes: tuple[str, ...]
    example: tuple[str, str]  # a column, and a condition on it

    @classmethod
    def of(
        cls,
        table: Any,  # noqa: ANN401
        target: str,
        drop: Sequence[str],
        classify: bool | None,
        skip: bool,
    ) -> Task:
        """Take a table apart, and decide whether the target has classes or numbers."""
        import pyarrow as pa

        known = np.asarray(table.column(target).is_valid())
        if pa.types.is_floating(table.schema.field(target).type):
            known &= ~np.isnan(table.column(target).to_numpy())
        skipped = int(np.count_nonzero(~known))
        if skipped and not skip:
            raise DomainError(
                f"the target {target!r} is unknown in {skipped} row(s), the first of them row "
                f"{int(np.argmin(known))}; remove them, or leave them out by --skip-unknown"
            )
        if skipped == len(known):
            raise DomainError(f"the target {target!r} is unknown in every row; name another")
        table = table.filter(pa.array(known))
        inputs = table.drop_columns(list({target, *drop}))
        if not inputs.num_columns:
            raise DomainError(f"the table has no column beside the target {target!r}; add some")
        y = table.column(target)
        classify, why, notes = _kind(y, target, classify)
        return cls(inputs, y, target, classify, why, skipped, notes, _example(inputs))


def _kind(y: Any, name: str, asked: bool | None) -> tuple[bool, str, tuple[str, ...]]:  # noqa: ANN401
    """Decide between classes and numbers, and say why."""
    import pyarrow as pa

    values = len(y.unique())
    numeric = pa.types.is_integer(y.type) or pa.types.is_floating(y.type)
    numeric = numeric or pa.types.is_decimal(y.type)
    classes = "a classifier, since it has classes"
    if asked is False and not numeric:
        raise DomainError(f"the target {name!r} has no numbers; leave --regress out")
    if asked and numeric and _fractions(y):
        raise DomainError(f"the target {name!r} has numbers with fractions; leave --classify out")
    if asked is not None:
        return asked, "a classifier, as asked" if asked else "a regressor, as asked", ()
    if numeric:
        notes: tuple[str, ...] = ()
        if values <= FEW:
            notes = (f"the target {name!r} has {values} values; if these are classes: --classify",)
        return False, "a regressor, since it has numbers", notes
    if pa.types.is_boolean(y.type):
        return True, "a classifier, since it is true or false", ()
    if values > MANY:
        raise DomainError(
            f"the target {name!r} has {values} different values that are no numbers; name another "
            f"column, or pass --classify if they are classes"
        )
    return True, f"{classes}: {values} different ones, no numbers", ()


def _fractions(y: Any) -> bool:  # noqa: ANN401
    """Whether some numbers are not whole."""
    values = np.asarray(y.to_pylist(), np.float64)
    return bool(np.any(values != np.rint(values)))


def _example(table: Any) -> tuple[str, str]:  # noqa: ANN401
    """Return a column to ask about, categories first, and a condition on it."""
    import pyarrow as pa

    def is_text(name: str) -> bool:
        kind = table.schema.field(name).type
        return bool(pa.types.is_string(kind) or pa.types.is_dictionary(kind))

    names = table.column_names
    column = next((name for name in names if is_text(name)), names[0])
    values = table.column(column).drop_null()
    value = values[len(values) // 2].as_py() if len(values) else None
    shown = repr(value) if isinstance(value, str) else f"{value}"
    return column, f"{quoted(column)} {'==' if isinstance(value, str) else '<='} {shown}"


def learn(task: Task, density: str, max_bins: int, seed: int) -> CircuitEstimator:
    """Learn a regressor or a classifier."""
    import narwhals as nw

    kind: type[CircuitEstimator] = CircuitClassifier if task.classify else CircuitRegressor
    chosen = {"tree": None, "psdd": PSDD(random_state=seed), "chow-liu": ChowLiu()}[density]
    model = kind(density=chosen, max_bins=max_bins, random_state=seed)
    # a series of narwhals has a name, which a column of Arrow has not
    y = nw.from_native(_values(task.y), series_only=True).alias(task.target)
    fitted: CircuitEstimator = model.fit(task.table, y)
    return fitted


def _values(y: Any) -> Any:  # noqa: ANN401
    """Return a target as plain values: no dictionary, no times, no decimals."""
    import pyarrow as pa

    if pa.types.is_dictionary(y.type):
        return y.cast(y.type.value_type)
    if pa.types.is_decimal(y.type):
        return y.cast(pa.float64())
    return y.cast(pa.string()) if pa.types.is_temporal(y.type) else y


def held_out(model: CircuitEstimator) -> dict[str, Any]:
    """Return how well the model does on rows that it did not see, in numbers and in words."""
    if isinstance(model, CircuitRegressor):
        assert model.seen_ is not None
        assert model.seen_.target is not None
        noise, spread = model.noise_, float(np.std(model.seen_.target))
        explained = 1.0 - (noise / spread) ** 2 if spread > 0 else np.nan
        said = (
            f"on rows held out its error is {number(noise)} (root mean square), where the target "
            f"varies by {number(spread)}: {explained:.0%} of the variance is explained"
        )
        return {"noise": noise, "target_std": spread, "explained": explained, "said": said}
    assert isinstance(model, CircuitClassifier)
    tried = [loss for losses in model.validation_.values() for loss in losses.values()]
    loss = min(tried, default=np.nan)
    classes = ", ".join(map(str, model.classes_.tolist()[:12]))
    measured = f"on rows held out its loss is {number(loss)} nats per class"
    said = f"{measured if tried else 'too few rows to hold some out'}; classes: {classes}"
    return {"held_out_loss": loss, "classes": model.classes_.tolist(), "said": said}
