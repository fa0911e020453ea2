"""Define ``expecta predict``: add a model's predictions to the rows of a table, or of many."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from expecta.cli.deferred_modules import defer
from expecta.cli.options import Json, Model, TableOrFolder
from expecta.cli.output import document, note, writable
from expecta.common.errors import DomainError

PART_ROWS = 1 << 20  # about half a minute's work


def predict(
    model: Model,
    table: TableOrFolder,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="The output: .csv, .tsv, .parquet, .arrow; - is standard output. For a folder of "
            "tables, a folder.",
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
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a run that was stopped.")
    ] = False,
    part_rows: Annotated[
        int,
        typer.Option(min=1, help="Number of rows after which results are stored, for --resume."),
    ] = PART_ROWS,
    json: Json = False,
) -> None:
    """Predict for each row of a table; empty cells are unknown, and averaged over.

    The table comes back with columns added: the prediction, exact given the learned density,
    and what the options ask for. Of a folder every table does, in a file of the same name.
    """
    defer("scipy.stats", "pandas")
    from expecta.cli.csv_options import csv_options
    from expecta.cli.models import load
    from expecta.cli.prediction_job import PredictionJob, begin_folder, fingerprint
    from expecta.cli.table_files import write_format

    _check_coverage(interval)
    if resume and "-" in (table, output):
        raise DomainError("--resume needs a table in a file, and an output file: -o FILE")
    folder = table if Path(table).is_dir() else None
    if folder is None:
        write_format(output if output == "-" else str(writable(output)))
    asked = {"std": std, "interval": interval, "proba": proba}
    estimator = load(model)
    how = {"asked": asked, "csv": asdict(csv_options()), "part_rows": part_rows}
    key = {"model": fingerprint(model), **how}
    files = {output: table} if folder is None else begin_folder(folder, output, key, resume=resume)
    with PredictionJob(estimator, asked, files, folder) as job:
        if json and output == "-":
            rows = job.documents(table)
            document({"columns": job.names, "rows": rows})
            return
        for written, path in files.items():
            job.write(path, written, key, resume=resume)
    if json:
        document({"written": output, "columns": job.names, "rows": job.n_rows})
    elif output != "-" and files:
        tables = "" if folder is None else f" of {len(files)} tables"
        note(f"{job.n_rows} rows{tables} with {', '.join(job.names)} are in {output}")
    elif output != "-":
        note(f"every table of {table} already has its predictions in {output}")


def _check_coverage(interval: float | None) -> None:
    if interval is not None and not 0 < interval < 1:
        remedy = f"; write it as a share: {interval / 100:g}" if 1 < interval < 100 else ""
        raise DomainError(f"coverage must be between 0 and 1, not {interval:g}{remedy}")
