"""What the two estimators share: from a table to a density, a circuit, and their pair."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from expecta.ask.asking import Asking
from expecta.circuits.regression import RegressionCircuit
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.checks import check_integer
from expecta.common.errors import DomainError
from expecta.common.settings import Progress
from expecta.densities import PSDD, Density, LatentTree
from expecta.estimators.circuit_output import of_circuits
from expecta.estimators.training import Seeds, Training, completed
from expecta.expected.expected_output import ExpectedOutput
from expecta.learn.regression import LOSSES, Curve, GrownCircuit, grow
from expecta.queries.output_distribution import Distribution
from expecta.queries.pair import Pair
from expecta.tables import Encoder
from expecta.tables.column import Column
from expecta.tables.estimator_inputs import check_penalties, read_inputs, refuse_rounding
from expecta.tables.table import Table, check_size, read_table
from expecta.tables.training_rows import TrainingRows, target_name

__all__ = ["CircuitEstimator"]

FEW = 20  # rows below which nothing is chosen, and the circuit is additive
MANY = 5000  # rows from which one fold is held out, not each of five in turn
FOLDS = 5
ROUNDS = 3  # of weighing completions by the target and learning anew
UNTESTED = 3.0  # penalty where there are too few rows to choose one


class CircuitEstimator(Asking, BaseEstimator):  # type: ignore[misc]
    """A density of the inputs and a circuit for the target, over one vtree."""

    density_: Density  # as it learned
    refined_: Density  # the same with finer bins, which the circuit takes
    pair_: Pair
    training_rows_: TrainingRows | None  # training rows, beside which answers about groups stand
    target_name_: str

    def __init__(
        self,
        *,
        density: Density | None = None,
        vtree: Vtree | str | None = None,
        encoder: Encoder | None = None,
        max_bins: int = 256,
        max_splits: int = 32,
        penalties: Sequence[float] = (1.0, 3.0, 10.0),
        completions: int = 5,
        random_state: Any = None,
    ) -> None:
        self.density = density
        self.vtree = vtree
        self.encoder = encoder
        self.max_bins = max_bins
        self.max_splits = max_splits
        self.penalties = penalties
        self.completions = completions
        self.random_state = random_state

    # -- learning ---------------------------------------------------------------------

    def _training_table(self, X: Any, n_targets: int) -> Table:
        """Read the table to learn from, and check the parameters."""
        for name, least in (("max_bins", 2), ("max_splits", 0), ("completions", 1)):
            check_integer(name, getattr(self, name), least)
        check_penalties(self.penalties)
        given = self.density
        if given is not None and not isinstance(given, Density):
            raise TypeError(f"density is a Density, learned or not, or None; not {given!r:.80}")
        if self.encoder is not None and not isinstance(self.encoder, Encoder):
            raise TypeError(f"encoder is an Encoder or None, not {self.encoder!r:.80}")
        learned = given is not None and hasattr(given, "circuit_")
        raw = read_table(X)
        refuse_rounding(raw)
        table = read_inputs(
            raw, coded=given.encoder_.source_ == "codes" if given and learned else None
        )
        check_size(table)
        if table.n_rows != n_targets:
            raise DomainError(f"X has {table.n_rows} rows and y has {n_targets}; they must agree")
        return table

    def _learn_density(self, table: Table, weight: Floats, seeds: Seeds) -> None:
        """Set ``density_``, the same with finer bins, and the columns' names."""
        given = self.density
        learned = given if given is not None and hasattr(given, "circuit_") else None
        if learned is not None and (self.vtree is not None or self.encoder is not None):
            raise DomainError(
                "the density has learned, its vtree and encoder with it; "
                "leave vtree and encoder out, or give a density that is yet to learn"
            )
        if learned is not None:
            self.density_ = learned
        else:
            self.density_ = self._unfitted(seeds).fit(table, sample_weight=weight)
        self.n_features_in_ = len(self.density_.columns)
        self.__dict__.pop("feature_names_in_", None)
        if table.named and table.spelt:
            self.feature_names_in_ = np.array(self.density_.columns, object)
        self.refined_ = self.density_.refined(table, max_bins=self.max_bins, sample_weight=weight)

    def _unfitted(self, seeds: Seeds) -> Any:
        """Return the density to learn, with what was asked of it."""
        asked: dict[str, Any] = {}
        if self.vtree is not None:
            asked["vtree"] = self.vtree
        if self.encoder is not None:
            asked["encoder"] = self.encoder
        density = self.density
        if density is None:
            density = LatentTree() if self.vtree is None else PSDD()
            asked["random_state"] = seeds.density
        density = clone(density)
        takes = density.get_params(deep=False)
        if "vtree" in asked and "vtree" not in takes:
            raise DomainError(
                f"a {type(density).__name__} makes its own vtree; for one of yours use PSDD"
            )
        if "vtree" in asked:
            asked["start"] = "independent"  # the other start has a vtree of its own
        return density.set_params(**asked)

    def _training(self, table: Table, weight: Floats, strata: Ints, seeds: Seeds) -> Training:
        """Complete the rows that have holes, several times, and choose those to hold out."""
        codes = self.encoder_.codes(table)
        rows = np.flatnonzero(weight > 0)
        holes = np.any(codes[rows] < 0, axis=1)
        times = np.where(holes, self.completions, 1)
        origin = np.repeat(rows, times)
        full = codes[origin]
        if np.any(holes):
            full[np.repeat(holes, times)] = completed(
                self.refined_.circuit, codes[rows[holes]], self.completions, seeds.completions
            )
        fold = None
        if len(rows) > 1:
            rng = np.random.default_rng(seeds.folds)
            order = np.lexsort((rng.random(len(rows)), strata[rows]))
            place = np.empty(len(rows), np.int64)
            place[order] = np.arange(len(rows)) % min(FOLDS, len(rows))
            if len(rows) >= MANY:
                place[place > 0] = -1
            fold = np.repeat(place, times)
        times = np.repeat(times, times)
        return Training(full, origin, weight[origin] / times, fold, times)

    def _grow(self, training: Training, y: Floats, loss: str, *, keep_folds: bool) -> GrownCircuit:
        """Learn the circuit."""
        penalties = check_penalties(self.penalties)
        curves = [_curve(column) for column in self.encoder_.columns_]
        tested = len(np.unique(training.origin)) >= FEW
        with Progress(type(self).__name__, None) as progress, threadpool_limits(1):
            learn = partial(
                grow,
                training.codes,
                y[training.origin],
                vtree=self.refined_.circuit.vtree,
                curves=curves,
                loss=loss,
                fold=training.fold if tested or keep_folds else None,
                penalties=penalties if tested else [UNTESTED],
                max_splits=self.max_splits if tested else 0,
                keep_folds=keep_folds and training.fold is not None,
                report=lambda what: progress.advance(label=f"{type(self).__name__} {what}"),
            )
            weight = training.weight
            grown = learn(weight=weight)
            for _ in range(ROUNDS if np.any(training.times > 1) else 0):
                weight = training.given_target(y, grown.circuit, LOSSES[loss], weight)
                grown = learn(weight=weight)
        self.penalty_, self.n_splits_ = grown.penalty, grown.n_splits
        self.validation_ = grown.tried
        return grown

    def _apart(self, table: Table, y: Floats, weight: Floats, rows: Ints, seeds: Seeds) -> Self:
        """Learn a density and a circuit for the squared loss as these were, without some rows."""
        weight = weight.copy()
        weight[rows] = 0.0
        model = type(self)(**self.get_params(deep=False))
        model.set_params(penalties=self.penalty_, max_splits=self.n_splits_)
        model._learn_density(table, weight, seeds)
        training = model._training(table, weight, np.zeros(len(y), np.int64), seeds)
        grown = model._grow(training._replace(fold=None), y[:, None], "squared", keep_folds=False)
        model.pair_ = Pair(model.refined_.circuit, grown.circuit)
        return model

    def _keep(self, table: Table, target: Floats, weight: Floats, y: Any) -> None:
        """Set ``training_rows_``, and what the target is called."""
        self.target_name_ = target_name(y)
        self.training_rows_ = TrainingRows.from_table(
            table, self.encoder_, target, weight, self.target_name_
        )

    # -- asking -----------------------------------------------------------------------

    @property
    def encoder_(self) -> Encoder:
        """What the circuit's variables are to the user."""
        return self.refined_.encoder_

    @property
    def circuit_(self) -> RegressionCircuit:
        """The function g of the complete inputs."""
        return self.pair_.g

    def score_samples(self, X: Any) -> Floats:
        """Log-probability, in nats, of what is known of each row. Exact under the density.

        How like the training rows is a row? Compare with ``score_samples`` of those.
        """
        table = self._table(X)
        return self.density_.score_samples(table)

    def predict_moments(self, X: Any, order: int = 2, *, central: bool = False) -> Floats:
        """Moments 0 .. order of g over what is unknown; g of a classifier is the log-odds. Exact.

        Returns
        -------
        array of shape (rows, order + 1), or (rows, classes, order + 1) for several classes
        """
        codes, complete = self._codes(X)
        found = self.pair_.moments(self._open(codes, complete), order, central=central)
        g = self.circuit_(codes[complete])[..., None]
        found[complete] = (0.0 * g if central else g) ** np.arange(found.shape[-1])
        return found

    def _learned(self) -> object:
        check_is_fitted(self, "pair_")
        return self.pair_

    def _make_output(self, of: Any) -> ExpectedOutput:
        return of_circuits(self, of)

    def _table(self, X: Any) -> Table:
        check_is_fitted(self, "pair_")
        table = read_inputs(X, coded=self.encoder_.source_ == "codes")
        if not table.named and len(table.names) != self.n_features_in_:
            raise DomainError(
                f"X has {len(table.names)} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return table

    def _codes(self, X: Any) -> tuple[Ints, Bools]:
        """Return the values of the rows' cells, and which rows are complete."""
        table = self._table(X)
        codes = self.encoder_.codes(table)
        return codes, np.all(codes >= 0, axis=1)

    def _distribution(self, X: Any, noise: float) -> Distribution:
        """Distribution of g plus noise; the circuit alone answers complete rows."""
        codes, complete = self._codes(X)
        found = self.pair_.distribution(self._open(codes, complete), noise=noise)
        return found.pinned(complete, self.circuit_(codes[complete]))

    def _open(self, codes: Ints, complete: Bools) -> Ints:
        """Return the rows with what the circuit answers alone taken away.

        So a pair finds no complete row impossible, and counts rows as the user does.
        """
        return np.where(complete[:, None], -1, codes).astype(np.int32)

    # -- files ------------------------------------------------------------------------

    def save(self, path: str | PathLike[str], *, rows: bool = True) -> None:
        """Write the estimator into one file. Atomic.

        The file holds the *training rows*, which answers about groups are compared with; to
        pass a model on without its data, leave them out by ``rows=False``.
        """
        from expecta.estimators.estimator_files import ESTIMATOR_FILE

        check_is_fitted(self, "pair_")
        saved = self if rows else copy(self)
        if not rows:
            saved.training_rows_ = None
        ESTIMATOR_FILE.save(saved, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read an estimator. Runs no code; a damaged file gives a FormatError."""
        from expecta.estimators.estimator_files import ESTIMATOR_FILE

        model = ESTIMATOR_FILE.load(path)
        if not isinstance(model, cls):
            raise DomainError(f"{path} holds a {type(model).__name__}, not a {cls.__name__}")
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags


def _curve(column: Column) -> Curve:
    """Return what the tables of a column may be: a curve if its values are in order."""
    whole = column.plain is column  # what is missing lies nowhere on a curve
    ordered = whole and column.kind in ("integer", "number", "date", "datetime", "duration")
    unit = float(np.abs(column.means).max(initial=0.0)) or 1.0  # no difference over- or underflows
    return Curve.of(column.counts, column.means / unit if ordered else None)
