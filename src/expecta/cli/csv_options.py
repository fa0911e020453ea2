"""Give every command that reads a table the options on how CSV is written."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any

import typer

from expecta.common.errors import DomainError

SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " "}


@dataclass(frozen=True)
class CsvOptions:
    """How CSV is written; None is found out."""

    na: tuple[str, ...] = ()
    decimal: str | None = None
    separator: str | None = None


_options: ContextVar[CsvOptions] = ContextVar("csv_options", default=CsvOptions())  # noqa: B039


def csv_options() -> CsvOptions:
    """Return the options of the command that runs."""
    return _options.get()


@contextmanager
def _given(options: CsvOptions) -> Iterator[None]:
    token = _options.set(options)
    try:
        yield
    finally:
        _options.reset(token)


Na = Annotated[
    list[str] | None,
    typer.Option("--na", metavar="TEXT", help="A text or number that means unknown; repeatable."),
]
Decimal = Annotated[
    str | None, typer.Option("--decimal", metavar="SIGN", help="The decimal sign of CSV: . or ,")
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--separator", metavar="SIGN", help="The separator of CSV cells: a character, or tab."
    ),
]
_TYPES = {"na": Na, "decimal": Decimal, "separator": Separator}


def with_csv_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options, if it reads a table; otherwise the command itself."""
    signature = inspect.signature(command, eval_str=True)
    if "table" not in signature.parameters:
        return command

    @wraps(command)
    def run(
        na: list[str] | None = None,
        decimal: str | None = None,
        separator: str | None = None,
        **given: Any,
    ) -> None:
        with _given(_checked(na, decimal, separator)):
            command(**given)

    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _TYPES.items()
    ]
    parameters = [*signature.parameters.values(), *added]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _checked(na: list[str] | None, decimal: str | None, separator: str | None) -> CsvOptions:
    if decimal not in (None, ".", ","):
        raise DomainError(f"--decimal must be . or , not {decimal!r}")
    separator = SEPARATORS.get(separator or "", separator)
    if separator is not None and (len(separator) != 1 or not separator.isascii()):
        raise DomainError(f"--separator must be one character, or tab, not {separator!r}")
    return CsvOptions(tuple(na or ()), decimal, separator)
