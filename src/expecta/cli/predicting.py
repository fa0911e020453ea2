"""Define ``expecta predict``: add a model's predictions to the rows of a table."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from expecta.cli.options import Json, Model, Table
from expecta.cli.output import document, note, writable
from expecta.common.errors import DomainError


def predict(
    model: Model,
    table: Table,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="Where to: .csv, .tsv, .parquet, .arrow; - is standard output."
        ),
    ] = "-",
    std: Annotated[
        bool, typer.Option("--std", help="Add the spread over the unknown cells (numbers).")
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(metavar="COVERAGE", help="Add an interval, such as 0.9 (numbers)."),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each class (classes).")
    ] = False,
    json: Json = False,
) -> None:
    """Predict for each row of a table; empty cells are unknown, and averaged over.

    The table comes back with columns added: the prediction, exact given the learned density,
    and what the options ask for.
    """
    from expecta.cli import table_files
    from expecta.cli.models import load, read_rows

    if output != "-":
        writable(output)
    as_text = table_files.write_format(output) in ("csv", "tsv")
    _check_coverage(interval)
    estimator = load(model)
    given, rows = read_rows(estimator, table, typed=not as_text)
    added = predictions(estimator, rows, std=std, interval=interval, proba=proba)
    names = []
    for name, values in added.items():
        names.append(table_files.fresh_name(name, given.column_names))
        given = given.append_column(names[-1], [values])
    if json and output == "-":
        document({"columns": names, "rows": given.select(names).to_pylist()})
        return
    table_files.write(given, output)
    if json:
        document({"written": output, "columns": names, "rows": given.num_rows})
    elif output != "-":
        note(f"{given.num_rows} rows with {', '.join(names)} are in {output}")


def _check_coverage(interval: float | None) -> None:
    if interval is not None and not 0 < interval < 1:
        remedy = f"; write it as a share: {interval / 100:g}" if 1 < interval < 100 else ""
        raise DomainError(f"coverage lies between 0 and 1, not {interval:g}{remedy}")


def predictions(
    model: Any, rows: Any, *, std: bool = False, interval: float | None = None, proba: bool = False
) -> dict[str, Any]:
    """Return the columns to add, by name."""
    import pyarrow as pa

    from expecta.estimators.row_predictions import predict_rows

    predicted = predict_rows(model, rows, std=std, interval=interval, proba=proba)
    if predicted.interval is not None:
        infinite = int(np.count_nonzero(np.isinf(predicted.interval).any(axis=1)))
        if infinite:
            note(
                f"the interval is infinite in {infinite} row(s): there are too few training "
                f"rows for {interval:.0%} intervals; learn from more, or lower the coverage"
            )
    columns = predicted.columns()
    return {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
