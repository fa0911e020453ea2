"""Compute expectations of models that add up one function per column: a circuit, on a pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from expecta.circuits.constructions import linear
from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.trust import Trust
from expecta.densities.density import Density
from expecta.expected.expected_output import ExpectedOutput, OutputContext
from expecta.expected.link_variance import mean_and_variance_of_link
from expecta.expected.margin import Margin, explain_response
from expecta.expected.model_cells import ModelCells
from expecta.expected.pair_output import PairOutput, one_output
from expecta.expected.row_template import RowTemplate
from expecta.expected.sampled_output import CompleteOutputs, SampledOutput
from expecta.queries.moments import extremes_of
from expecta.queries.output_distribution import Distribution
from expecta.queries.pair import Pair
from expecta.readers import Unreadable
from expecta.readers.features import Features
from expecta.readers.forms import Form, Linear
from expecta.tables.table import Table


class ColumnTerms(Protocol):
    """What the values of a column add to the margin, to the last bit."""

    def __call__(self, column: int, values: npt.NDArray[np.generic]) -> Floats | None:
        """Return the terms of raw values; None where the tables say it all.  # (rows, outputs)."""


class FeatureTerms:
    """The terms of a linear model behind transformers of single columns."""

    def __init__(self, features: Features, form: Linear) -> None:
        self._features, self._form = features, form

    def __call__(self, column: int, values: Any) -> Floats | None:
        """Return the terms of raw values of a column; None if the model has no use for it."""
        own = self._features.of(column)
        if not len(own):
            return None
        return self._features.values(column, values) @ self._form.coefficient[own]


class AdditiveMargin(Margin):
    """A margin that is a table per column. Every moment is exact, for any number of outputs.

    Where the model tells numbers of one bin apart, a table has the mean over the training
    numbers of the bin, and a known number adds what it adds to the model, to the last bit.

    Parameters
    ----------
    density
        The density, over whose values the tables are.
    bias, tables
        A constant, and what each value of each variable adds.  # (values, outputs)
    columns
        The raw columns that the model takes, by name.
    terms
        What known numbers add; None where the tables say it all.
    """

    def __init__(
        self,
        density: Density,
        bias: Floats,
        tables: Sequence[Floats],
        columns: Sequence[str] = (),
        terms: ColumnTerms | None = None,
    ) -> None:
        self.tables, self.terms = tables, terms
        self.values_decide = terms is None
        self._variables = [density.encoder_.variable(name) for name in columns]
        circuit = density.circuit
        self.n_variables = circuit.n_variables
        self.pair = Pair(circuit, linear(circuit.vtree, tables, bias=bias))

    def offset(self, table: Table, rows: Ints, codes: Ints, template: RowTemplate) -> Floats:
        """Return what known numbers add beyond the mean of their bin.  # (rows, outputs)."""
        total = np.zeros((len(codes), self.pair.g.n_outputs))
        if self.terms is None:
            return total
        for column in range(len(template.columns)):
            variable = self._variables[column]
            known = np.flatnonzero(codes[:, variable] >= 0)
            if not len(known):
                continue
            cells = template.column(table, column)[rows[known]]
            terms = self.terms(column, cells)
            if terms is not None:
                if not np.all(np.isfinite(terms)):
                    wrong = cells[int(np.argmin(np.isfinite(terms).all(axis=1)))]
                    raise DomainError(
                        f"the model, with its transformers, makes no finite number of column "
                        f"{template.columns[column]!r} where it is {wrong!s:.40}"
                    )
                total[known] += terms - self.tables[variable][codes[known, variable]]
        return total

    def mean(self, codes: Ints) -> Floats:
        """E of the margin. Exact, given the density.  # (rows, outputs)."""
        return self.pair.expectation(codes).reshape(-1, self.pair.g.n_outputs)

    def of_values(self, codes: Ints, per_block: int = 1) -> Floats:
        """Return margins of complete rows of values: a number counts as its bin."""
        return self.mean(codes)

    def central_moments(self, codes: Ints, order: int) -> Floats:
        """Moments of the margin about its mean. Exact.  # (rows, outputs, order + 1)."""
        moments = self.pair.moments(codes, order, central=True)
        return moments.reshape(-1, self.pair.g.n_outputs, order + 1)

    def response(
        self, form: Form, codes: Ints, offset: Floats, tol: float
    ) -> tuple[Floats, Floats] | None:
        """E[link(margin)] and a bound on its error: exp is exact, logistic within ``tol``."""
        shape = (-1, self.pair.g.n_outputs)
        if form.link == "exp":
            value = self.pair.expected(codes, "exp").value.reshape(shape) * np.exp(offset)
            return value, np.zeros_like(value)
        if form.link != "logistic":  # the mean of a ratio is not the ratio of means
            return None
        expected = self.pair.expected(codes, "logistic", tol=tol, offset=offset)
        value, error = expected.value.reshape(shape), expected.error.reshape(shape)
        if form.classes is None:
            return value, error
        return np.hstack([1 - value, value]), np.hstack([error, error])

    def variance(self, form: Form, codes: Ints, offset: Floats) -> Floats | None:
        """Variance of the output; None for a ratio of several margins.  # (rows, outputs).

        Exact of the margin and of its exponential, within 1e-10 of its logistic function.
        """
        if form.link in ("identity", "none"):
            return self.central_moments(codes, 2)[:, :, 2]
        if form.link not in ("exp", "logistic"):
            return None
        evidence = Evidence.rows(codes, self.pair.p.cardinalities)
        parts = []
        for k, shift in enumerate(offset.T):
            pair = one_output(self.pair, k)
            low, high = (end[:, 0] for end in extremes_of(pair, evidence)[:2])
            parts.append(mean_and_variance_of_link(pair, evidence, form.link, low, high, shift)[2])
        return np.stack(parts * (2 if form.classes is not None else 1), axis=1)

    def distribution(self, codes: Ints, noise: float, tol: float) -> Distribution:
        """Distribution of the margin plus normal noise."""
        return self.pair.distribution(codes, noise=noise, tol=tol)

    def expected_output(
        self, context: OutputContext, form: Form, output: int, tol: float, sample: CompleteOutputs
    ) -> ExpectedOutput:
        """Answer about one output; it is sampled where its link is of several margins."""
        if form.link in ("identity", "none", "exp"):
            link = "exp" if form.link == "exp" else "identity"
            return PairOutput(context, one_output(self.pair, output), link, tol)
        if form.link == "logistic":
            sign = -1.0 if form.classes is not None and output == 0 else 1.0
            return PairOutput(context, one_output(self.pair, 0, sign), "logistic", tol)
        return SampledOutput(context, sample, output)

    def explain(self, form: Form, tol: float, exact: str) -> list[str]:
        """Say what the margin is, what is exact of it, and of the output, in three sentences."""
        bound = f"{Trust.WITHIN} tol = {tol:g}" + (f", {exact}" if exact != Trust.EXACT else "")
        computed = {
            "exp": f"E[exp(margin)]: {exact}.",
            "logistic": f"Probabilities, E[logistic(margin)]: spectral, {bound}.",
        }
        return [
            "adds up a function of each column, so it is a circuit.",
            f"Moments of the margin: {exact}, all of them.",
            explain_response(form, exact, computed.get(form.link)),
        ]

    def response_trust(self, form: Form) -> Trust:
        """How far E[link(margin)] can be trusted."""
        return {"exp": Trust.EXACT, "logistic": Trust.WITHIN}.get(form.link, Trust.SAMPLED)

    def spread_trust(self, form: Form) -> Trust:
        """How far :meth:`variance` can be trusted: of logistic functions within 1e-10."""
        if form.link in ("identity", "none", "exp"):
            return Trust.EXACT
        return Trust.WITHIN if form.link == "logistic" else Trust.SAMPLED


def additive_of_linear(
    form: Linear, cells: ModelCells, X: Table, template: RowTemplate
) -> AdditiveMargin:
    """Write a linear model over the bins of a density: their means over the training rows."""
    encoder, features = cells.density.encoder_, cells.features
    tables = [np.zeros((int(card), len(form.bias))) for card in encoder.cardinalities_]
    bias = form.bias.astype(np.float64).copy()
    constant = np.flatnonzero(features.source < 0)
    if len(constant):
        bias = bias + features(features.rows)[0, constant] @ form.coefficient[constant]
    codes = encoder.codes(X)
    terms = FeatureTerms(features, form)
    for column in range(len(template.columns)):
        variable = int(cells.variable[column])
        rows = np.flatnonzero(codes[:, variable] >= 0)
        added = terms(column, template.column(X, column)[rows])
        if added is None:
            continue
        table = tables[variable]
        count = np.bincount(codes[rows, variable], minlength=len(table))
        for k in range(len(form.bias)):
            total = np.bincount(codes[rows, variable], added[:, k], minlength=len(table))
            table[:, k] = total / np.maximum(count, 1)
        empty = np.flatnonzero(count == 0)
        if len(empty):
            table[empty] = _of_examples(terms, column, cells, template, empty)
    return AdditiveMargin(cells.density, bias, tables, features.columns, terms)


def _of_examples(
    terms: FeatureTerms, column: int, cells: ModelCells, template: RowTemplate, empty: Ints
) -> Floats | None:
    """Return the terms of values that no training row has."""
    examples = cells.examples[column]
    try:
        if isinstance(examples, np.ndarray):
            return terms(column, template.restored(column, examples[empty]))
        return terms(column, [examples[value] for value in empty.tolist()])
    except (ValueError, TypeError) as refused:
        raise Unreadable(
            f"no complete row has some values of column {template.columns[column]!r}, and the "
            f"model refuses them; sampling is used instead"
        ) from refused
