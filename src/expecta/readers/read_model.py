"""From a fitted model to its form: every reader is asked in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from expecta.readers import (
    Unreadable,
    catboost,
    ebm,
    lightgbm,
    linear_models,
    sklearn_trees,
    xgboost,
)
from expecta.readers.forms import Form
from expecta.readers.unwrap import Unwrapped, unwrap

__all__ = ["Read", "read"]

READERS = (linear_models, sklearn_trees, xgboost, lightgbm, ebm)


@dataclass(frozen=True, eq=False)
class Read:
    """A model taken apart, its form, and the categories that it knows by places in a list."""

    parts: Unwrapped
    form: Form
    listed: Mapping[int, Sequence[Any]]


def read(model: Any, values: Mapping[int, Sequence[Any]]) -> Read:
    """Read a model.

    ``values`` are the categories of raw columns: one library keeps none itself.

    Raises
    ------
    Unreadable
        If no reader knows it, or not with these options.
    """
    parts = unwrap(model)
    for reader in READERS:
        form = reader.read(parts.final)
        if form is not None:
            listed = {} if reader is linear_models else reader.feature_values(parts.final)
            break
    else:
        form = catboost.read(parts.final, values)
        listed = catboost.feature_values(parts.final, values)
    if form is not None:
        if listed and parts.steps:
            raise Unreadable(
                "the model takes categories as they are, behind transformers; sampling is used "
                "instead"
            )
        return Read(parts, parts.target.applied(form), listed)
    raise Unreadable(
        f"the inside of a {type(parts.final).__name__} is not known; sampling is used instead"
    )
