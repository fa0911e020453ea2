"""Read a fitted model: unwrap it and ask every reader in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from expecta.readers import (
    Unreadable,
    catboost,
    ebm,
    lightgbm,
    linear_models,
    sklearn_trees,
    xgboost,
)
from expecta.readers.forms import Categories, Form
from expecta.readers.library_class import what_is_changed
from expecta.readers.unwrap import unwrap

READERS: tuple[Callable[[Any, Categories | None], Form | None], ...] = (
    linear_models.read,
    sklearn_trees.read,
    xgboost.read,
    lightgbm.read,
    ebm.read,
    catboost.read,
)


class ReadModel(NamedTuple):
    """The transformers of a model's inputs, in order, and the form of what follows them."""

    steps: tuple[Any, ...]
    form: Form


def read(model: Any, categories: Categories) -> ReadModel:
    """Read a model; ``categories`` are the values of raw columns, by position of the column.

    Raises
    ------
    Unreadable
        If no reader knows it, or not with these options.
    """
    unwrapped = unwrap(model)
    for reader in READERS:
        form = reader(unwrapped.model, categories)
        if form is None:
            continue
        if form.categories and unwrapped.steps:
            raise Unreadable(
                "the model takes categories as they are, behind transformers; sampling is used "
                "instead"
            )
        return ReadModel(unwrapped.steps, unwrapped.target.applied(form))
    why = what_is_changed(unwrapped.model)
    raise Unreadable(
        f"the inside of a {type(unwrapped.model).__name__} is not known"
        + (f", since {why}" if why else "")
        + "; sampling is used instead"
    )
