"""Which route answers for a model, and its answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier

from expecta.common.arrays import Bools, Floats, Ints
from expecta.densities.density import Density
from expecta.expected.additive_route import Additive, write_linear
from expecta.expected.box_route import Boxes
from expecta.expected.model_cells import Cells
from expecta.expected.row_template import Template
from expecta.expected.sample_route import Control, Sampler
from expecta.expected.tree_boxes import write_trees
from expecta.queries.moments import shift_moments
from expecta.readers import Unreadable
from expecta.readers.features import Features
from expecta.readers.forms import Form, Trees
from expecta.readers.links import apply_link, centre_margins, invert_link
from expecta.readers.read_model import read
from expecta.tables.cells import Cells as ColumnCells
from expecta.tables.table import Table

__all__ = ["Answer", "Answers", "classifies"]

BINS = 256  # of a number that a linear model adds up
ALIKE = 0.98  # complete rows whose class is that of the largest output
CHECKED, SAME = 200, 1e-5  # complete rows on which a form is compared; libraries have 32 bits


def classifies(model: Any) -> bool:
    """Whether a model has classes; one that scikit-learn does not know shows them."""
    try:
        return bool(is_classifier(model))
    except (AttributeError, TypeError):  # it has no tags
        return hasattr(model, "classes_")


@dataclass(frozen=True, eq=False)
class Answer:
    """Expectation, its standard error or bound, and variance of the output.  # (rows, outputs)."""

    mean: Floats
    error: Floats
    variance: Floats


class Answers:
    """A model and a density: the route between them."""

    def __init__(
        self,
        model: Any,
        density: Density,
        table: Table,
        X: Any,
        template: Template,
        tol: float,
        tried: int,
    ) -> None:
        self._model, self._template, self.tol = model, template, tol
        self.density, self.why = density, ""
        self.form: Form | None = None
        self.route: Additive | Boxes | None = None
        some = np.flatnonzero(template.known(table).all(axis=1))[:tried]
        whole = template.complete(table, some)
        outputs = self._output(whole)
        self._check_classes(whole, outputs)
        try:
            self._read(table, X)
            self._check(table, some[:CHECKED], outputs[:CHECKED])
        except Unreadable as reason:
            self.route, self.form, self.density = None, None, density
            self.why = str(reason)
        self.scale: Floats = outputs.std(axis=0)  # of predictions over training rows
        self._sampler = Sampler(self._output, self.density, template, self.scale)

    def _read(self, table: Table, X: Any) -> None:
        columns = [self.density.encoder_.column(name) for name in self._template.columns]
        categories = {i: column.values for i, column in enumerate(columns) if column.values}
        steps, form = read(self._model, categories)
        template = self._template
        features = Features.read(steps, template.rows, form.categories, template.marks)
        if features.n_features != form.margin.n_features:
            raise Unreadable(
                f"the model takes {form.margin.n_features} features and there are "
                f"{features.n_features}; sampling is used instead"
            )
        self.form = form
        if isinstance(form.margin, Trees):
            trees = form.margin
            cells = Cells.of(self.density, features, trees.questions, X)
            written = write_trees(trees, cells)
            if written.additive and form.link != "softmax":
                self.route = Additive(written.bias, list(written.tables), cells, None)
            else:
                self.route = Boxes(trees, written, cells)
        else:
            cells = Cells.of(self.density, features, (), X, BINS)
            self.route = write_linear(form.margin, cells, table, self._template)
        self.density = cells.density

    def _check(self, table: Table, rows: Ints, outputs: Floats) -> None:
        """Compare with the model itself on complete rows: a wrong number is worse than none."""
        assert self.form is not None
        margin = self._margin(table, rows, self.codes(table)[rows])
        found = margin if self.margins_only else apply_link(self.form, margin)
        scale = float(np.abs(outputs).max(initial=0.0))
        if found.shape != outputs.shape or not np.allclose(found, outputs, SAME, SAME * scale):
            raise Unreadable(
                f"what was read of this {type(self._model).__name__} does not predict what it "
                f"does; sampling is used instead"
            )

    def _check_classes(self, rows: Any, outputs: Floats) -> None:
        """Find out whether the model's class is that of the largest output."""
        self._largest = True
        if not classifies(self._model):
            return
        own, classes = np.asarray(self._model.predict(rows)), np.asarray(self._model.classes_)
        if own.ndim > 1 and own.shape[1] > 1:
            raise TypeError(
                f"this {type(self._model).__name__} has several labels for a row; wrap one of "
                f"them in an object with predict_proba"
            )
        if outputs.shape[1] not in (1, len(classes)):
            raise TypeError(
                f"this {type(self._model).__name__} has {outputs.shape[1]} margins for "
                f"{len(classes)} classes; use decision_function_shape='ovr'"
            )
        self._largest = bool(np.mean(own.ravel() == _largest(outputs, classes)) >= ALIKE)

    def labels(self, table: Table, scores: Floats, classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return classes: the model's own for complete rows, else those of the largest score."""
        whole = self._template.known(table).all(axis=1)
        if not self._largest and not whole.all():
            raise TypeError(
                f"the class that this {type(self._model).__name__} predicts is not that of the "
                f"largest probability; use predict_proba and your rule"
            )
        found = _largest(scores, classes)
        if whole.any():
            rows = self._template.complete(table, np.flatnonzero(whole))
            found[whole] = np.asarray(self._model.predict(rows)).ravel()
        return found

    @property
    def margins_only(self) -> bool:
        """Whether a classifier has no probabilities."""
        return classifies(self._model) and not hasattr(self._model, "predict_proba")

    @property
    def has_shares(self) -> bool:
        """Whether outputs are probabilities of classes."""
        return classifies(self._model) and not self.margins_only

    @property
    def holed(self) -> list[str]:
        """The columns in which a hole is a value."""
        return [c.name for c in self.density.encoder_.columns_ if c.plain is not c]

    def codes(self, table: Table) -> Ints:
        """Return what the density sees of rows."""
        return self.density.encoder_.codes(table)

    def masked(self, table: Table, rows: Ints, gone: Bools) -> Table:
        """Return rows of a table with further cells hidden, by variable of the density."""
        cells = [table.column(place) for place in range(len(table.names))]
        hidden = []
        for name, one in zip(table.names, cells, strict=True):
            one = one.taken(rows)
            if name in self.density.columns:
                one = one.masked(gone[:, self.density.columns.index(name)])
            hidden.append(one)
        return replace(table, n_rows=len(rows), columns=tuple(hidden), array=None)

    def _output(self, rows: Any) -> Floats:
        """Ask the model itself.  # (rows, outputs)."""
        if not classifies(self._model):
            found = self._model.predict(rows)
        elif self.margins_only:
            found = self._model.decision_function(rows)
        else:
            found = self._model.predict_proba(rows)
        values = np.asarray(found, np.float64)
        return values.reshape(len(values), -1)

    def outputs(self, codes: Ints, rng: np.random.Generator) -> Floats:
        """Ask the model itself about values of the density.  # (rows, outputs)."""
        nothing = np.full(1, np.nan)
        cells = [ColumnCells(name, "unknown", "", numbers=nothing) for name in self.density.columns]
        table = Table("dict", tuple(self.density.columns), 1, tuple(cells))
        rows = np.zeros(len(codes), np.int64)
        return self._output(self._template.filled(table, rows, codes, self.density, rng))

    # -- answers ----------------------------------------------------------------------

    def respond(
        self,
        table: Table,
        codes: Ints,
        rtol: float,
        most: int,
        rng: np.random.Generator,
        *,
        spread: bool,
    ) -> Answer:
        """Compute the expected output of each row, and its variance if that is asked for."""
        known = self._template.known(table)
        complete = known.all(axis=1)
        k = self._sampler.n_outputs
        mean, error = np.zeros((len(codes), k)), np.zeros((len(codes), k))
        variance = np.zeros((len(codes), k))
        if complete.any():
            whole = np.flatnonzero(complete)
            mean[whole] = self._output(self._template.complete(table, whole))
        left = np.flatnonzero(~complete)
        if not len(left):
            return Answer(mean, error, variance)
        holes = codes[left]
        possible = np.isfinite(self.density.circuit.log_prob(holes))
        mean[left[~possible]] = error[left[~possible]] = variance[left[~possible]] = np.nan
        left, holes = left[possible], holes[possible]
        if not len(left):
            return Answer(mean, error, variance)
        found = self._exact(table, left, holes)
        width = self._exact_variance(holes) if spread else None
        if found is not None:
            mean[left], error[left] = found
        if width is not None:
            variance[left] = width
        if found is None or (spread and width is None):
            control = self._control(table, left, holes) if found is None else None
            sampled = self._sampler(table, left, holes, rtol, most, rng, control)
            if found is None:
                total = sampled.mean.sum(axis=1, keepdims=True) if self.has_shares else 1.0
                mean[left], error[left] = sampled.mean / total, sampled.error
            variance[left] = sampled.variance
        return Answer(mean, error, variance)

    def _exact(self, table: Table, rows: Ints, codes: Ints) -> tuple[Floats, Floats | float] | None:
        """Compute the expected output, with a bound on its error, where that can be done."""
        route, form = self.route, self.form
        if route is None or form is None:
            return None
        if form.link == "identity" or self.margins_only:
            return self._margin(table, rows, codes), 0.0
        if isinstance(route, Boxes):
            if not route.is_small:
                return None
            return route.of(lambda margin: apply_link(form, margin))(codes), 0.0
        offset = self._offset(table, rows, codes)
        shape = (len(codes), -1)
        if form.link == "exp":
            found = route.pair.expected(codes, "exp").value.reshape(shape)
            return found * np.exp(offset), 0.0
        if form.link != "logistic":  # the mean of a ratio is not the ratio of means
            return None
        both = route.pair.expected(codes, "logistic", tol=self.tol, offset=offset)
        value, error = both.value.reshape(shape), both.error.reshape(shape)
        if form.classes is None:
            return value, error
        return np.hstack([1 - value, value]), np.hstack([error, error])

    def _control(self, table: Table, rows: Ints, codes: Ints) -> Control | None:
        """Return what is known of draws: the mean of the margin, where outputs tell margins."""
        form = self.form
        if form is None or form.link not in ("logistic", "softmax", "exp"):
            return None
        margin = centre_margins(form, self._margin(table, rows, codes))
        return Control(partial(invert_link, form), margin)

    def _exact_variance(self, codes: Ints) -> Floats | None:
        route, form = self.route, self.form
        if route is None or form is None:
            return None
        if form.link == "identity":
            if isinstance(route, Additive):
                return route.central(codes, 2)[1][:, :, 2]
            return route.variance(codes) if route.knows_variance else None
        if isinstance(route, Boxes) and route.is_small:
            first = route.of(lambda margin: apply_link(form, margin))(codes)
            second = route.of(lambda margin: apply_link(form, margin) ** 2)(codes)
            return np.maximum(second - first**2, 0.0)
        return None

    def margin(self, table: Table, codes: Ints) -> Floats:
        """Compute the expected margin of each row.  # (rows, outputs)."""
        if self.route is None:
            raise TypeError(f"there is no margin: {self.why}")
        return self._margin(table, np.arange(len(codes)), codes)

    def _margin(self, table: Table, rows: Ints, codes: Ints) -> Floats:
        assert self.route is not None
        mean = self.route.mean(codes)
        if isinstance(self.route, Additive):
            mean = mean + self._offset(table, rows, codes)
        return mean

    def _offset(self, table: Table, rows: Ints, codes: Ints) -> Floats:
        assert isinstance(self.route, Additive)
        return self.route.offset(codes, table, rows, self._template)

    def moments(self, table: Table, codes: Ints, order: int, central: bool) -> Floats:
        """Compute moments of the margin.  # (rows, outputs, order + 1)."""
        route = self.route
        if route is None:
            raise TypeError(f"moments are not known exactly: {self.why}")
        if isinstance(route, Additive):
            mean, about = route.central(codes, order)
            mean = mean + self._offset(table, np.arange(len(codes)), codes)
        elif route.is_small:
            mean = route.mean(codes)
            powers = [
                route.of(lambda margin, k=k: margin**k)(codes)  # type: ignore[misc]
                for k in range(order + 1)
            ]
            about = shift_moments(np.stack(powers, axis=-1), -mean)
        else:
            raise TypeError(
                "moments of so many trees are not known exactly; predict(return_std=True) has "
                "the spread"
            )
        return about if central else shift_moments(about, mean)


def _largest(scores: Floats, classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the class of the largest score; a single score is that of the second class."""
    if scores.shape[1] == 1:
        scores = np.hstack([-scores, scores])
    found: npt.NDArray[Any] = classes[np.argmax(scores, axis=1)]
    return found
