"""The command line: ``expecta fit table.csv --target price``, and questions about the model."""

from __future__ import annotations

import gc
import sys

__all__ = ["main"]

GARBAGE = 50_000  # objects between collections: nearly all that a command makes stays


def main() -> None:
    """Run the command line; what it needs beside the library is in ``expecta[cli]``."""
    gc.set_threshold(GARBAGE)
    try:
        from expecta.cli.app import app
    except ModuleNotFoundError as missing:
        if missing.name not in ("typer", "click"):
            raise
        sys.exit("error: the command line needs typer and pyarrow: pip install 'expecta[cli]'")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # terminals that lack a letter show a ? instead
            stream.reconfigure(errors="replace")
    app(prog_name="expecta")
