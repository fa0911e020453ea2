"""Answer about all outputs of a model for rows of a table, whatever computes the expectation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.text import suggestion
from expecta.densities.density import Density
from expecta.expected.expected_output import ExpectedOutput
from expecta.expected.row_distributions import RowDistributions
from expecta.learn.regression.noise_variance import NoiseVariance
from expecta.queries.impossible import check_possible
from expecta.queries.output_distribution import Distribution
from expecta.queries.pair import Pair
from expecta.tables.table import Table


class ModelRows(NamedTuple):
    """Rows that a user gave: the table, and the density's value of each cell, -1 if unknown."""

    table: Table
    codes: Ints  # (rows, variables)

    @property
    def n_missing(self) -> Ints:
        """How many variables of each row are unknown.  # (rows,)."""
        return np.count_nonzero(self.codes < 0, axis=1)


class RowAnswers(NamedTuple):
    """Expectation, its error, and the spread of the output of each row.  # (rows, outputs) each.

    The error is a bound where the mean is computed, a standard error where it is sampled, 0
    where it is exact; ``std`` is the spread of the *model's output* over the unknown inputs.
    """

    mean: Floats
    error: Floats
    std: Floats


class ExpectedModel(ABC):
    """A model and a density of its inputs: the only place that answers for the two.

    Complete rows have the model's own answer; those that are impossible under the density
    have NaN.

    Attributes
    ----------
    density
        The density, with bins as fine as the model asks for.
    n_outputs
        How many numbers the model returns for a row.
    fixed_columns
        Which variables are never unknown, since a missing value is a value.  # (variables,)
    calibration_rows
        How many held-out predictions take no more than some seconds.
    """

    density: Density
    n_outputs: int
    calibration_rows: int

    def __init__(self) -> None:
        self._outputs: dict[str, ExpectedOutput] = {}
        self._noise_pair: tuple[NoiseVariance, Pair] | None = None  # the last that was asked about

    @property
    def fixed_columns(self) -> Bools:
        """Which variables are never unknown, since a missing value is a value."""
        return np.array([column.plain is not column for column in self.density.encoder_.columns_])

    @abstractmethod
    def read(self, X: Any) -> Table:
        """Read rows that a user gave."""

    def rows(self, X: Any) -> ModelRows:
        """Read rows that a user gave, once: as a table, and as values of the density."""
        table = self.read(X)
        return ModelRows(table, self.density.encoder_.codes(table))

    @abstractmethod
    def hide(self, rows: ModelRows, which: Ints, hidden: Bools) -> ModelRows:
        """Return some of the rows with further cells unknown.  # hidden: (which, variables)."""

    def log_prob(self, rows: ModelRows) -> Floats:
        """Log-probability of the known cells of each row. Exact, given the density.  # (rows,)."""
        return self.density.circuit.log_prob(rows.codes)

    @abstractmethod
    def answer(self, rows: ModelRows, *, std: bool = False) -> RowAnswers:
        """Compute the expectation of all outputs, and their spread if it is asked for."""

    @abstractmethod
    def moments(self, rows: ModelRows, order: int, *, central: bool) -> Floats:
        """Compute moments of the margin, or raise a TypeError.  # (rows, outputs, order + 1)."""

    @abstractmethod
    def distribution(self, rows: ModelRows, noise: float) -> Distribution | RowDistributions:
        """Distribution of the margin plus normal noise, for each row."""

    @abstractmethod
    def target_distribution(
        self, rows: ModelRows, noise: float | NoiseVariance, tol: float
    ) -> Distribution | RowDistributions:
        """Distribution of output + noise, within about ``tol``, wherever y lies and in any unit.

        Of a circuit that was learned on another scale than y's, on that scale. ``noise`` is a
        standard deviation, or the variance by the inputs.
        """

    def target_centre(self, rows: ModelRows) -> Floats:
        """Return the mean of :meth:`target_distribution`.  # (rows,)."""
        return self.answer(rows).mean[:, 0]

    def expected_noise(self, rows: ModelRows, noise: float | NoiseVariance) -> Floats:
        """√E[σ²(x) | what is known]. Exact, given the density; NaN if impossible.  # (rows,)."""
        complete = np.all(rows.codes >= 0, axis=1)
        if not isinstance(noise, NoiseVariance):
            impossible = ~complete & np.isneginf(self.log_prob(rows))
            return np.where(check_possible(impossible, "nan"), np.nan, noise)
        codes = np.where(complete[:, None], -1, rows.codes).astype(np.int32)
        expected: Floats = np.empty(len(codes))
        if not np.all(complete):
            answers = self.noisy_pair(noise).expectation(codes).reshape(len(codes), -1)
            expected = self.noise_unit(noise) * np.sqrt(answers[:, -1])
        expected[complete] = noise.std(rows.codes[complete])
        return expected

    def noisy_pair(self, noise: NoiseVariance) -> Pair:
        """Return a pair whose last output is σ²; the first is the model's, if that is a circuit."""
        kept = self._noise_pair
        if kept is None or kept[0] is not noise:
            self._noise_pair = kept = noise, self._make_noisy_pair(noise)
        return kept[1]

    def noise_unit(self, noise: NoiseVariance) -> float:
        """Return the unit of y in :meth:`noisy_pair`."""
        return noise.unit

    def _make_noisy_pair(self, noise: NoiseVariance) -> Pair:
        p = self.density.circuit
        return Pair(p, noise.circuit(p.vtree))

    @abstractmethod
    def explain_exactness(self) -> str:
        """Say what is exact, what is not, and why, a sentence in each line."""

    def output(self, of: Any = None) -> ExpectedOutput:
        """Return one output, by the class or the index of it, to ask about given evidence."""
        if repr(of) not in self._outputs:
            self._outputs[repr(of)] = self._make_output(of)
        return self._outputs[repr(of)]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made again when it is asked about."""
        return {**self.__dict__, "_outputs": {}, "_noise_pair": None}

    @abstractmethod
    def _make_output(self, of: Any) -> ExpectedOutput:
        """Return what :meth:`output` keeps."""


def class_index(classes: npt.NDArray[Any], of: Any) -> int:
    """Return the index of the class that is asked about: by default the second of two."""
    if len(classes) < 2:
        raise DomainError(
            "there is a single class, whose probability is 1, so there is nothing to ask"
        )
    texts = [str(label) for label in classes.tolist()]
    if of is None:
        if len(classes) == 2:
            return 1
        raise DomainError(
            f"there are {len(classes)} classes; choose one, such as of={classes.tolist()[0]!r}; "
            + suggestion("", texts)
        )
    same = [label == of and type(label == of) is bool for label in classes.tolist()]
    if not any(same):
        same = [text == str(of) for text in texts]
    if not any(same):
        raise DomainError(f"there is no class {of!r:.60}; {suggestion(of, texts)}")
    return same.index(True)
