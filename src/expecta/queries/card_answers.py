"""Take tables that lie on a card, and give answers as arrays of the same library."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from expecta.circuits.evidence import Evidence, Rows, as_evidence
from expecta.common.arrays import Ints
from expecta.common.settings import current
from expecta.engine.cuda.rows_on_card import RowsOnCard, lies_on_card, worth_sending


def rows_of(X: Rows, cardinalities: Ints) -> Evidence | RowsOnCard:
    """Turn rows into evidence for a circuit's variables, or leave that to a card.

    A card reads what lies there, and large tables where the settings send work to it.
    """
    if isinstance(X, Evidence):
        return as_evidence(X, cardinalities)
    sent = current().device != "cpu" and worth_sending(X, cardinalities)
    if sent or lies_on_card(X):
        return RowsOnCard.of(X, cardinalities)
    return as_evidence(X, cardinalities)


def same_kind(values: Any, X: object) -> Any:
    """Return an answer as it is, or, if it lies on a card, as an array of the library of X."""
    if isinstance(values, np.ndarray) or type(values) is type(X):
        return values
    library = sys.modules.get(type(X).__module__.partition(".")[0])
    read = getattr(library, "from_dlpack", None)
    return values if read is None else read(values)
