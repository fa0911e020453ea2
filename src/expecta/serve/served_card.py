"""Describe a served model: its columns, their population, and what is exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from expecta.ask.printed_answer import plain
from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Floats
from expecta.common.errors import DomainError
from expecta.report.population import shares_of
from expecta.tables.column import Column
from expecta.tables.number_column import NumberColumn
from expecta.tables.scalars import TIMES

if TYPE_CHECKING:
    from expecta.serve.served_model import ServedModel

MAX_CATEGORIES = 1000  # of a column that are listed


def served_card(served: ServedModel) -> dict[str, Any]:
    """Return what a form, or a program, needs to know of a model. Exact, given the density.

    Of each column its kind, its categories or its range, and the distribution of the population
    under the density as a histogram; of the model what it predicts, over everyone and in words
    how exactly.
    """
    from expecta import __version__

    encoder = served.density.encoder_
    marginals = served.density.circuit.marginals(Evidence.unknown(encoder.cardinalities_))
    model = served.model
    card: dict[str, Any] = {
        "name": served.name,
        "version": served.version,
        "kind": type(model).__name__,
        "task": _task(served),
        "target": served.target,
        "classes": served.classes,
        "density": type(getattr(model, "density_", model)).__name__,
        "expecta_version": __version__,
        "exactness": served.exactness,
        "noise": getattr(model, "noise_", None),
        "intervals": hasattr(model, "calibration_"),
        "training_rows": _n_rows(model),
        "columns": [
            _column(column, marginals[variable][0])
            for variable, column in enumerate(encoder.columns_)
        ],
        "outputs": [],
    }
    if served.predicts:
        card["outputs"] = [_output(served, of) for of in _outputs(served)]
    return plain(card)


def _task(served: ServedModel) -> str:
    if not served.predicts:
        return "density"
    return "regression" if served.classes is None else "classification"


def _n_rows(model: Any) -> int | None:
    rows = getattr(model, "_training_data", None)
    return None if rows is None else len(rows)


def _outputs(served: ServedModel) -> list[Any]:
    """Return what ``of`` may be."""
    if served.classes is not None:
        return served.model.classes_.tolist() if len(served.classes) > 1 else []
    n = served.model.expected_model.n_outputs
    return [None] if n == 1 else list(range(n))


def _output(served: ServedModel, of: Any) -> dict[str, Any]:
    """Return what the model says of everyone, for one of its outputs."""
    group = served.model.ask(of=of)
    x, below = group.curve()
    return {"of": of, **group.to_dict(), "curve": {"x": x, "cdf": below}}


def _column(column: Column, shares: Floats) -> dict[str, Any]:
    known = column.plain
    card: dict[str, Any] = {
        "name": column.name,
        "kind": column.kind,
        "ordered": column.ordered,
        "missing_is_value": known is not column,
    }
    if known is not column:
        card["missing_share"] = float(shares[-1])
        shares = shares[:-1] / (float(shares[:-1].sum()) or 1.0)
    if isinstance(known, NumberColumn):
        low, high = float(known.lows.min()), float(known.highs.max())
        card |= {
            "range": [low, high],
            "step": known.step or None,
            "mean": float(shares @ known.means),
        }
        if column.kind in TIMES:
            card["zone"] = known.zone
            card["range_text"] = [known._text(end, 6) for end in (low, high)]
        histogram = shares_of(known, shares, None, 0)
        card["histogram"] = {
            "edges": histogram.edges,
            "shares": histogram.density,
            "labels": histogram.labels,
            "tails_cut": histogram.cut,
        }
    else:
        card["values"] = [
            {"value": value, "label": label, "share": share}
            for value, label, share in zip(
                _values(known)[:MAX_CATEGORIES], known.labels, shares.tolist(), strict=False
            )
        ]
        card["other"] = known.other
    return card


def _values(column: Column) -> list[Any]:
    """Return what a cell may be; the label where a value stands for all further ones."""
    if column.values:
        return [*column.values, *column.labels[len(column.values) :]]
    try:
        return [int(value) for value in column.numeric().tolist()]
    except DomainError:
        return list(column.labels)
