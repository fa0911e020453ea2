"""Decide what to learn from a table, learn it, and say how well it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from expecta.common.arrays import Floats
from expecta.common.errors import DomainError
from expecta.common.text import counted, number
from expecta.densities import PSDD, ChowLiu, LatentTree
from expecta.estimators import CircuitClassifier, CircuitRegressor
from expecta.estimators.circuit_estimator import CircuitEstimator
from expecta.queries.one_vs_rest import loss_of_shares

MAX_CLASS_NUMBERS = 10  # different numbers that may be classes
MAX_CLASSES = 50  # different texts that are classes, not names
COMMAS = r"^\s*[-+]?\d+(\.\d{3})*,\d+\s*$"  # such as 0,5 or 1.000,5
POINTS = "decimal commas? Read them by --decimal ,"
MAJORITY = 0.5  # share of cells that tells what a column is


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

    @classmethod
    def from_table(
        cls, table: Any, target: str, drop: Sequence[str], classify: bool | None, skip: bool
    ) -> Task:
        """Take a table apart, and decide whether the target has classes or numbers."""
        import pyarrow as pa

        known = np.asarray(table.column(target).is_valid())
        if pa.types.is_floating(table.schema.field(target).type):
            known &= ~np.isnan(table.column(target).to_numpy())
        skipped = int(np.count_nonzero(~known))
        if skipped == len(known):
            raise DomainError(
                f"the target {target!r} is missing in every row; fill it in, or choose another "
                f"column"
            )
        if skipped and not skip:
            raise DomainError(
                f"the target {target!r} is unknown in {counted(skipped, 'row')}, the first of them "
                f"row {int(np.argmin(known))}; remove them, or leave them out by --skip-unknown"
            )
        table = table.filter(pa.array(known))
        inputs = table.drop_columns(list({target, *drop}))
        if not inputs.num_columns:
            raise DomainError(f"the table has no columns besides the target {target!r}; add some")
        y = table.column(target)
        classify, why, notes = _kind(y, target, classify)
        return cls(inputs, y, target, classify, why, skipped, notes)


def _share(column: Any, pattern: str) -> float:
    """Return the share of a column's known texts that a pattern matches; 0 for no texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return 0.0
    return float(pc.mean(pc.match_substring_regex(column, pattern)).as_py() or 0.0)


def _kind(y: Any, name: str, classify: bool | None) -> tuple[bool, str, tuple[str, ...]]:
    """Decide between classes and numbers, and return why."""
    import pyarrow as pa

    values = len(y.unique())
    numeric = pa.types.is_integer(y.type) or pa.types.is_floating(y.type)
    numeric = numeric or pa.types.is_decimal(y.type)
    commas = _share(y, COMMAS) > MAJORITY
    if classify is False and not numeric:
        raise DomainError(
            f"the target {name!r} has no numbers; " + (POINTS if commas else "leave --regress out")
        )
    if classify and numeric and _fractions(y):
        raise DomainError(f"the target {name!r} has numbers with fractions; leave --classify out")
    if classify is not None:
        return classify, f"a {'classifier' if classify else 'regressor'}, as asked", ()
    if numeric:
        notes: tuple[str, ...] = ()
        if values <= MAX_CLASS_NUMBERS:
            few = counted(values, "value")
            notes = (f"the target {name!r} has {few}; if these are classes: --classify",)
        return False, "a regressor, because it has numbers", notes
    if pa.types.is_boolean(y.type):
        return True, "a classifier, because it is true or false", ()
    if commas:
        raise DomainError(f"the target {name!r} is text: {POINTS}")
    if values > min(MAX_CLASSES, max(MAX_CLASS_NUMBERS, MAJORITY * len(y))):
        raise DomainError(
            f"the target {name!r} has {values} different values in {len(y)} rows that are no "
            f"numbers; name another column, or pass --classify if they are classes"
        )
    return (
        True,
        f"a classifier, because it has no numbers: {counted(values, 'different value')}",
        (),
    )


def _fractions(y: Any) -> bool:
    """Whether some numbers are not whole."""
    values = np.asarray(y.to_pylist(), np.float64)
    return bool(np.any(values != np.rint(values)))


def learn(
    task: Task, density: str, max_bins: int, seed: int, cells: Mapping[str, Any] | None = None
) -> CircuitEstimator:
    """Learn a regressor or a classifier; ``cells`` are options of the encoder."""
    import narwhals as nw

    kind: type[CircuitEstimator] = CircuitClassifier if task.classify else CircuitRegressor
    chosen = {"tree": None, "psdd": PSDD(random_state=seed), "chow-liu": ChowLiu()}[density]
    model = kind(density=chosen, max_bins=max_bins, random_state=seed)
    if cells:
        model.set_params(encoder=(chosen or LatentTree()).default_encoder().set_params(**cells))
    # a series of narwhals has a name, which a column of Arrow has not
    y = nw.from_native(_values(task.y), series_only=True).alias(task.target)
    return model.fit(task.table, y)


def _values(y: Any) -> Any:
    """Return a target as plain values: no dictionary, no times, no decimals."""
    import pyarrow as pa

    if pa.types.is_dictionary(y.type):
        return y.cast(y.type.value_type)
    if pa.types.is_decimal(y.type):
        return y.cast(pa.float64())
    return y.cast(pa.string()) if pa.types.is_temporal(y.type) else y


def held_out(model: CircuitEstimator) -> dict[str, Any]:
    """Return how well the model does on held-out rows, in numbers and in words."""
    if isinstance(model, CircuitRegressor):
        assert model.training_rows_ is not None
        target = model.training_rows_.target
        assert target is not None
        noise, spread = model.noise_, model.target_spread_
        explained = model.explained_variance_
        summary = _summary(noise, spread, explained, target)
        return {"noise": noise, "target_std": spread, "explained": explained, "summary": summary}
    assert isinstance(model, CircuitClassifier)
    loss = model.held_out_loss_
    classes = ", ".join(map(str, model.classes_.tolist()[:12]))
    measured = f"held-out loss {loss:.3f} nats a row"
    sums = model.training_rows_
    share = None if sums is None else sums.class_shares(len(model.classes_))
    if share is not None:
        measured += f", and {loss_of_shares(share):.3f} for the shares of the classes alone"
    if len(model.classes_) == 1:
        measured = "all rows have the same class, which is always predicted"
    elif np.isnan(loss):
        measured = "there are too few rows to hold any out"
    summary = f"{measured}; classes: {classes}"
    return {"held_out_loss": loss, "classes": model.classes_.tolist(), "summary": summary}


def _summary(noise: float, spread: float, explained: float, target: Floats) -> str:
    """Write how well a regressor does."""
    if len(target) == 1:
        return "there is one row: its target is always predicted, and the error is unknown"
    if not np.ptp(target) > 0:
        return "the target is the same in all rows, and is always predicted"
    share = f"{explained:.0%}" if explained > 0 else "none"
    return (
        f"on held-out rows the root mean squared error is {number(noise)}, and the standard "
        f"deviation of their target {number(spread)}: {share} of the variance is explained"
    )
