"""From margins to what a model says: numbers of a regressor, probabilities of a classifier."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, softmax

from expecta.common.arrays import Floats
from expecta.readers.forms import Form

__all__ = ["centred", "respond", "undone"]

FAR = 1e-4  # nearer to 0 or 1 a probability of 32 bits does not tell its margin


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


def undone(form: Form, output: Floats) -> Floats:
    """Return margins from what a model says; NaN where rounding has lost them.

    Those of classes are about their mean, in a column per class; the same of a margin is
    :func:`centred`.
    """
    with np.errstate(all="ignore"):
        if form.link == "exp":
            log: Floats = np.where(output > 0, np.log(output), np.nan)
            return log
        if form.link == "logistic" and form.classes is None:
            output = np.hstack([1 - output, output])
        near = (output < FAR).any(axis=1, keepdims=True)
        margin = centred(form, np.log(output))
        if form.link == "logistic" and form.classes is None:
            margin = margin[:, 1:]
        kept: Floats = np.where(near, np.nan, margin)
        return kept


def centred(form: Form, margin: Floats) -> Floats:
    """Return margins as :func:`undone` does."""
    if form.link == "exp":
        return margin
    if margin.shape[1] == 1:
        margin = np.hstack([-margin / 2, margin / 2])
        return margin[:, 1:] if form.classes is None else margin
    about: Floats = margin - margin.mean(axis=1, keepdims=True)
    return about
