"""How often each row counts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Floats
from expecta.common.errors import DomainError

__all__ = ["weights_for"]


def weights_for(given: npt.ArrayLike | None, rows: int) -> Floats:
    """Read sample weights; none given is one each."""
    if given is None:
        return np.ones(rows)
    try:
        weight = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        weight = np.zeros(0)
    if weight.shape != (rows,) or not np.all(np.isfinite(weight) & (weight >= 0)):
        raise DomainError(f"sample_weight must be {rows} finite numbers of at least 0")
    return weight
