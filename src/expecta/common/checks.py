"""What parameters may be, said in one sentence where they are not."""

from __future__ import annotations

import math
import numbers


def check_integer(name: str, value: object, minimum: int) -> int:
    """Return a parameter that is a whole number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < minimum:
        raise ValueError(f"{name} is a whole number of at least {minimum}, not {value!r:.60}")
    return int(value)


def check_number(name: str, value: object) -> float:
    """Return a parameter that is a finite number of at least zero."""
    good = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not good or not 0.0 <= float(value) < math.inf:  # type: ignore[arg-type]
        raise ValueError(f"{name} is a finite number of at least 0, not {value!r:.60}")
    return float(value)  # type: ignore[arg-type]
