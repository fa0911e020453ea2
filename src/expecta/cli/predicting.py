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

    target = model.target_name_
    classes = getattr(model, "classes_", None)
    if classes is None:
        if proba:
            raise DomainError("--proba is for classes, and this model predicts numbers; try --std")
        columns = {f"{target}_predicted": model.predict(rows)}
        if std:
            columns[f"{target}_std"] = model.predict(rows, return_std=True)[1]
        if interval is not None:
            ends = model.predict_interval(rows, interval)
            infinite = int(np.count_nonzero(np.isinf(ends).any(axis=1)))
            if infinite:
                note(
                    f"the interval is infinite in {infinite} row(s): there are too few training "
                    f"rows for {interval:.0%} intervals; learn from more, or lower the coverage"
                )
            columns |= {f"{target}_low": ends[:, 0], f"{target}_high": ends[:, 1]}
        return {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
    if std or interval is not None:
        raise DomainError(
            "--std and --interval are for numbers, and this model predicts classes; try --proba"
        )
    shares = model.predict_proba(rows)
    chosen = classes[shares.argmax(axis=1)].tolist()
    impossible = np.isnan(shares).any(axis=1)
    named = {f"{target}_predicted": pa.array(chosen, mask=impossible)}
    if proba:
        for i, label in enumerate(classes.tolist()):
            named[f"{target}_probability_{label}"] = pa.array(shares[:, i], from_pandas=True)
    return named
