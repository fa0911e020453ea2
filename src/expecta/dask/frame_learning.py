"""Learn from Dask frames: summaries are made where the partitions are, and added up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import add
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

import dask
from dask import delayed
from expecta.common.arrays import Ints
from expecta.common.errors import BatchError, DomainError
from expecta.common.settings import config_context
from expecta.common.text import suggestion
from expecta.densities.density_learner import DensityLearner
from expecta.densities.row_chunks import Summary, read_batch, row_priorities
from expecta.estimators.circuit_estimator import MAX_ROWS, CircuitEstimator
from expecta.estimators.training import Seeds
from expecta.tables.encoder import Encoder
from expecta.tables.table_sketch import TableSketch

Model = TypeVar("Model")


def fit(model: Model, frame: Any, target: str | None = None) -> Model:
    """Learn a density, or a circuit with its density, from a Dask frame: partitions are batches.

    A density learns from all rows, as `fit_batches` does. The splits of a circuit are chosen by
    fits that no sums of statistics stand for: it learns from a random sample of 50,000 rows whose
    target is known (`fit` takes no more either), which comes here, over a density of all rows;
    ``subsampled_`` says so.

    Not lazy: what is learned in one reading decides the next. Partitions are read twice, and once
    more for the sample; their values, four bytes for each cell, then stay with the workers until
    all is learned. The model is the same, to rounding, whatever the partitions and the number of
    workers; a worker that is lost costs the time of its partitions.

    Parameters
    ----------
    model
        What is yet to learn: a density such as ``LatentTree()``, or a `CircuitRegressor` or
        `CircuitClassifier`.
    frame
        A Dask frame whose columns are those to learn, and the target.
    target
        The column to predict; None for a density.

    Returns
    -------
    model
        The same, which has learned.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from expecta import Independent
    >>> frame = dd.from_pandas(pd.DataFrame({"coin": ["head", "tail"] * 10}), npartitions=2)
    >>> fit(Independent(pseudo_count=0), frame).marginal("coin").to_dict()
    {'head': 0.5, 'tail': 0.5}
    """
    if isinstance(model, DensityLearner):
        if target is not None:
            raise DomainError("a density has no target; leave it out, or pass a circuit")
        model.fit_source(FrameSource(frame))
        return model
    if not isinstance(model, CircuitEstimator):
        raise DomainError(
            f"frames teach densities, CircuitRegressor and CircuitClassifier, not "
            f"{type(model).__name__}; give it a density that learned from the frame"
        )
    if target is None or target not in frame.columns:
        raise DomainError(
            f"target is a column of the frame, not {target!r:.80}; "
            + suggestion(str(target), list(map(str, frame.columns)))
        )
    _fit_circuit(model, frame, target)
    return model


def _fit_circuit(model: CircuitEstimator, frame: Any, target: str) -> None:
    """Learn the density from all rows, and the circuit from a sample of them."""
    inputs, seeds = frame.drop(columns=[target]), Seeds.of(model.random_state)
    own = {name: getattr(model, name) for name in ("density", "vtree", "encoder")}
    density = model.density
    if density is None or not hasattr(density, "circuit_"):
        density = model._unfitted(seeds).fit_source(FrameSource(inputs))
    sample, n_rows = _sampled_rows(frame, target, seeds.folds)
    try:
        model.set_params(density=density, vtree=None, encoder=None)
        model.fit(sample.drop(columns=[target]), sample[target])
    finally:
        model.set_params(**own)
    if len(sample) < n_rows:
        text = f"the circuit learned from {len(sample):,} of {n_rows:,} rows, drawn at random"
        model.subsampled_ += (text,)


def _sampled_rows(frame: Any, target: str, seed: int) -> tuple[Any, int]:
    """Return a random sample of the rows whose target is known, and how many rows there are.

    Whether a row is in it depends on its number and the seed alone.
    """
    parts = frame.to_delayed()
    lengths = dask.compute(*map(delayed(len), parts))
    firsts = accumulate(lengths[:-1], initial=0)
    samples = [
        delayed(RowSample.of)(part, first, target, seed)
        for part, first in zip(parts, firsts, strict=True)
    ]
    sample: RowSample = _sum(samples)
    return sample.rows.iloc[np.argsort(sample.number)], sum(lengths)


class RowSample(NamedTuple):
    """The rows of the smallest random numbers."""

    priority: Any
    number: Any  # of the row in the frame
    rows: Any

    @classmethod
    def of(cls, part: Any, first: int, target: str, seed: int) -> RowSample:
        """Draw from a partition whose first row has this number."""
        known = part[target].notna().to_numpy()
        priority = row_priorities(first, len(part), seed)
        number = np.arange(first, first + len(part))
        return cls(priority[known], number[known], part[known])._smallest()

    def __add__(self, other: Any) -> RowSample:
        rows = pd.concat([self.rows, other.rows])
        return RowSample(
            np.concatenate([self.priority, other.priority]),
            np.concatenate([self.number, other.number]),
            rows,
        )._smallest()

    def _smallest(self) -> RowSample:
        if len(self.priority) <= MAX_ROWS:
            return self
        kept = np.argpartition(self.priority, MAX_ROWS)[:MAX_ROWS]
        return RowSample(self.priority[kept], self.number[kept], self.rows.iloc[kept])


class FrameSource:
    """The partitions of a Dask frame."""

    def __init__(self, frame: Any) -> None:
        self._columns = list(frame.columns)
        self._parts = frame.to_delayed()

    def sketch(self, encoder: Encoder) -> TableSketch:
        """Summarise all rows for an encoder."""
        node = _node(encoder)
        parts = [
            delayed(_sketched)(part, node, self._columns, number)
            for number, part in enumerate(self._parts)
        ]
        sketch: TableSketch = _sum(parts)
        if not sketch.rows:
            raise DomainError("the frame has no rows; there is nothing to learn from")
        return sketch

    def encoded(self, encoder: Encoder) -> FrameChunks:
        """Encode all rows, where they are."""
        node = _node(encoder)
        parts = [delayed(_encoded)(part, node, number) for number, part in enumerate(self._parts)]
        return FrameChunks(dask.persist(*parts))


class FrameChunks:
    """Encoded partitions, on the workers."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self._parts = parts
        lengths = dask.compute(*map(delayed(len), parts))
        self._first = [sum(lengths[:i]) for i in range(len(lengths))]
        self.n_rows = sum(lengths)

    def close(self) -> None:
        """Let the workers forget them."""
        self._parts = ()

    def total(self, summarise: Callable[[Ints, int], Summary]) -> Summary:
        """Add up a summary of all partitions: of their values and the number of their first row."""
        node = _node(summarise)
        parts = zip(self._parts, self._first, strict=True)
        total: Summary = _sum([delayed(_summarised)(codes, first, node) for codes, first in parts])
        return total


def _node(value: Any) -> Any:
    """Return a node of a graph that goes to each worker once."""
    return delayed(value, traverse=False, pure=False)


def _sum(parts: list[Any]) -> Any:
    """Add up in pairs, neighbours first."""
    while len(parts) > 1:
        pairs = [delayed(add)(*parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[2 * len(pairs) :]
    return dask.compute(parts[0])[0]


def _sketched(part: Any, encoder: Encoder, columns: list[str], number: int) -> TableSketch:
    lost = [name for name in columns if name not in part.columns]
    if lost:
        problem = f"it has no column {lost[0]!r}, which the frame has"
        raise BatchError(number, None, None, problem)
    return read_batch(number, None, encoder.sketch, part[columns])


def _encoded(part: Any, encoder: Encoder, number: int) -> Ints:
    return read_batch(number, None, encoder.codes, part)


def _summarised(codes: Ints, first: int, summarise: Callable[[Ints, int], Any]) -> Any:
    with config_context(threads=1):  # a task is to take one core
        return summarise(codes, first)
