"""Predict all that is asked about rows at once, for the command line and the service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Bools, Floats
from expecta.common.errors import DomainError
from expecta.expected.expected_model import ModelRows
from expecta.queries.impossible import OneWarning

if TYPE_CHECKING:
    from expecta.estimators.expected_estimator import ExpectedEstimator


class RowPredictions(NamedTuple):
    """What a model predicts for rows; None is what was not asked for.

    Attributes
    ----------
    target, classes
        What is predicted, and the classes of a classifier.
    impossible
        Which rows have probability zero under the density: nothing is predicted.  # (rows,)
    prediction
        Expected outputs, NaN for an impossible row; or classes, None for one, and for all rows
        of a model whose class is not that of the largest probability, where ``proba`` is asked.
        # (rows,), of several outputs (rows, outputs)
    error
        How far off it may be, of all outputs or classes at most: 0 where it is exact.  # (rows,)
    std
        Spread of the model's output over the unknown inputs, as the prediction.
    interval, levels, quantiles
        Interval of y  # (rows, 2), the levels of quantiles of y, and these.  # (rows, levels)
    proba, proba_error
        Expected probability of each class, and its error.  # (rows, classes)
    """

    target: str
    classes: list[Any] | None
    impossible: Bools
    prediction: npt.NDArray[Any]
    error: Floats
    std: Floats | None = None
    interval: Floats | None = None
    levels: tuple[float, ...] = ()
    quantiles: Floats | None = None
    proba: Floats | None = None
    proba_error: Floats | None = None

    def columns(self, *, error: bool = False) -> dict[str, npt.NDArray[Any]]:
        """Return the predictions as columns of a table, named after the target."""
        name, many = self.target, self.prediction.ndim == 2
        columns: dict[str, npt.NDArray[Any]] = {}
        for word, values in (("predicted", self.prediction), ("std", self.std)):
            if values is not None and many:
                columns |= {f"{name}_{word}_{i}": part for i, part in enumerate(values.T)}
            elif values is not None:
                columns[f"{name}_{word}"] = values
        if self.interval is not None:
            columns |= {f"{name}_low": self.interval[:, 0], f"{name}_high": self.interval[:, 1]}
        if self.quantiles is not None:
            for level, values in zip(self.levels, self.quantiles.T, strict=True):
                columns[f"{name}_quantile_{level:g}"] = values
        if self.proba is not None:
            for label, values in zip(self.classes or (), self.proba.T, strict=True):
                columns[f"{name}_probability_{label}"] = values
        return columns | ({f"{name}_error": self.error} if error else {})

    def to_arrow(self, *, error: bool = False) -> Any:
        """Return the columns as an Arrow batch; of impossible rows they are null.

        Types depend on the model alone, so that the batches of a stream have the same.
        """
        import pyarrow as pa

        labels = None if self.classes is None else pa.array(self.classes).type
        arrays = {
            name: pa.array(
                values, type=labels if values.dtype == object else pa.float64(), from_pandas=True
            )
            for name, values in self.columns(error=error).items()
        }
        return pa.RecordBatch.from_pydict(arrays)


def predict_rows(
    model: ExpectedEstimator,
    X: Any,
    *,
    std: bool = False,
    interval: float | None = None,
    quantiles: Sequence[float] | None = None,
    proba: bool = False,
) -> RowPredictions:
    """Predict for rows, and what else is asked for.

    The numbers are those of ``predict``, ``predict_interval``, ``predict_quantiles`` and
    ``predict_proba``, to the last bit.

    Parameters
    ----------
    model
        An estimator that has learned.
    X
        Rows, as ``predict`` takes them, or as the expected model has read them.
    std, interval, quantiles
        Whether to add the spread of the model's output, an interval of this coverage, and
        quantiles of these levels. Regression only.
    proba
        Whether to add the probability of each class. Classification only.
    """
    check_asked(model, std=std, interval=interval, quantiles=quantiles, proba=proba)
    classes = getattr(model, "classes_", None)
    expected = model.expected_model
    rows = X if isinstance(X, ModelRows) else expected.rows(X)
    with OneWarning():
        answers = expected.answer(rows, std=std)
        impossible: Bools = np.any(np.isnan(answers.mean), axis=1)
        target: str = model.target_name_
        error = answers.error.max(axis=1, initial=0.0)
        if classes is not None:
            labels = _labels(model, rows, answers.mean, impossible, proba)
            predicted = RowPredictions(target, classes.tolist(), impossible, labels, error)
            if not proba:
                return predicted
            return predicted._replace(proba=answers.mean, proba_error=answers.error)
        one = expected.n_outputs == 1
        levels = () if quantiles is None else tuple(map(float, quantiles))
        return RowPredictions(
            target,
            None,
            impossible,
            answers.mean[:, 0] if one else answers.mean,
            error,
            std=None if not std else answers.std[:, 0] if one else answers.std,
            interval=None if interval is None else model.predict_interval(rows.table, interval),
            levels=levels,
            quantiles=None if quantiles is None else model.predict_quantiles(rows.table, levels),
        )


def check_asked(
    model: ExpectedEstimator,
    *,
    std: bool = False,
    interval: float | None = None,
    quantiles: Sequence[float] | None = None,
    proba: bool = False,
) -> None:
    """Refuse to ask a model of numbers about classes, and the other way round."""
    classes = getattr(model, "classes_", None)
    if classes is None and proba:
        raise DomainError("proba is for classes, and this model predicts numbers; try std")
    if classes is not None and (std or interval is not None or quantiles is not None):
        raise DomainError(
            "std, interval and quantiles are for numbers, and this model predicts classes; "
            "try proba"
        )


def _labels(
    model: ExpectedEstimator, rows: ModelRows, shares: Floats, impossible: Bools, proba: bool
) -> npt.NDArray[Any]:
    """Return the class of each row; None where there is none to tell."""
    labels = np.full(len(shares), None, object)
    try:
        labels[:] = model._labels(rows, shares).tolist()
    except TypeError:  # the model's class is not that of the largest probability
        if not proba:
            raise
    labels[impossible] = None
    return labels
