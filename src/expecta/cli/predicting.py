"""``expecta predict``: the rows of a table with what the model predicts for them."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from expecta.cli.options import Json, Model, Table
from expecta.cli.output import document, note, writable
from expecta.common.errors import DomainError

__all__ = ["predict"]


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
        bool, typer.Option("--std", help="Add the spread over what is unknown (numbers).")
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

    The table comes back with columns added: the prediction, exact for the model and its
    density, and what the options ask for.
    """
    from expecta.cli import tables
    from expecta.cli.models import load, read_rows, read_typed

    if output != "-":
        writable(output)
    as_text = tables.write_format(output) in ("csv", "tsv")
    _check_coverage(interval)
    estimator = load(model)
    given, rows = (read_rows if as_text else read_typed)(estimator, table)
    wanted = predictions(estimator, rows, std=std, interval=interval, proba=proba)
    names = []
    for name, values in wanted.items():
        names.append(tables.fresh_name(name, given.column_names))
        given = given.append_column(names[-1], [values])
    if json and output == "-":
        document({"columns": names, "rows": given.select(names).to_pylist()})
        return
    tables.write(given, output)
    if json:
        document({"written": output, "columns": names, "rows": given.num_rows})
    elif output != "-":
        note(f"{given.num_rows} rows with {', '.join(names)} are in {output}")


def _check_coverage(interval: float | None) -> None:
    if interval is not None and not 0 < interval < 1:
        remedy = f"; write it as a share: {interval / 100:g}" if 1 < interval < 100 else ""
        raise DomainError(f"coverage lies between 0 and 1, not {interval:g}{remedy}")


def _tell_endless(ends: Any, interval: float) -> None:
    """Say that intervals have no ends, where training rows were too few for them."""
    endless = int(np.count_nonzero(np.isinf(ends).any(axis=1)))
    if endless:
        note(
            f"the interval has no ends in {endless} row(s): the training rows are too few to tell "
            f"{interval:.0%} intervals; learn from more, or ask for less"
        )


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
        found = {f"{target}_predicted": model.predict(rows)}
        if std:
            found[f"{target}_std"] = model.predict(rows, return_std=True)[1]
        if interval is not None:
            ends = model.predict_interval(rows, interval)
            _tell_endless(ends, interval)
            found |= {f"{target}_low": ends[:, 0], f"{target}_high": ends[:, 1]}
        return {name: pa.array(values, from_pandas=True) for name, values in found.items()}
    if std or interval is not None:
        raise DomainError(
            "--std and --interval are for numbers, and this model predicts classes; try --proba"
        )
    shares = model.predict_proba(rows)
    chosen = classes[shares.argmax(axis=1)].tolist()
    impossible = np.isnan(shares).any(axis=1)
    columns = {f"{target}_predicted": pa.array(chosen, mask=impossible)}
    if proba:
        for place, label in enumerate(classes.tolist()):
            columns[f"{target}_probability_{label}"] = pa.array(shares[:, place], from_pandas=True)
    return columns
