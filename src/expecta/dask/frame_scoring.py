"""Predict for Dask frames, score their rows and average over groups of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dask import delayed
from expecta.ask.language.query import Query
from expecta.ask.printed_answer import PrintedAnswer
from expecta.common.errors import BatchError, DomainError
from expecta.common.settings import config_context
from expecta.common.text import number
from expecta.dask.shared_model import SharedModel
from expecta.estimators.row_predictions import RowPredictions, check_asked, predict_rows
from expecta.queries.impossible import OneWarning
from expecta.tables.row_reader import first_bad_row

Answer = Callable[[Any, Any], Any]  # from a model and its columns of some rows


def predict(
    model: Any,
    frame: Any,
    *,
    std: bool = False,
    interval: float | None = None,
    quantiles: Sequence[float] | None = None,
    proba: bool = False,
    error: bool = False,
) -> Any:
    """Predict for a Dask frame: a lazy frame of predictions with the same partitions and index.

    The columns are those that ``expecta predict`` adds, and the numbers those of ``predict``,
    whatever the partitions (of models fitted elsewhere, to rounding).
    ``frame.assign(name=predicted["name"])`` adds one to the frame, partition by partition; ``join``
    multiplies rows where the index is not unique, as of several files that were read.

    Parameters
    ----------
    model
        An estimator that has learned, or the path of its file, which all workers can read.
    frame
        A Dask frame. Columns of the model that it lacks are unknown, with a
        `MissingColumnsWarning`; further ones are ignored.
    std, interval, quantiles, proba, error
        What to add; see `predict_batches`.

    Returns
    -------
    dask.dataframe.DataFrame
        Lazy.

    Raises
    ------
    BatchError
        When computed: a partition cannot be read. Its number, and the first row at fault.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from expecta import CircuitRegressor, Independent
    >>> rows = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0] * 10})
    >>> model = CircuitRegressor(density=Independent()).fit(rows, rows["age"] / 10)
    >>> frame = dd.from_pandas(rows, npartitions=2)
    >>> predict(model, frame).compute().shape
    (40, 1)
    """
    asked: dict[str, Any] = {
        "std": std,
        "interval": interval,
        "quantiles": quantiles,
        "proba": proba,
    }
    shared = SharedModel.of(model)
    check_asked(shared.load(), **asked)
    return _over_partitions(shared, frame, partial(_predictions, asked=asked, error=error))


def predict_interval(model: Any, frame: Any, coverage: float = 0.9) -> Any:
    """Return intervals of the target: a lazy frame of ``…_low`` and ``…_high``.

    Parameters
    ----------
    model
        An estimator that has learned, or the path of its file.
    frame
        A Dask frame.
    coverage
        The share that an interval is to hold.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from expecta import CircuitRegressor, Independent
    >>> rows = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0] * 10})
    >>> model = CircuitRegressor(density=Independent()).fit(rows, rows["age"] / 10)
    >>> frame = dd.from_pandas(rows, npartitions=2)
    >>> predict_interval(model, frame, 0.8).compute().shape
    (40, 2)
    """
    columns = predict(model, frame, interval=coverage)
    return columns[list(columns.columns[-2:])]


def predict_proba(model: Any, frame: Any) -> Any:
    """Return the probability of each class: a lazy frame with a column for each.

    Parameters
    ----------
    model
        An estimator that has learned, or the path of its file.
    frame
        A Dask frame.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from expecta import CircuitClassifier, Independent
    >>> rows = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0] * 10})
    >>> model = CircuitClassifier(density=Independent()).fit(rows, ["a", "a", "b", "b"] * 10)
    >>> frame = dd.from_pandas(rows, npartitions=2)
    >>> predict_proba(model, frame).compute().shape
    (40, 2)
    """
    columns = predict(model, frame, proba=True)
    return columns[list(columns.columns[1:])]


def score_samples(model: Any, frame: Any) -> Any:
    """Return the log-probability of the known cells of each row: a lazy series.

    ``model`` is an estimator or a density. Exact, given the density.

    Parameters
    ----------
    model
        An estimator that has learned, or the path of its file.
    frame
        A Dask frame.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from expecta import CircuitRegressor, Independent
    >>> rows = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0] * 10})
    >>> model = CircuitRegressor(density=Independent()).fit(rows, rows["age"] / 10)
    >>> frame = dd.from_pandas(rows, npartitions=2)
    >>> score_samples(model, frame).compute().shape
    (40,)
    """
    return _over_partitions(SharedModel.of(model), frame, _scores)


def ask(model: Any, frame: Any, query: Any = None, /, *, of: Any = None, **facts: Any) -> Any:
    """Average the model's output over the rows of a Dask frame that are in a group.

    The group is what the method ``ask`` takes; a row whose known cells do not decide whether it is
    in the group is not. Unknown cells of a row are averaged over.

    Parameters
    ----------
    model
        An estimator that has learned, or the path of its file.
    frame
        A Dask frame.
    query
        The group: a text or a mapping; None is every row.
    of
        The class, or the index of the output.
    **facts
        Further facts, by column.

    Returns
    -------
    Delayed
        Its ``compute()`` gives a `RowsGroup`. Cost: one prediction for each row of the group.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from expecta import CircuitRegressor, Independent
    >>> rows = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0] * 10})
    >>> model = CircuitRegressor(density=Independent()).fit(rows, rows["age"] / 10)
    >>> frame = dd.from_pandas(rows, npartitions=2)
    >>> ask(model, frame, "age < 35").compute().rows
    20
    """
    shared = SharedModel.of(model)
    subject = shared.load().expected_output(of)
    condition = Query.read(query, subject.encoder)
    if facts:
        condition = condition & Query.read(facts, subject.encoder)
    summed = partial(_sums, query=query, facts=facts, output=subject.context.output)
    parts = _over_partitions(shared, frame, summed)
    return delayed(_group)(parts, str(condition), subject.name)


@dataclass(frozen=True, eq=False)
class RowsGroup(PrintedAnswer):
    """A model's output over the rows of a frame that are in a group.

    Attributes
    ----------
    query, name
        The group in words, and what the model's output is called.
    rows, of_rows
        How many rows are in the group, and how many there are.
    impossible
        Rows of the group that are impossible under the density, which count for nothing.
    mean, standard_error, std
        Mean of the expected outputs, its standard error by their spread, and that spread; NaN of
        no row, and of a single one.
    """

    query: str
    name: str
    rows: int
    of_rows: int
    impossible: int
    mean: float
    standard_error: float
    std: float

    def head(self) -> list[str]:
        """Return the sentence before the table."""
        return [f"{self.name} where {self.query}, over {self.rows:,} of {self.of_rows:,} rows"]

    def lines(self) -> Mapping[str, Sequence[Any]]:
        """Return a line for each number."""
        lines = {"mean": self.mean, "standard error": self.standard_error, "spread": self.std}
        return {"of the model's output": list(lines), "": list(map(number, lines.values()))}


def _over_partitions(shared: SharedModel, frame: Any, answer: Answer) -> Any:
    """Answer for each partition; the metadata are the answer for no rows."""
    model = shared.load()
    given = list(frame.columns)
    meta = answer(model, _columns_of(model, frame._meta, given, None, warn=True))
    return frame.map_partitions(_answered, shared.node(), answer, given, meta=meta)


def _answered(
    part: Any,
    shared: SharedModel,
    answer: Answer,
    given: Sequence[str],
    partition_info: Mapping[str, Any] | None = None,
) -> Any:
    """Answer for one partition, on a worker."""
    model = shared.load()
    number = None if partition_info is None else partition_info["number"]
    columns = _columns_of(model, part, given, number)
    try:
        with config_context(threads=1):  # a task is to take one core
            return answer(model, columns)
    except DomainError as problem:
        read = _encoder(model).codes
        row = first_bad_row(lambda a, n: read(columns.iloc[a : a + n]), len(columns))
        raise BatchError(number or 0, row, None, str(problem)) from None


def _encoder(model: Any) -> Any:
    return model.encoder_


def _columns_of(
    model: Any, part: Any, given: Sequence[str], number: int | None, *, warn: bool = False
) -> Any:
    """Return the model's columns of a partition; those that the whole frame lacks are unknown."""
    lost = [name for name in given if name not in part.columns]
    if lost:
        raise BatchError(
            number or 0, None, None, f"it has no column {lost[0]!r}, which the frame has"
        )
    names = _encoder(model).feature_names_in_.tolist()
    if warn:  # once, and with misspelt names refused
        _encoder(model).codes(part)
    return part.reindex(columns=names)


def _predictions(model: Any, rows: Any, *, asked: Mapping[str, Any], error: bool) -> Any:
    predicted = predict_rows(model, rows, **asked)
    columns = predicted.columns(error=error)
    labels = _label_type(predicted)
    return pd.DataFrame(
        {
            name: pd.Series(values, rows.index, labels if values.dtype == object else np.float64)
            for name, values in columns.items()
        },
        index=rows.index,
    )


def _label_type(predicted: RowPredictions) -> Any:
    """Return the type of classes, which depends on the model alone."""
    kinds = {type(label) for label in predicted.classes or ()}
    types = {bool: "boolean", int: "Int64", float: "Float64", str: "string"}
    return types.get(kinds.pop(), object) if len(kinds) == 1 else object


def _scores(model: Any, rows: Any) -> Any:
    return pd.Series(model.score_samples(rows), rows.index, np.float64, name="log_prob")


def _sums(model: Any, rows: Any, *, query: Any, facts: Mapping[str, Any], output: int) -> Any:
    """Return the sums of a partition over its rows in the group, as one line."""
    encoder = model.expected_model.density.encoder_
    condition = Query.read(query, encoder)
    if facts:
        condition = condition & Query.read(dict(facts), encoder)
    inside = rows[condition.matches(rows)]
    with OneWarning():
        values = model.expected_model.answer(model.expected_model.rows(inside)).mean[:, output]
    known = values[~np.isnan(values)]
    mean = float(known.mean()) if len(known) else 0.0
    line = {
        "rows": len(known),
        "of_rows": len(rows),
        "impossible": len(values) - len(known),
        "mean": mean,
        "squares": float(np.sum((known - mean) ** 2)),
    }
    return pd.DataFrame({name: [value] for name, value in line.items()}, index=[0])


def _group(parts: Any, query: str, name: str) -> RowsGroup:
    """Join the sums of partitions: the mean of their means, and squares about it."""
    rows, means = parts["rows"].to_numpy(np.float64), parts["mean"].to_numpy()
    n = int(rows.sum())
    mean = math.fsum(rows * means) / n if n else math.nan
    squares = math.fsum(parts["squares"] + rows * (means - mean) ** 2) if n else math.nan
    std = math.sqrt(squares / (n - 1)) if n > 1 else math.nan
    error = std / math.sqrt(n) if n > 1 else math.nan
    of_rows, impossible = int(parts["of_rows"].sum()), int(parts["impossible"].sum())
    return RowsGroup(query, name, n, of_rows, impossible, mean, error, std)
