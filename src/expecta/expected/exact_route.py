"""What was read of a model over the values of a density, and in words how far to trust it."""

from __future__ import annotations

from typing import NamedTuple

from expecta.common.trust import Trust
from expecta.expected.margin import Margin
from expecta.expected.row_template import RowTemplate
from expecta.readers.forms import Form, Trees


class ExactRoute(NamedTuple):
    """What was read of a model, over the values of a density.

    Answers are exact if it was proved from the library's code. ``tried`` says what was only
    tried, on the rows of ``checked_rows``, a reason each.
    """

    form: Form
    margin: Margin
    tried: tuple[str, ...] = ()
    checked_rows: int = 0  # on which the model predicted the same
    refused: tuple[tuple[int, int], ...] = ()  # variables, and values that the model does not take

    @property
    def trust(self) -> Trust:
        """How far the mean of the margin can be trusted."""
        return Trust.CHECKED if self.tried else Trust.EXACT

    @property
    def exact(self) -> str:
        """What is said where something is exact, if what was read of the model is right."""
        return f"{Trust.CHECKED} on {self.checked_rows} rows" if self.tried else Trust.EXACT


def explain_route(name: str, route: ExactRoute | None, why: str, tol: float) -> list[str]:
    """Say what is exact of a model's answers and what is not, a sentence in each line."""
    if route is None:
        return [
            f"{name}: {Trust.SAMPLED}. {why[0].upper() + why[1:]}.",
            "Predictions average the model over samples from the density, given what is known; "
            "return_error=True gives their standard error.",
            "Spread (return_std): from the same samples.",
        ]
    form, margin, exact = route.form, route.margin, route.exact
    kind, moments, response = margin.explain(form, tol, exact)
    known = {
        Trust.EXACT: exact,
        Trust.WITHIN: f"variance {Trust.WITHIN} 1e-10" + (f", {exact}" if route.tried else ""),
    }.get(margin.spread_trust(form), Trust.SAMPLED)
    return [
        f"{name}: {kind}",
        *(f"{Trust.CHECKED.capitalize()}, not proved: {reason}." for reason in route.tried),
        moments,
        response,
        f"Spread of the output (return_std): {known}.",
        "Unknown numbers: no threshold of the model cuts a bin of the density."
        if isinstance(form.margin, Trees)
        else "Unknown numbers: each bin of the density counts as the mean over its training rows.",
        *form.notes,
    ]


def explain_rows(template: RowTemplate, asks_model: bool) -> list[str]:
    """Say which missing values are values, who answers for complete rows, and what is assumed."""
    seen = ", ".join(sorted(template.missing_is_value))
    return [
        *([f"Missing values of {seen} are values: the model gets them as they are."] * bool(seen)),
        "Complete rows: the model's own answer."
        if asks_model
        else "Complete rows: from what was read of the model, which is not in the file.",
        f"{Trust.ASSUMED.capitalize()}: that the learned density is right, and that, "
        f"given the known values, missingness carries no information.",
    ]


def short_exactness(route: ExactRoute | None) -> str:
    """Say how far the mean can be trusted, first in a sentence that stands alone."""
    if route is None:
        return "Sampled from the learned density, with standard errors."
    form, exact, trust = route.form, route.exact.capitalize(), Trust.EXACT
    if form.link not in ("identity", "none"):
        trust = route.margin.response_trust(form)
    if trust is Trust.SAMPLED:
        return (
            f"Sampled from the learned density, with standard errors: the mean. "
            f"{exact}: the mean of the margin."
        )
    if trust is Trust.WITHIN:
        exact = f"{exact}, within a bound" if route.tried else "Within a bound"
    return f"{exact}, given the learned density: the mean."
