"""Gather the commands, and turn their errors into one line each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from expecta import __version__
from expecta.cli import file_commands, fitting, predicting, questions, serving, wrapping
from expecta.cli.csv_options import with_csv_options
from expecta.cli.output import note, one_line, refuse_overwriting


class Commands(TyperGroup):
    """Commands whose errors are one line each, unless ``--debug`` asks for more."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run a command; its errors become exit code 1, warnings of the library notes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_: note(one_line(message))
            try:
                return super().invoke(ctx)
            except (typer.Abort, BrokenPipeError):
                raise
            except Exception as problem:
                _tell_usage(problem)
                # what typer raises knows its exit code: help, a finished command
                if hasattr(problem, "exit_code") or ctx.params.get("debug"):
                    raise
                typer.echo(f"error: {one_line(problem)}", err=True)
                raise typer.Exit(1) from None

    def make_context(self, *words: Any, **more: Any) -> Any:
        """Read the options that come before a command."""
        try:
            return super().make_context(*words, **more)
        except Exception as problem:
            _tell_usage(problem)
            raise


def _is_usage(problem: Exception) -> bool:
    """Whether a command was used wrongly; the class is typer's or click's, by typer's version."""
    return isinstance(problem, typer.BadParameter.__mro__[1])


def _tell_usage(problem: Any) -> None:
    """Print in one line how a command is used wrongly; nothing of other problems."""
    if type(problem).__name__ == "NoArgsIsHelpError" or not _is_usage(problem):
        return
    words = "expecta" if problem.ctx is None else problem.ctx.command_path
    path = " ".join(["expecta", *words.split()[1:]])
    message = one_line(problem.format_message()).removesuffix(".")
    typer.echo(f"error: {message}; see: {path} --help", err=True)
    raise typer.Exit(problem.exit_code) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="What does a model predict, and how sure is it, when some of its inputs are unknown?",
    epilog="Start with: expecta demo",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"expecta {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show where an error comes from.", envvar="EXPECTA_DEBUG"),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take options that all commands have."""


INPUTS = ("model", "table", "file", "source", "vtree_file", "token_file")
OUTPUTS = ("output", "plot")


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command not write over what it reads."""

    @wraps(command)
    def run(**given: Any) -> None:
        for output in filter(None, map(given.get, OUTPUTS)):
            refuse_overwriting(output, map(given.get, INPUTS))
        command(**given)

    return run


PANELS: Mapping[str, Mapping[str, Callable[..., None]]] = {
    "Learn and predict": {
        "fit": fitting.fit,
        "wrap": wrapping.wrap,
        "predict": predicting.predict,
    },
    "Ask a model": {**questions.COMMANDS, "serve": serving.serve},
    "Files": file_commands.FILE_COMMANDS,
    "Try it": file_commands.TRY_COMMANDS,
}
for panel, commands in PANELS.items():
    for name, command in commands.items():
        app.command(name, rich_help_panel=panel)(with_csv_options(_guarded(command)))
