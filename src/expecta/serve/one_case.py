"""Answer all that a decision on one case needs, at once."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field

from expecta.ask.groups import LEVELS, Group
from expecta.ask.populations import Population
from expecta.ask.printed_answer import plain
from expecta.ask.shapley import MAX_COLUMNS, shapley_of_facts
from expecta.circuits.evidence import Evidence
from expecta.common.errors import DomainError, ImpossibleEvidenceError
from expecta.expected.expected_output import ExpectedOutput
from expecta.serve.asked_questions import StrictModel, group_curve
from expecta.serve.json_rows import has_evidence
from expecta.serve.served_model import PredictOptions, ServedModel

Part = Literal["distribution", "interval", "threshold", "next", "contributions"]
POINTS = 101  # of a curve
FAR_LEVELS = 0.005, 0.995  # of y, between which its curve is drawn


class CaseRequest(StrictModel):
    """One case: what is known of it, and what to tell."""

    row: dict[str, Any] = Field({}, description="Columns to values, sets, intervals or null.")
    of: Any = Field(None, description="The class, or the index of the output.")
    threshold: float | None = Field(None, description='The decision is "yes" from here on.')
    coverage: float = Field(0.9, gt=0, lt=1, description="Of the interval of the target.")
    cost: dict[str, float] | None = Field(None, description="What it costs to know columns.")
    parts: list[Part] = Field(
        ["distribution", "interval", "threshold", "next", "contributions"],
        description="What to tell beside the prediction.",
    )


def answer_case(served: ServedModel, request: CaseRequest) -> dict[str, Any]:
    """Return prediction, distribution, interval, decision, next questions and contributions.

    The numbers are those of ``predict`` (``ask``, where the row has sets or intervals),
    ``predict_interval``, ``stability``, ``next_question`` and ``shapley``. Where a number cannot
    be had it is null and a remark says why.
    """
    served.check_predicts()
    model, cells = served.model, served.rows.row(request.row)
    soft, numbers = has_evidence(cells), served.classes is None
    facts = dict(zip(served.rows.names, cells, strict=True))
    subject = model.expected_output(request.of)
    remarks = served.rows.unseen(cells)
    options = PredictOptions(std=numbers, proba=not numbers)
    document: dict[str, Any] = {
        "model": served.name,
        "version": served.version,
        **served.predict_all([cells], options)[0],
        "name": subject.name,
        "is_probability": subject.is_probability,
        "exactness": subject.exactness,
    }
    impossible = document["error"] is None
    if impossible:
        remarks.append(
            "The known values have probability zero under the learned density: no answer."
        )
    if "distribution" in request.parts:
        group = model.ask(facts, of=request.of, population="density")
        document["distribution"] = _distribution(group)
        if group.distribution is None and not soft and not impossible:
            document["distribution"] |= _of_row(subject, served.rows.table([cells]))
        remarks += document["distribution"]["remarks"]
    if "interval" in request.parts:
        document["interval"] = None
        if soft:
            remarks.append(
                f"Intervals of {served.target} are calibrated for single values and unknown cells."
            )
        elif numbers and not impossible and hasattr(model, "calibration_"):
            document["interval"] = _interval(served, cells, request)
    if "threshold" in request.parts and request.threshold is not None and not impossible:
        document["threshold"] = _threshold(served, request, facts, soft)
    if "next" in request.parts:
        document["next"] = None
        if not impossible:
            known = facts if soft else served.rows.single(request.row)
            asked = model.next_question(known, cost=request.cost, of=request.of)
            document["next"] = asked.to_dict()
    if "contributions" in request.parts:
        document["contributions"] = None
        if not impossible:
            n_known = sum(cell is not None for cell in cells)
            if not soft:
                document["contributions"] = model.shapley(facts, of=request.of).to_dict()
            elif n_known <= MAX_COLUMNS:
                document["contributions"] = shapley_of_facts(subject, facts).to_dict()
            else:
                remarks.append(f"Contributions of sets are for up to {MAX_COLUMNS} known columns.")
    document["remarks"] = list(dict.fromkeys(remarks))
    return plain(document)


def _distribution(group: Group) -> dict[str, Any]:
    """Return the distribution of the model's output over the unknown inputs."""
    return {**group.to_dict(), "curve": group_curve(group)}


def _of_row(subject: ExpectedOutput, table: Any) -> dict[str, Any]:
    """Return the distribution for a row that no training row is like, as ``predict`` sees it."""
    codes = subject.encoder.codes(subject.table(table))
    evidence = Evidence.rows(codes, subject.encoder.cardinalities_)
    summary = subject.describe_groups(evidence, np.ones((1, 1)))
    distribution = subject.distribution(evidence, np.ones(1))
    quantiles, errors = (part.tolist() for part in distribution.quantiles(LEVELS))
    x, below = distribution.curve()
    return {
        "mean": float(summary.mean[0]),
        "error": float(summary.error[0]),
        "std": float(np.sqrt(summary.variance[0])),
        "quantiles": dict(zip(LEVELS.tolist(), quantiles, strict=True)),
        "quantile_errors": dict(zip(LEVELS.tolist(), errors, strict=True)),
        "remarks": ["The value is not in the training data: the nearest bin counts."],
        "curve": {"x": x, "cdf": below},
    }


def _interval(served: ServedModel, cells: list[Any], request: CaseRequest) -> dict[str, Any]:
    """Return an interval of the target, and its whole distribution."""
    table = served.rows.table([cells])
    low, high = served.model.predict_interval(table, request.coverage)[0].tolist()
    distribution = served.model.predict_distribution(table)
    first, last = distribution.quantile(list(FAR_LEVELS))[0].tolist()
    grid = np.linspace(first, last, POINTS)
    return {
        "target": served.target,
        "coverage": request.coverage,
        "low": low,
        "high": high,
        "median": distribution.quantile([0.5])[0, 0],
        "curve": {"x": grid, "cdf": distribution.cdf(grid)[0]},
        "above_threshold": None
        if request.threshold is None
        else distribution.above([request.threshold])[0, 0],
    }


def _threshold(
    served: ServedModel, request: CaseRequest, facts: dict[str, Any], soft: bool
) -> dict[str, Any]:
    """Return the decision, and how likely it stands once everything is known."""
    assert request.threshold is not None
    if not soft:
        answer = served.model.stability(facts, request.threshold, of=request.of).to_dict()
        one = ("value", "decision", "probability", "error")
        return answer | {name: answer[name][0] for name in one}
    subject = served.model.expected_output(request.of)
    if not np.isfinite(request.threshold):
        raise DomainError("a threshold is a finite number")
    try:
        group = Population.read(subject, facts)
    except ImpossibleEvidenceError:
        return {"threshold": request.threshold, "decision": None, "probability": None}
    mean, _, _ = served.describe(subject, facts)
    weight = group.weight / group.weight.sum()
    above, error = subject.above(group.evidence, request.threshold)
    yes = mean >= request.threshold
    share = float(weight @ above)
    return {
        "name": subject.name,
        "threshold": request.threshold,
        "value": mean,
        "decision": yes,
        "probability": share if yes else 1.0 - share,
        "error": float(weight @ error),
        "exactness": subject.exactness,
    }
