"""Turn margins into a model's outputs by its link, and outputs back into margins."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, softmax

from expecta.common.arrays import Floats
from expecta.queries.one_vs_rest import class_shares
from expecta.readers.forms import Form

MIN_PROBABILITY = 1e-4  # nearer to 0 or 1, a probability of 32 bits does not tell its margin


def apply_link(form: Form, margin: Floats) -> Floats:
    """Return what the model predicts, given its margins.  # (rows, outputs) -> (rows, columns).

    That is ``predict`` of a regressor, in a column per output, or ``predict_proba`` of a
    classifier, in a column per class.
    """
    if form.link == "identity":
        return margin
    if form.link == "exp":
        return np.exp(margin)
    if form.link == "logistic":
        second = np.asarray(expit(margin))
        return second if form.classes is None else np.hstack([expit(-margin), second])
    if form.link == "softmax":
        return np.asarray(softmax(margin, axis=1))
    if form.link == "one-vs-rest":
        each = expit(margin)
        return class_shares(each, np.zeros_like(each))[0]
    if form.link == "none":
        raise ValueError("This classifier has margins only, no probabilities: use the margins.")
    raise ValueError(f"There is no link {form.link!r}.")


def invert_link(form: Form, output: Floats) -> Floats:
    """Return margins from a model's outputs; NaN where rounding has lost them.

    The margins of classes have mean zero, in a column per class; :func:`centre_margins` makes
    a form's own margins comparable.
    """
    with np.errstate(all="ignore"):
        if form.link == "exp":
            return np.where(output > 0, np.log(output), np.nan)
        single = form.link == "logistic" and form.classes is None
        if single:
            output = np.hstack([1 - output, output])
        lost = (output < MIN_PROBABILITY).any(axis=1, keepdims=True)
        margin = centre_margins(form, np.log(output))
        return np.where(lost, np.nan, margin[:, 1:] if single else margin)


def centre_margins(form: Form, margin: Floats) -> Floats:
    """Return margins as :func:`invert_link` does."""
    if form.link == "exp":
        return margin
    if margin.shape[1] == 1:
        margin = np.hstack([-margin / 2, margin / 2])
        return margin[:, 1:] if form.classes is None else margin
    return np.asarray(margin - margin.mean(axis=1, keepdims=True))
