"""Predict for streams of Arrow batches: one batch in memory at a time, in their order."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from os import PathLike
from typing import Any, NamedTuple

from expecta.batches.model_cache import load_once
from expecta.common.errors import BatchError, DomainError, MissingColumnsWarning
from expecta.common.text import missing_sentence
from expecta.estimators.expected_estimator import ExpectedEstimator
from expecta.estimators.row_predictions import RowPredictions, check_asked, predict_rows
from expecta.expected.expected_model import ModelRows
from expecta.tables.row_reader import arrow_columns, first_bad_row


def predict_batches(
    model: ExpectedEstimator | str | PathLike[str],
    batches: Iterable[Any],
    *,
    std: bool = False,
    interval: float | None = None,
    quantiles: Sequence[float] | None = None,
    proba: bool = False,
    error: bool = False,
) -> Iterator[Any]:
    """Add predictions to a stream of Arrow record batches.

    Yields one batch for each, in their order, with the columns that ``expecta predict`` adds
    behind its own: memory is that of one batch. It is what Spark's ``mapInArrow`` and its like
    take. Null cells are unknown, and averaged over.

    Parameters
    ----------
    model
        An estimator that has learned, or the path of its file, which a process loads once.
    batches
        Record batches with the same columns, whose types are those of the first; empty ones
        too. A column that they lack is unknown, with a `MissingColumnsWarning`; a category
        that training did not have is unknown.
    std, interval, quantiles
        Whether to add the spread of the model's output over the unknown inputs, an interval of
        this coverage, and quantiles of these levels. Regression only.
    proba
        Whether to add the probability of each class. Classification only.
    error
        Whether to add how far off predictions may be: 0 where they are exact.

    Yields
    ------
    pyarrow.RecordBatch
        The batch and the predictions: those of ``predict``, null for rows that
        are impossible under the density.

    Raises
    ------
    BatchError
        A batch cannot be read: its number, and the first row at fault.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from expecta import CircuitRegressor, predict_batches
    >>> from expecta.densities import ChowLiu
    >>> age = [20, 30, 40, 50] * 10
    >>> model = CircuitRegressor(density=ChowLiu(), max_splits=1).fit({"age": age}, age)
    >>> rows = pa.table({"age": [20, None, 50]})
    >>> [batch.num_rows for batch in predict_batches(model, rows.to_batches(max_chunksize=2))]
    [2, 1]
    """
    predictor = BatchPredictor(
        load_once(model) if isinstance(model, str | PathLike) else model,
        std=std,
        interval=interval,
        quantiles=quantiles,
        proba=proba,
    )
    first: Any = None
    for batch in batches:
        first = batch.schema if first is None else first
        same = predictor.locate(partial(_as_first, batch, first))
        added = predictor(batch).predicted.to_arrow(error=error)
        yield with_columns(same, added)


class PredictedRows(NamedTuple):
    """Rows as the model reads them, and what it predicts."""

    rows: ModelRows
    predicted: RowPredictions


class BatchPredictor:
    """Predicts for one batch after the other; an error tells which, and its first row at fault.

    Parameters
    ----------
    model
        An estimator that has learned.
    asked
        What to predict; see `predict_rows`.
    """

    def __init__(self, model: ExpectedEstimator, **asked: Any) -> None:
        check_asked(model, **asked)
        self.model, self.asked = model, asked
        self.names = [column.name for column in model.encoder_.columns_]
        self.n_batches = self.n_rows = 0

    def __call__(self, batch: Any) -> PredictedRows:
        """Predict for the next batch, an Arrow batch or table."""
        rows = self.locate(lambda: self._read(batch), batch)
        try:
            predicted = predict_rows(self.model, rows, **self.asked)
        except Exception as problem:
            problem.add_note(f"in batch {self.n_batches}")
            raise
        self.skip(batch)
        return PredictedRows(rows, predicted)

    def skip(self, batch: Any) -> None:
        """Count a batch whose predictions are known."""
        self.n_batches += 1
        self.n_rows += batch.num_rows

    def locate(self, read: Callable[[], Any], batch: Any = None) -> Any:
        """Return what is read of the batch; an error says where it is at fault."""
        try:
            return read()
        except DomainError as problem:
            row = None
            if batch is not None:
                with warnings.catch_warnings():  # what is missing was said of the whole batch
                    warnings.simplefilter("ignore", MissingColumnsWarning)
                    row = first_bad_row(lambda a, n: self._read(batch.slice(a, n)), batch.num_rows)
            raise BatchError(self.n_batches, row, self.n_rows, str(problem)) from None

    def _read(self, batch: Any) -> ModelRows:
        table, absent = arrow_columns(batch, self.names)
        if absent and not self.n_batches:
            warnings.warn(missing_sentence(absent), MissingColumnsWarning, stacklevel=5)
        return self.model.expected_model.rows(table)


def _as_first(batch: Any, first: Any) -> Any:
    """Return a batch with the types of the first; refuse other columns."""
    import pyarrow as pa

    if batch.schema.equals(first):
        return batch
    given, wanted = batch.schema.names, first.names
    if given != wanted:
        lacks = [name for name in wanted if name not in given]
        more = [name for name in given if name not in wanted]
        what = (
            f"has no column {lacks[0]!r}, which the first batch has"
            if lacks
            else f"has a column {more[0]!r}, which the first batch lacks"
            if more
            else "has its columns in another order than the first batch"
        )
        raise DomainError(f"it {what}; give all batches the same columns")
    try:
        return batch.cast(first)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        field = next((f for f in first if batch.schema.field(f.name).type != f.type), None)
        if field is None:
            raise DomainError(
                "it has a null in a column that the first batch says has none; "
                "give all batches a schema that allows nulls"
            ) from None
        raise DomainError(
            f"column {field.name!r} is {batch.schema.field(field.name).type} here and "
            f"{field.type} in the first batch; give all batches the same types"
        ) from None


def with_columns(batch: Any, added: Any) -> Any:
    """Return a batch with further columns, under names that it does not have yet."""
    for name, values in zip(added.schema.names, added.columns, strict=True):
        batch = batch.append_column(fresh_name(name, batch.schema.names), values)
    return batch


def fresh_name(wanted: str, taken: Iterable[str]) -> str:
    """Return a name for a column that is not taken."""
    used, name, number = set(taken), wanted, 2
    while name in used:
        name, number = f"{wanted}_{number}", number + 1
    return name
