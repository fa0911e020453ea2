"""Classification with unknown inputs: expected class probabilities."""

from __future__ import annotations

from numbers import Number
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from expecta.circuits.constructions import linear
from expecta.common.checks import check_integer, check_number
from expecta.common.errors import DomainError
from expecta.common.progress import in_stages
from expecta.estimators.circuit_estimator import DEFAULT_PENALTY, STAGES, CircuitEstimator
from expecta.estimators.fit_error import CircuitParts
from expecta.estimators.target_transform import ScaledTarget
from expecta.estimators.training import Seeds, column_curves
from expecta.expected.learned_circuit import LearnedCircuit
from expecta.expected.target_scale import PLAIN
from expecta.queries.pair import Pair
from expecta.queries.spectral import check_tolerance
from expecta.tables.estimator_inputs import read_training_weights
from expecta.tables.scalars import is_missing


class CircuitClassifier(ClassifierMixin, CircuitEstimator):  # type: ignore[misc]
    """Classification with missing inputs: predicts expected class probabilities.

    ``fit`` learns a joint distribution of the inputs and a logistic circuit with an output per
    class (one for two classes); ``predict_proba`` averages σ(g) over the possible values of the
    missing inputs of a row, given the known ones, within ``tol``. Several classes are one against
    the rest, with probabilities divided by their sum. Assumed: given the known values,
    missingness carries no information.

    Parameters
    ----------
    density, vtree, encoder, max_bins, max_splits, penalties, completions
        As for `CircuitRegressor`.
    tol
        Maximum error of an expected probability, before those of several classes are divided by
        their sum.
    random_state
        As for `CircuitRegressor`.

    Attributes
    ----------
    classes_
        The classes, in the order of ``predict_proba``.
    pair_, circuit_, density_, refined_, penalty_, n_splits_, validation_, subsampled_
        As for `CircuitRegressor`.
    n_features_in_, feature_names_in_
        The columns; names only where there were names.

    Examples
    --------
    >>> from expecta import ChowLiu
    >>> table = {"sky": ["sun", "rain"] * 30, "wind": [3, 5, 8, 4, 6] * 12}
    >>> swim = ["yes" if sky == "sun" else "no" for sky in table["sky"]]
    >>> model = CircuitClassifier(density=ChowLiu(), random_state=0).fit(table, swim)
    >>> model.predict({"sky": ["sun", "rain"], "wind": [4, None]}).tolist()
    ['yes', 'no']
    >>> model.predict_proba({"sky": [None], "wind": [4]}).round(2).tolist()
    [[0.5, 0.5]]
    """

    def __init__(
        self,
        *,
        density: Any = None,
        vtree: Any = None,
        encoder: Any = None,
        max_bins: int = 256,
        max_splits: int | str = "auto",
        penalties: Any = (1.0, 3.0, 10.0),
        completions: int = 5,
        tol: float = 1e-9,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            density=density,
            vtree=vtree,
            encoder=encoder,
            max_bins=max_bins,
            max_splits=max_splits,
            penalties=penalties,
            completions=completions,
            random_state=random_state,
        )
        self.tol = tol

    @in_stages(STAGES)
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learn from a table, with or without missing values, and a class for each row.

        A row of ``sample_weight`` w counts as w equal rows, as for `CircuitRegressor`.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        y
            Classes.  # (rows,)
        sample_weight
            How much each row counts.  # (rows,)

        Returns
        -------
        self
            The same, which has learned.
        """
        check_tolerance(check_number("tol", self.tol))
        labels = _read_labels(y)
        table = self._training_table(X, len(labels))
        weight = read_training_weights(sample_weight, len(labels))
        seeds = Seeds.of(self.random_state)
        self.classes_, number = np.unique(labels, return_inverse=True)
        finer = self._learn_density(table, weight, seeds)
        self._parts = None
        self._keep(table, number.astype(np.float64), weight, y)
        k = len(self.classes_)
        if k == 1:  # nothing to tell apart
            tables = [np.zeros(c) for c in self.encoder_.cardinalities_.tolist()]
            g = linear(self.refined_.circuit.vtree, tables, link="logistic")
            self.pair_ = Pair(self.refined_.circuit, g)
            self.penalty_, self.n_splits_, self.validation_ = DEFAULT_PENALTY, 0, {}
            return self
        codes = self.encoder_.codes(table)
        training = self._training(codes, weight, number, seeds)
        targets = np.eye(k)[number][:, 1:] if k == 2 else np.eye(k)[number]
        curves = column_curves(self.encoder_)
        grown = self._grow(training, curves, targets, "logistic", seeds, keep_folds=False)
        self.pair_ = Pair(self.refined_.circuit, grown.circuit)
        scaled = ScaledTarget(PLAIN, 0.0, 1.0, targets)
        self._parts = CircuitParts(codes, weight, finer, training, scaled, "logistic", grown)
        return self

    # -- asking -----------------------------------------------------------------------

    def _classifies(self) -> bool:
        return True

    @property
    def held_out_loss_(self) -> float:
        """The loss on held-out rows, in nats a row; NaN where there were none."""
        self._model_key()
        tried: dict[float, dict[int, float]] = getattr(self, "validation_", None) or {}
        return float(tried.get(self.penalty_, {}).get(self.n_splits_, np.nan))

    def predict_proba(
        self,
        X: Any,
        *,
        method: str = "spectral",
        order: int = 1,
        return_std: bool = False,
        return_error: bool | str = False,
    ) -> Any:
        """Predict the probability of each class, its expectation over the unknown inputs.

        A row of probability zero under the density gives NaN and an
        ImpossibleEvidenceWarning, unless it is complete.

        Parameters
        ----------
        X
            Rows in which NaN, None or pd.NA is unknown: a frame, a dict of columns, records, an
            array, or one row as a mapping to values. Absent columns are unknown, with a warning.
        method
            "spectral": within ``tol``. "taylor": the paper's approximation of that order,
            which is cheaper; of order 1 it is σ at the expected log-odds.
        order
            Of Taylor's formula.
        return_std
            Whether to return the standard deviation of each probability over the unknown inputs
            too: how far it would move if they were known, zero for a complete row. Within a bound
            for two classes, sampled for more.
        return_error
            Whether to return a bound on the absolute error of each probability too, NaN
            where none is known; with "fit", its standard error over other training rows, as
            in :meth:`predict`.

        Returns
        -------
        array of shape (rows, classes), and what else was asked for, in this order
        """
        if method not in ("spectral", "taylor"):
            raise ValueError(f'method is "spectral" or "taylor", not {method!r}')
        check_integer("order", order, 0)
        model = self.expected_model
        assert isinstance(model, LearnedCircuit)
        rows = model.rows(X)
        probability, error = model.probabilities(rows, method, order)
        parts = [probability, *([model.probability_std(rows)] if return_std else [])]
        return self._with_error(parts, error, rows, return_error)


def _read_labels(y: Any) -> npt.NDArray[Any]:
    """Read the classes."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    # pandas' own integers and Booleans would become floats, and all become text in a mixed list
    listed = isinstance(y, list | tuple)
    labels = np.asarray(column_or_1d(y if listed else np.asarray(y), warn=True))
    if labels.dtype.kind in "fc" and not np.all(np.isfinite(labels)):
        raise DomainError(
            "y has unknown or infinite values (NaN or inf); "
            "leave out the rows whose class is missing"
        )
    single = y if listed else labels if labels.dtype == object else ()
    no_time = labels.dtype.kind in "mM" and np.any(np.isnat(labels))
    if no_time or any(map(is_missing, single)):
        raise DomainError("y has unknown values; leave out the rows whose class is missing")
    kinds = {_kind(cls) for cls in set(map(type, single))}
    if len(kinds) > 1:
        raise DomainError(
            f"y is all strings or all numbers or all Booleans, and these are "
            f"{' and '.join(sorted(kinds))}; make them one, such as [str(label) for label in y]"
        )
    if labels.dtype == object and kinds in ({"numbers"}, {"Booleans"}):
        labels = np.array(labels.tolist())
    try:
        check_classification_targets(labels)
    except TypeError as problem:  # classes of several types, which have no order
        raise DomainError(f"y is all strings or all numbers: {problem}") from None
    return labels


def _kind(cls: type) -> str:
    """Return what labels of a type are."""
    kinds = (("strings", str), ("Booleans", bool), ("Booleans", np.bool_), ("numbers", Number))
    return next((name for name, of in kinds if issubclass(cls, of)), cls.__name__)
