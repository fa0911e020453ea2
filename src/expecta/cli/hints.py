"""What to try next with a model: commands that work when they are pasted into a shell."""

from __future__ import annotations

from shlex import quote
from typing import Any

from expecta.ask.language.conditions import quoted
from expecta.ask.language.query import Query
from expecta.common.errors import DomainError
from expecta.estimators.base import CircuitEstimator
from expecta.tables.column import Column

__all__ = ["example", "next_commands"]

TEXTS = ("category", "boolean")


def example(model: CircuitEstimator, table: Any) -> tuple[str, str] | None:
    """Return a column to ask about, categories first, and a condition that can be asked."""
    columns = sorted(model.encoder_.columns_, key=lambda column: column.kind not in TEXTS)
    for column in columns:
        values = table.column(column.name).drop_null()
        if not len(values):
            continue
        condition = _condition(column, values[len(values) // 2].as_py())
        try:
            Query.of(condition, model.encoder_)
        except DomainError:
            continue  # such as a category that is rare, or a name that a query cannot have
        return column.name, condition
    return None


def _condition(column: Column, value: object) -> str:
    sign = "==" if column.kind in TEXTS else "<="
    shown = str(value)
    if not isinstance(value, bool | int | float):
        # a shell's single quotes go about double quotes
        shown = repr(shown) if '"' in shown or "\\" in shown else f'"{shown}"'
    return f"{quoted(column.name)} {sign} {shown}"


def next_commands(learned: dict[str, Any], table: str) -> list[str]:
    """Return commands to try after a fit; every name and condition is one word to a shell."""
    path, rows = quote(learned["model"]), "new.csv" if table == "-" else quote(table)
    classes = learned.get("classes")
    found = [f"predict {path} {rows} {'--interval 0.9' if classes is None else '--proba'}"]
    if learned["example"] is not None and (classes is None or len(classes) > 1):
        column, condition = map(quote, learned["example"])
        of = f" --of {quote(str(classes[0]))}" if classes is not None and len(classes) > 2 else ""
        found += [f"ask {path} {condition}{of}", f"split {path} {column}{of}"]
    return [f"expecta {line}" for line in [*found, f"report {path} -o report.html"]]
