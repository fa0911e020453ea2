"""Transformers that fill the unknown cells of a table from a learned density."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Ints
from expecta.common.checks import check_integer
from expecta.common.errors import DomainError, ImpossibleEvidenceWarning
from expecta.common.text import suggestion
from expecta.densities import Density, LatentTree
from expecta.estimators.missing_cells import Given
from expecta.tables.number_column import NumberColumn
from expecta.tables.table import Table, check_size
from expecta.tables.write_table import write_table

SHARES = 1 << 22  # probabilities to hold at a time


class _Imputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What the three share: whose density, which cells, and tables in and out."""

    density_: Density

    def __init__(self, density: Density | None = None, *, random_state: int | None = None) -> None:
        self.density = density
        self.random_state = random_state

    def fit(self, X: Any, y: object = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learn the density from a table, unless it has learned before.

        Parameters
        ----------
        X
            A pandas, polars or Arrow table, a dict of columns, or an array; missing values (NaN,
            None, NaT, null) are allowed, infinite numbers are not. Integers of an array are plain
            numbers; but where ``density`` has learned from codes, codes with -1 for unknown.
        y
            Ignored.
        sample_weight
            How much each row counts, for a density that is yet to learn.  # (rows,)

        Returns
        -------
        self
            The same, which has learned.
        """
        density = self.density
        if density is None:
            density = LatentTree(random_state=self.random_state)
        elif not isinstance(density, Density):
            raise TypeError(
                f"density must be a Density, learned or not, or None, not {density!r:.80}"
            )
        given = Given.read(X, density)
        check_size(given.table)
        if not hasattr(density, "circuit_"):
            density = clone(density).fit(given.table, sample_weight=sample_weight)
        nameless = density.encoder_.source_ in ("array", "codes")
        self._variables = self._places(density.columns, given.table, nameless)
        self._names, self._named = given.table.names, given.table.named
        self.n_features_in_ = len(self._names)
        self.__dict__.pop("feature_names_in_", None)
        if self._named and given.table.text_names:  # as scikit-learn has it
            self.feature_names_in_ = np.array(self._names, object)
        self.density_ = density
        return self

    def transform(self, X: Any) -> Any:
        """Return the table with its unknown cells filled and all others as they are.

        The result is of the kind given (pandas, polars, Arrow, dict, array), with its index,
        its order of columns, and its types where they can hold what is filled in. Columns of
        frames and dicts are found by name. A category that is not in the training data
        is kept. A row of probability zero is filled as if all of its cells were missing, with an
        ImpossibleEvidenceWarning. A column without known values in training stays empty.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        """
        return self._filled(X, 1)[0]

    def _filled(self, X: Any, n: int) -> list[Any]:
        """Return the table n times, each time filled."""
        check_is_fitted(self, "density_")
        encoder = self.density_.encoder_
        given = Given.read(X, self.density_)
        found = self._places(self._names, given.table, not self._named)
        places = [found[i] for i in self._variables]  # of the density's columns
        # where set_output asks for a frame, scikit-learn names its columns in the order of fit
        renamed = _get_output_config("transform", self)["dense"] != "default"
        order = found if renamed else list(range(len(found)))
        rows = np.flatnonzero(given.missing.any(axis=1))
        if not len(rows):
            return [given.filled({}, order) for _ in range(n)]
        cells = tuple(given.cells[index].take(rows) for index in places)
        table = Table(given.table.source, tuple(self.density_.columns), len(rows), cells)
        codes = encoder.codes(table)
        evidence = Evidence.rows(self._possible(codes, rows), encoder.cardinalities_)
        columns = [
            (index, column.name, column.zone)
            for index, column in zip(places, encoder.columns_, strict=True)
            if column.kind != "unknown" and given.missing[:, index].any()
        ]
        return [
            given.filled(
                {at: given.fill(at, rows, one[name], zone) for at, name, zone in columns}, order
            )
            for one in self._answers(evidence, n)
        ]

    def _answers(self, evidence: Evidence, n: int) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """Yield n complete tables, column by column; what they say of known cells is ignored."""
        raise TypeError(f"{type(self).__name__} does not say how it fills")

    def _possible(self, codes: Ints, rows: Ints) -> Ints:
        """Forget what is known of rows that cannot be."""
        gone = np.isneginf(self.density_.circuit.log_prob(codes))
        if np.any(gone):
            warnings.warn(
                f"{np.count_nonzero(gone)} of {len(rows)} rows with unknown cells have probability "
                f"zero under the density, the first is row {rows[np.argmax(gone)]}; they are "
                f"filled as if nothing were known of them",
                ImpossibleEvidenceWarning,
                stacklevel=5,
            )
            codes[gone] = -1
        return codes

    def _places(self, names: Sequence[str], table: Table, nameless: bool) -> list[int]:
        """Return where a table has columns: by name, or by index where one has no names."""
        if len(table.names) != len(names):
            raise DomainError(
                f"X has {len(table.names)} features, but {type(self).__name__} is expecting "
                f"{len(names)} features as input"
            )
        index = {name: i for i, name in enumerate(table.names)}
        gone = [name for name in names if name not in index]
        if not table.named or (gone and nameless):
            return list(range(len(names)))
        if gone:
            raise DomainError(f"the table has no column {gone[0]!r}; {suggestion(gone[0], index)}")
        return [index[name] for name in names]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class MPEImputer(_Imputer):
    """Fill the unknown cells of each row with its most probable completion.

    All missing cells of a row are chosen together, given the known ones, so that the resulting
    row is likely as a whole. A number is the mean of its bin. Exact
    for deterministic densities (PSDD, ChowLiu, NaiveBayes, Independent); for a latent tree it
    is the max-product approximation. Assumes that missingness carries no
    information beyond the known cells.

    Parameters
    ----------
    density
        What to learn, such as ``PSDD()``; by default a `LatentTree`. A density that has
        learned is used as it is; but scikit-learn's ``clone`` makes a learner forget, so in
        cross-validation it learns anew from each training part (a plain `Density`, say
        ``learner.condition()``, stays as it is).
    random_state
        Seed of the default density.

    Attributes
    ----------
    density_
        The density that has learned.
    n_features_in_, feature_names_in_
        The columns; names only where all were text.

    Examples
    --------
    >>> from expecta import ChowLiu
    >>> table = {"sky": ["sun", "sun", "rain", "rain"] * 9, "degrees": [30, 28, 14, 12] * 9}
    >>> imputer = MPEImputer(ChowLiu()).fit(table)
    >>> imputer.transform({"sky": [None, "rain"], "degrees": [28, 15]})
    {'sky': ['sun', 'rain'], 'degrees': [28, 15]}
    """

    def _answers(self, evidence: Evidence, n: int) -> Iterator[dict[str, npt.NDArray[Any]]]:
        codes = self.density_.circuit.mpe(evidence).x
        yield write_table("dict", self.density_.encoder_.columns_, codes, None)


class ConditionalMeanImputer(_Imputer):
    """Fill unknown numbers with their mean given the row's known cells.

    Numbers, dates and durations: the exact conditional mean under the density, each bin taken
    at the mean of its training numbers; a date is rounded to the day, and a column of
    integers with missing values becomes one of floats (unless its integers are too large).
    Categories, Booleans and codes: the value most probable given the known cells. Every cell
    is filled separately, so that two cells of a row need not fit together. Assumes that
    missingness carries no information beyond the known cells.

    Parameters
    ----------
    density, random_state
        As for `MPEImputer`, and so are the attributes.

    Examples
    --------
    >>> from expecta import ChowLiu
    >>> table = {"sky": ["sun", "sun", "rain", "rain"] * 9, "degrees": [30, 28, 14, 12] * 9}
    >>> imputer = ConditionalMeanImputer(ChowLiu(pseudo_count=0)).fit(table)
    >>> imputer.transform({"sky": ["sun", "rain"], "degrees": [None, 15]})
    {'sky': ['sun', 'rain'], 'degrees': [29.0, 15]}
    """

    def _answers(self, evidence: Evidence, n: int) -> Iterator[dict[str, npt.NDArray[Any]]]:
        columns = list(self.density_.encoder_.columns_)
        step = max(1, SHARES // int(evidence.cardinalities.sum()))
        codes = np.empty((len(evidence), len(columns)), np.int64)
        means = np.empty((len(evidence), len(columns)))
        for start in range(0, len(evidence), step):
            rows = slice(start, start + step)
            for i, shares in enumerate(self.density_.circuit.marginals(evidence[rows])):
                codes[rows, i] = shares.argmax(axis=1)
                if isinstance(columns[i], NumberColumn):
                    # not a matrix product, whose rounding depends on the rows that go with a row
                    means[rows, i] = (shares * columns[i].means).sum(axis=1)
        for i, column in enumerate(columns):
            if isinstance(column, NumberColumn):  # let the mean of each row be a bin of its own
                kind = "number" if column.kind == "integer" else column.kind
                columns[i] = replace(column, kind=kind, means=means[:, i])
                codes[:, i] = np.arange(len(evidence))
        yield write_table("dict", columns, codes, None)


class ConditionalSampler(_Imputer):
    """Fill the unknown cells of each row with a random draw given its known ones.

    All unknown cells of a row are drawn together, so that what depends on each other still
    does; a number is drawn within its bin, with the bin's range, mean and spread. Draws of
    values and bins are exact for the density. Several draws (:meth:`draws`) are a multiple
    imputation: they differ by the uncertainty of the missing cells. Assumes that missingness
    carries no information beyond the known cells.

    Parameters
    ----------
    density
        As for `MPEImputer`, and so are the attributes.
    random_state
        Seed of the draws, and of the default density. A number gives the same draws at
        every call, None new ones.

    Examples
    --------
    >>> from expecta import ChowLiu
    >>> table = {"sky": ["sun", "sun", "rain", "rain"] * 9, "degrees": [30, 28, 14, 12] * 9}
    >>> sampler = ConditionalSampler(ChowLiu(pseudo_count=0), random_state=0).fit(table)
    >>> tables = sampler.draws({"sky": ["sun"], "degrees": [None]}, 50)
    >>> sorted({one["degrees"][0] for one in tables})
    [28, 30]
    """

    def draws(self, X: Any, n: int) -> list[Any]:
        """Return n tables like X, each with other draws for its unknown cells.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        n
            How many tables.
        """
        return self._filled(X, check_integer("n", n, 0))

    def _answers(self, evidence: Evidence, n: int) -> Iterator[dict[str, npt.NDArray[Any]]]:
        rng = np.random.default_rng(self.random_state)
        codes = self.density_.circuit.sample(n, given=evidence, seed=rng)
        for k in range(n):
            yield write_table("dict", self.density_.encoder_.columns_, codes[:, k], rng)
