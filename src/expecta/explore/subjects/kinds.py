"""The subject of each kind of estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from expecta.densities.density import Density
from expecta.encoding.columns import suggestion
from expecta.errors import DomainError
from expecta.estimators.base import CircuitEstimator
from expecta.explore.subjects.about import About, Sampling
from expecta.explore.subjects.paired import Linked, Shares, one_output
from expecta.explore.subjects.subject import Subject

__all__ = ["CELLS", "class_place", "density_of", "of_circuits", "subject_of", "token_of"]

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


def token_of(model: Any) -> object:  # noqa: ANN401
    """Return what an estimator has learned, which is another object once it learns anew."""
    if isinstance(model, CircuitEstimator):
        check_is_fitted(model, "pair_")
        return model.pair_
    return model.answers


def subject_of(model: Any, of: Any = None) -> Subject:  # noqa: ANN401
    """Return what is asked of an estimator that has learned."""
    if isinstance(model, CircuitEstimator):
        return of_circuits(model, of)
    from expecta.explore.subjects.modelled import of_predictor

    return of_predictor(model, of)


def density_of(model: Any) -> Density:  # noqa: ANN401
    """Return the density of an estimator that has learned."""
    token_of(model)
    density: Density = model.density_
    return density


def of_circuits(model: CircuitEstimator, of: Any = None) -> Subject:  # noqa: ANN401
    """Return what a CircuitRegressor predicts, or the probability that a CircuitClassifier does."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        if of is not None:
            raise DomainError(f"a regressor has one output; leave of={of!r:.40} out")
        name, place = model.target_name_, None
        how = (
            "Mean, standard deviation and share: exact for the model and the density. Quantiles: "
            f"exact for groups of few cells, else within their error. {CELLS}"
        )
    else:
        place = class_place(classes, of)
        name, how = f"P({classes[place]})", _TWO if len(classes) == 2 else _SEVERAL
    pair, read = model.pair_, model._table
    about = About(name, place, model.encoder_, pair.p, model.seen_, read, Sampling(scale=0.1), how)
    if classes is None:
        return Linked(about, pair, "identity", 1e-9)
    if len(classes) > 2:
        return Shares(about, pair, model.tol)
    return Linked(about, one_output(pair, 0, 1.0 if place == 1 else -1.0), "logistic", model.tol)


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
