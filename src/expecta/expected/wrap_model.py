"""Read a fitted model and write it over a density; where that fails, have it sampled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Floats
from expecta.common.errors import DomainError
from expecta.densities.density import Density
from expecta.expected.additive_margin import AdditiveMargin, additive_of_linear
from expecta.expected.compiled_trees import CompiledTrees
from expecta.expected.exact_route import ExactRoute
from expecta.expected.margin import Margin
from expecta.expected.model_cells import ModelCells
from expecta.expected.reading_check import ReadingDisagrees, check_reading
from expecta.expected.refusals import ask_complete
from expecta.expected.row_template import RowTemplate, evenly
from expecta.expected.tree_margin import TreeMargin
from expecta.expected.wrapped_model import WrappedModel
from expecta.queries.impossible import level_of_caller
from expecta.readers import Unreadable, frames
from expecta.readers.features import Features
from expecta.readers.forms import Form, Trees
from expecta.readers.read_model import read
from expecta.tables.table import Table

REMADE_TOL = 1e-6  # relative: what 32-bit numbers have
LINEAR_BINS = 256  # of a number that a linear model adds up
SAME_CLASS_SHARE = 0.98  # of complete rows, whose class is that of the largest output
SPREAD_ROWS = 2000  # training rows that the model's own spread is taken over


def classifies(model: Any) -> bool:
    """Whether a model has classes, by its tags, or by what it shows where it has none.

    Not by ``is_classifier``: scikit-learn 1.7 warns of a model without tags and takes it for none.
    """
    try:
        kind = model.__sklearn_tags__().estimator_type
    except (AttributeError, TypeError):
        kind = getattr(model, "_estimator_type", None)  # older CatBoost has this
        return hasattr(model, "classes_") if kind is None else kind == "classifier"
    return kind == "classifier"


class ModelCalls:
    """How a fitted model is called, and what its outputs are."""

    def __init__(self, model: Any) -> None:
        self.model, self.name = model, type(model).__name__
        self.classes = np.asarray(model.classes_) if classifies(model) else None
        self.margins_only = self.classes is not None and not hasattr(model, "predict_proba")
        self.largest_wins = True  # whether its class is that of the largest output

    def ask(self, rows: Any) -> Any:
        """Return numbers, probabilities or margins of complete rows, as the model does."""
        if self.classes is None:
            return self.model.predict(rows)
        if self.margins_only:
            return self.model.decision_function(rows)
        return self.model.predict_proba(rows)

    def outputs(self, rows: Any) -> Floats:
        """Return numbers, probabilities or margins of complete rows.  # (rows, outputs)."""
        values = np.asarray(self.ask(rows), np.float64)
        return values.reshape(len(values), -1)

    def labels(self, rows: Any) -> npt.NDArray[Any]:
        """Return the classes of complete rows."""
        return np.asarray(self.model.predict(rows)).ravel()

    def check_classes(self, rows: Any, outputs: Floats) -> None:
        """Find out whether the model's class is that of the largest output."""
        if self.classes is None:
            return
        labels = np.asarray(self.model.predict(rows))
        if labels.ndim > 1 and labels.shape[1] > 1:
            raise TypeError(
                f"this {self.name} has several labels for a row; wrap one of them in an object "
                f"with predict_proba"
            )
        if outputs.shape[1] not in (1, len(self.classes)):
            raise TypeError(
                f"this {self.name} has {outputs.shape[1]} margins for {len(self.classes)} "
                f"classes; use decision_function_shape='ovr'"
            )
        same = np.mean(labels.ravel() == largest_class(outputs, self.classes))
        self.largest_wins = bool(same >= SAME_CLASS_SHARE)


def largest_class(scores: Floats, classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the class of the largest score; a single score is that of the second class."""
    if scores.shape[1] == 1:
        scores = np.hstack([-scores, scores])
    return classes[np.argmax(scores, axis=1)]


def wrap_model(
    calls: ModelCalls,
    density: Density,
    table: Table,
    X: Any,
    template: RowTemplate,
    **options: Any,
) -> WrappedModel:
    """Write a model over a density.

    Parameters
    ----------
    calls, density, template
        The model, a density of its raw columns, and rows as the model takes them.
    table, X
        The training rows, read and as they were given.
    options
        Further parameters of :class:`WrappedModel`.
    """
    _check_remade(calls, template, table)
    which = np.flatnonzero(template.complete_rows(table))
    which = which[evenly(len(which), SPREAD_ROWS)]
    outputs = ask_complete(calls.outputs, template, table, which)
    complete = template.complete(table, which)
    calls.check_classes(complete, outputs)

    def wrapped(density: Density, route: ExactRoute | None, why: str = "") -> WrappedModel:
        return WrappedModel(
            calls.name,
            density,
            template,
            calls.outputs,
            outputs.std(axis=0),
            route,
            why=why,
            classes=calls.classes,
            margins_only=calls.margins_only,
            **options,
        )

    try:
        fine, route, read_margin = _read(calls, density, table, X, template)
        model = wrapped(fine, route)
        n = check_reading(model, table, calls.ask, read_margin)
        model.route = route._replace(checked_rows=n)
    except Unreadable as reason:
        if isinstance(reason, ReadingDisagrees):
            warnings.warn(str(reason), UserWarning, level_of_caller())
        model = wrapped(density, None, str(reason))
    return model


def _check_remade(calls: ModelCalls, template: RowTemplate, table: Table) -> None:
    """Refuse columns whose cells, made again from what was read, are others to the model."""
    rows, remade = template.rows, template.complete(table, template.kept)
    problem: Exception | None = None
    with frames.quietly():
        try:
            given = calls.outputs(rows)
        except ValueError:  # it refuses a cell
            ask_complete(calls.outputs, template, table, template.kept)
            raise
        try:
            if np.allclose(given, calls.outputs(remade), REMADE_TOL, REMADE_TOL, equal_nan=True):
                return
            if not np.array_equal(given, calls.outputs(rows), equal_nan=True):
                return  # the model draws random numbers
        except (TypeError, ValueError) as refused:
            problem = refused
    both = [[frames.types(one, i) for i in range(len(template.columns))] for one in (rows, remade)]
    changed = [
        f"{name!r} ({', '.join(sorted(theirs - ours)) or 'some cells'})"
        for name, theirs, ours in zip(template.columns, *both, strict=True)
        if theirs != ours
    ]
    raise DomainError(
        f"the model does not answer as it does for the table when cells are given back to it as "
        f"they are read, in column {', '.join(changed) or 'unknown'}; make these texts, numbers "
        f"or times of NumPy before the model is fitted"
    ) from problem


def _read(
    calls: ModelCalls, density: Density, table: Table, X: Any, template: RowTemplate
) -> tuple[Density, ExactRoute, Callable[[Any], Floats]]:
    columns = [density.encoder_.column(name) for name in template.columns]
    categories = {i: column.values for i, column in enumerate(columns) if column.values}
    steps, form, tried = read(calls.model, categories)
    if calls.margins_only:
        form = replace(form, link="none")
    features = Features.read(steps, template.rows, form.categories, template.marks)
    if features.n_features != form.margin.n_features:
        raise Unreadable(
            f"the model takes {form.margin.n_features} features and there are "
            f"{features.n_features}; sampling is used instead"
        )
    if isinstance(form.margin, Trees):
        cells = ModelCells.of(
            density, features, form.margin.questions, X, restored=template.restored
        )
        margin = tree_margin_of(cells.density, form, CompiledTrees.of(form.margin, cells))
    else:
        cells = ModelCells.of(density, features, (), X, LINEAR_BINS)
        margin = additive_of_linear(form.margin, cells, table, template)
    refused = tuple(
        (int(cells.variable[place]), value)
        for place, value in cells.beyond()
        if not _takes(calls, template, place, cells.examples[place][value])
    )
    route = ExactRoute(form, margin, (*tried, *features.tried), refused=refused)
    return cells.density, route, lambda rows: form.margin(features(rows))


def _takes(calls: ModelCalls, template: RowTemplate, place: int, number: float) -> bool:
    """Whether the model takes a number that some transformer makes no number of."""
    row = frames.put(frames.take(template.rows, np.zeros(1, np.intp)), place, np.array([number]))
    try:
        with frames.quietly():
            calls.ask(row)
    except ValueError:
        return False
    return True


def tree_margin_of(density: Density, form: Form, compiled: CompiledTrees) -> Margin:
    """Choose how trees are answered for: those of single columns add up."""
    written = compiled.written
    if written.is_additive and form.link != "softmax":
        additive = AdditiveMargin(density, written.bias, list(written.tables))
        additive.compiled = compiled
        return additive
    return TreeMargin(density, compiled)
