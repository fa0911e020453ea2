"""What is exact for a model, in words."""

from __future__ import annotations

from expecta.expected.additive_route import Additive
from expecta.expected.box_route import Boxes
from expecta.expected.model_answers import Answers
from expecta.readers.forms import Form, Trees

__all__ = ["explained"]

WHOLE = "Complete rows: the model's own answer."


def explained(answers: Answers, name: str) -> str:
    """Say what is exact, what is not, and why, a sentence in each line."""
    form, route = answers.form, answers.route
    if form is None or route is None:
        why = answers.why[0].upper() + answers.why[1:]
        lines = [
            f"{name}: sampled. {why}.",
            "Predictions average the model over draws from the density, given what is known; "
            "return_error=True gives their standard error.",
            "Spread (return_std): from the same draws.",
        ]
        return "\n".join([*lines, *_holes(answers), WHOLE])
    if isinstance(route, Additive):
        lines = [
            f"{name}: adds up a function of each column, so it is a circuit.",
            "Moments of the margin: exact, all of them.",
        ]
    else:
        lines = [
            f"{name}: a sum of {route.sum.n_boxes} boxes; the mean of a sum is the sum of means.",
            "Mean of the margin: exact.",
        ]
    small = form.link not in ("identity", "none") and isinstance(route, Boxes) and route.is_small
    lines.append(_response(form, route, small, answers.tol))
    if form.link == "identity":
        known = isinstance(route, Additive) or route.knows_variance
    else:
        known = small
    lines.append(f"Spread of the output (return_std): {'exact' if known else 'sampled'}.")
    if isinstance(form.margin, Trees):
        lines.append("Unknown numbers: no threshold of the model cuts a bin of the density.")
    else:
        lines.append(
            "Unknown numbers: each bin of the density counts as the mean over its training rows."
        )
    return "\n".join([*lines, *_holes(answers), *form.notes, WHOLE])


def _holes(answers: Answers) -> list[str]:
    holed = answers.holed
    return [f"A hole is a value in {', '.join(holed)}: the model sees it as it is."] * bool(holed)


def _response(form: Form, route: Additive | Boxes, small: bool, tol: float) -> str:
    link = form.link
    if link == "identity":
        return "Predictions are the margin: exact."
    if link == "none":
        return (
            "There are no probabilities, only margins: classes are those of the largest "
            "expected margin."
        )
    if small:
        return f"E[{link}(margin)]: exact, the trees are few."
    if isinstance(route, Additive) and link == "exp":
        return "E[exp(margin)]: exact."
    if isinstance(route, Additive) and link == "logistic":
        return f"Probabilities, E[{link}(margin)]: spectral, within tol = {tol:g}."
    return (
        f"E[{link}(margin)]: sampled, with a standard error; decision_function has the exact mean "
        f"of the margin."
    )
