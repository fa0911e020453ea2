"""Take tables that lie on a card, and give answers as arrays of the same library."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from expecta.circuits.evidence import Evidence, Rows, as_evidence
from expecta.common.arrays import Ints
from expecta.engine.cuda.rows_on_card import RowsOnCard, lies_on_card


def rows_of(X: Rows, cardinalities: Ints) -> Evidence | RowsOnCard:
    """Turn rows into evidence for a circuit's variables, or leave them on the card."""
    return RowsOnCard.of(X, cardinalities) if lies_on_card(X) else as_evidence(X, cardinalities)


def same_kind(values: Any, X: object) -> Any:
    """Return an answer as it is, or, if it lies on a card, as an array of the library of X."""
    if isinstance(values, np.ndarray) or type(values) is type(X):
        return values
    library = sys.modules.get(type(X).__module__.partition(".")[0])
    read = getattr(library, "from_dlpack", None)
    return values if read is None else read(values)
