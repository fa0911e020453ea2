"""What is asked of a fitted ExpectedPredictor: an output of its model, or a class's probability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from expecta.common.arrays import Bools, Ints
from expecta.common.errors import DomainError
from expecta.expected.about import CELLS, About, Answer, Sampling
from expecta.expected.classes import class_index
from expecta.expected.expected_output import ExpectedOutput
from expecta.expected.model_output import output_of
from expecta.tables.table import Table, read_table

if TYPE_CHECKING:
    from expecta.estimators.expected_predictor import ExpectedPredictor

__all__ = ["of_predictor"]


def of_predictor(model: ExpectedPredictor, of: Any = None) -> ExpectedOutput:
    """Return what the model of an ExpectedPredictor returns: a number, or a probability."""
    answers = model.answers
    classes = getattr(model, "classes_", None)
    n_outputs = len(answers.scale)
    place = None if classes is None else class_index(classes, of)
    output = _output(n_outputs, of) if place is None else place
    if classes is not None and answers.margins_only and n_outputs == 1:
        if place != 1:
            raise DomainError(f"the model has one margin, for {classes[1]!r}; leave of out")
        output = 0

    def own(table: Table, rows: Ints, hidden: Bools) -> Answer:
        masked = answers.masked(table, rows, hidden)
        rng = np.random.default_rng(model.random_state)
        found = answers.respond(
            masked, answers.codes(masked), model.rtol, model.max_samples, rng, spread=False
        )
        return found.mean[:, output], found.error[:, output]

    about = About(
        _name(model, classes, place, output if n_outputs > 1 else None),
        place,
        answers.density.encoder_,
        answers.density.circuit,
        model.training_rows_,
        read_table,
        Sampling(
            model.rtol, model.max_samples, float(answers.scale[output]), model.random_state or 0
        ),
        f"{model.explain_exactness()}\nOf groups: {CELLS}",
        # a hidden cell would be a hole, where that is a value
        None if answers.holed else own,
        is_margin=answers.margins_only,
    )
    return output_of(about, answers, output)


def _output(n_outputs: int, of: Any) -> int:
    """Return which output of a regressor is asked about."""
    if of is None and n_outputs == 1:
        return 0
    if isinstance(of, int) and 0 <= of < n_outputs:
        return of
    raise DomainError(
        f"the model has {n_outputs} output(s); name one by its place, of=0 to of={n_outputs - 1}"
    )


def _name(model: ExpectedPredictor, classes: Any, place: int | None, output: int | None) -> str:
    """Return what the number is called."""
    if place is not None:
        return f"{'margin of ' if model.answers.margins_only else 'P'}({classes[place]})"
    named = model.training_rows_.name if model.training_rows_ else "prediction"
    return named if output is None else f"{named} {output}"
