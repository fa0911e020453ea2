"""The subject of each kind of estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from expecta.encoding.columns import suggestion
from expecta.errors import DomainError
from expecta.explore.paired import Linked, Shares, one_output
from expecta.explore.subject import About, Sampling, Subject

if TYPE_CHECKING:
    from expecta.estimators.base import CircuitEstimator

__all__ = ["CELLS", "DRAWN", "class_place", "of_circuits", "subject_of"]

CELLS = "A number counts as its bin of the density, and an interval that cuts a bin as a share."
DRAWN = "sampled, with a standard error"
_TWO = (
    "Mean and standard deviation: within a bound. Share: exact. Quantiles: exact for groups of "
    f"few cells, else within their error. {CELLS}"
)
_SEVERAL = (
    "Mean: the ratio of expected one-against-the-rest probabilities, as predict_proba has it, "
    f"within a bound. Spread, quantiles and thresholds: {DRAWN}. Share: exact. {CELLS}"
)


def subject_of(model: Any, of: Any = None) -> Subject:  # noqa: ANN401
    """Return what is asked of an estimator that has learned."""
    if hasattr(model, "template_") or not hasattr(model, "pair_"):
        from expecta.explore.modelled import of_predictor

        return of_predictor(model, of)
    return of_circuits(model, of)


def of_circuits(model: CircuitEstimator, of: Any = None) -> Subject:  # noqa: ANN401
    """Return what a CircuitRegressor predicts, or the probability that a CircuitClassifier does."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        if of is not None:
            raise DomainError(f"a regressor has one output; leave of={of!r:.40} out")
        name, place = model.seen_.name if model.seen_ else "prediction", None
        how = (
            "Mean, standard deviation and share: exact for the model and the density. Quantiles: "
            f"exact for groups of few cells, else within their error. {CELLS}"
        )
    else:
        place = class_place(classes, of)
        name, how = f"P({classes[place]})", _TWO if len(classes) == 2 else _SEVERAL
    p, g = model.pair_.p, model.pair_.g
    about = About(
        name, place, model.encoder_, p, model.seen_, model._table, Sampling(scale=0.1), how
    )
    if classes is None:
        return Linked(about, g, "identity", 1e-9)
    if len(classes) > 2:
        return Shares(about, g, model.tol)
    return Linked(about, one_output(g, 0, 1.0 if place == 1 else -1.0), "logistic", model.tol)


def class_place(classes: npt.NDArray[Any], of: Any) -> int:  # noqa: ANN401
    """Return the place of the class that is asked about: by default the second of two."""
    if len(classes) < 2:
        raise DomainError("there is a single class, whose probability is 1; nothing to ask")
    texts = [str(one) for one in classes.tolist()]
    if of is None:
        if len(classes) == 2:
            return 1
        raise DomainError(
            f"there are {len(classes)} classes; name one, such as of={classes.tolist()[0]!r}; "
            + suggestion("", texts)
        )
    same = np.flatnonzero([one == of and type(one == of) is bool for one in classes.tolist()])
    if not len(same):
        same = np.flatnonzero([text == str(of) for text in texts])
    if not len(same):
        raise DomainError(f"there is no class {of!r:.60}; {suggestion(of, texts)}")
    return int(same[0])
