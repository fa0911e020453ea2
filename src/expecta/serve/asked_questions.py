"""Turn requests into questions: their fields are the arguments of the library's methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from expecta.ask.asking import Asking
from expecta.ask.groups import Comparison, Group
from expecta.ask.printed_answer import PrintedAnswer, plain
from expecta.serve.served_model import ServedModel

JsonGroup = str | dict[str, Any] | None
JsonRowOrRows = dict[str, Any] | list[dict[str, Any]]
GROUPS = {"query", "given", "a", "b", "row_or_query"}  # arguments that are groups
ROWS = {"rows", "row"}  # and those that are rows
RENAMED = {"row_or_query": "known"}  # fields that have another name than the argument
TYPES: dict[str, Any] = {  # of further arguments, by their annotations
    "bool": bool,
    "float": float,
    "float | None": float | None,
    "int": int,
    "int | None": int | None,
    "str": str,
    "str | None": str | None,
    "str | Sequence[str]": str | list[str],
    "Mapping[str, float] | None": dict[str, float] | None,
}


class StrictModel(BaseModel):
    """A request: other fields than these are refused, and so are infinite numbers."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=False)


@dataclass(frozen=True)
class AskedQuestion:
    """A question that a service answers, after a method of `Asking`.

    Attributes
    ----------
    path
        The last part of its address.
    method
        What is asked, a method of `Asking`.
    request
        What its body holds.
    """

    path: str
    method: Callable[..., Any]
    request: type[StrictModel]

    @classmethod
    def of(cls, method: Callable[..., Any]) -> AskedQuestion:
        """Read the fields of a request off a method's signature, so that they are its arguments."""
        fields: dict[str, Any] = {}
        for name, parameter in list(inspect.signature(method).parameters.items())[1:]:
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                continue
            default = ... if parameter.default is inspect.Parameter.empty else parameter.default
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                fields[name] = (list[str], Field(min_length=1, max_length=8))
            elif name in GROUPS:
                fields[RENAMED.get(name, name)] = (JsonGroup, default)
            elif name in ROWS:
                fields[name] = (JsonRowOrRows if default is ... else JsonRowOrRows | None, default)
            else:
                fields[name] = (_type(parameter.annotation), default)
        if method in (Asking.ask, Asking.compare):
            about = "Whether to add the distribution of the output, as a curve."
            fields["curve"] = (bool, Field(False, description=about))
        words = method.__name__.split("_")
        request = create_model(
            "".join(map(str.title, words)) + "Request", __base__=StrictModel, **fields
        )
        return cls("-".join(words), method, request)

    def answer(self, served: ServedModel, request: StrictModel) -> dict[str, Any]:
        """Ask, and return what JSON holds of the answer."""
        if self.path != "outliers":
            served.check_predicts()
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for name, parameter in list(inspect.signature(self.method).parameters.items())[1:]:
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                continue
            value = getattr(request, RENAMED.get(name, name))
            if name in GROUPS:
                value = read_group(served, value)
            elif name in ROWS and value is not None:
                value = read_rows(served, value)
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                positional += value
            elif parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                positional.append(value)
            else:
                named[name] = value
        if self.path == "outliers":
            return served.outliers(named["rows"])
        answer = getattr(served.model, self.method.__name__)(*positional, **named)
        return json_answer(answer, curve=getattr(request, "curve", False))


def _type(annotation: Any) -> Any:
    """Return the type of a field, from an annotation as text; anything where it is another."""
    return TYPES.get(str(annotation), Any)


def json_answer(answer: PrintedAnswer, *, curve: bool = False) -> dict[str, Any]:
    """Return an answer as ``to_dict`` does; with ``curve``, distributions too."""
    document = answer.to_dict()
    if curve and isinstance(answer, Group):
        document["curve"] = group_curve(answer)
    elif curve and isinstance(answer, Comparison):
        for name in ("a", "b"):
            document[name]["curve"] = group_curve(getattr(answer, name))
    return document


def group_curve(group: Group) -> dict[str, list[float]]:
    """Return a grid of outputs, and the share of a group at or below each."""
    x, below = group.curve()
    return {"x": plain(x), "cdf": plain(below)}


def read_group(served: ServedModel, given: JsonGroup) -> Any:
    """Return a group as the library takes it."""
    return served.rows.facts(given) if isinstance(given, dict) else given


def read_rows(served: ServedModel, given: JsonRowOrRows) -> Any:
    """Return rows as the library takes them."""
    if isinstance(given, dict):
        return served.rows.single(given)
    return served.rows.table([served.rows.single_cells(row, i) for i, row in enumerate(given)])


QUESTIONS = [
    AskedQuestion.of(method)
    for method in (
        Asking.ask,
        Asking.compare,
        Asking.split,
        Asking.dependence,
        Asking.next_question,
        Asking.stability,
        Asking.sufficient,
        Asking.shapley,
        Asking.disparities,
        Asking.outliers,
    )
]
