"""From margins to what a model says: numbers of a regressor, probabilities of a classifier."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, softmax

from expecta.arrays import Floats
from expecta.models.forms import Form

__all__ = ["respond"]


def respond(form: Form, margin: Floats) -> Floats:
    """Apply a form's link to margins.

    Parameters
    ----------
    form
        The model that was read.
    margin
        What ``form.margin`` returns.  # (rows, outputs)

    Returns
    -------
    What ``predict`` of a regressor returns, in a column per output, or ``predict_proba`` of a
    classifier, in a column per class.
    """
    if form.link == "identity":
        return margin
    if form.link == "exp":
        return np.exp(margin)
    if form.link == "logistic":
        second: Floats = expit(margin)
        return second if form.classes is None else np.hstack([expit(-margin), second])
    if form.link == "softmax":
        shares: Floats = softmax(margin, axis=1)
        return shares
    if form.link == "one-vs-rest":
        each = expit(margin)
        ratio: Floats = each / each.sum(axis=1, keepdims=True)
        return ratio
    if form.link == "none":
        raise ValueError("This classifier has margins only, no probabilities: use the margins.")
    raise ValueError(f"There is no link {form.link!r}.")
