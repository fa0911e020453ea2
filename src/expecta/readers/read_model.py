"""Read a fitted model: unwrap it and ask every reader in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.exceptions import NotFittedError

from expecta.readers import (
    Unreadable,
    catboost,
    ebm,
    lightgbm,
    linear_models,
    model_files,
    sklearn_trees,
    xgboost,
)
from expecta.readers.forms import Categories, Form
from expecta.readers.library_class import untested_version, what_is_changed
from expecta.readers.unwrap import unwrap

READERS: tuple[Callable[[Any, Categories | None], Form | None], ...] = (
    linear_models.read,
    sklearn_trees.read,
    xgboost.read,
    lightgbm.read,
    ebm.read,
    catboost.read,
    model_files.read,
)


class ReadModel(NamedTuple):
    """The transformers of a model's inputs, in order, and the form of what follows them.

    ``tried`` says why it is not proved that the form is right, a reason each.
    """

    steps: tuple[Any, ...]
    form: Form
    tried: tuple[str, ...]


def read(model: Any, categories: Categories) -> ReadModel:
    """Read a model; ``categories`` are the values of raw columns, by position of the column.

    Raises
    ------
    Unreadable
        If no reader knows it, or not with these options.
    """
    unwrapped = unwrap(model)
    versions = map(untested_version, (model, unwrapped.model, *unwrapped.steps))
    tried = tuple(
        f"{version} is newer than the versions that readers know"
        for version in dict.fromkeys(filter(None, versions))
    )
    for reader in READERS:
        try:
            form = reader(unwrapped.model, categories)
        except (Unreadable, NotFittedError):
            raise
        except Exception as problem:
            if not tried:
                raise
            raise Unreadable(f"{tried[0]} ({problem}); sampling is used instead") from problem
        if form is None:
            continue
        if form.categories and unwrapped.steps:
            raise Unreadable(
                "the model takes categories as they are, behind transformers; sampling is used "
                "instead"
            )
        return ReadModel(unwrapped.steps, unwrapped.target.applied(form), tried)
    why = what_is_changed(unwrapped.model)
    raise Unreadable(
        f"the structure of a {type(unwrapped.model).__name__} is not known"
        + (f", since {why}" if why else "")
        + "; sampling is used instead"
    )
