"""Which class of a classifier is asked about."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.errors import DomainError
from expecta.common.text import suggestion

__all__ = ["class_index"]


def class_index(classes: npt.NDArray[Any], of: Any) -> int:
    """Return the place of the class that is asked about: by default the second of two."""
    if len(classes) < 2:
        raise DomainError("there is a single class, whose probability is 1; nothing to ask")
    texts = [str(one) for one in classes.tolist()]
    if of is None:
        if len(classes) == 2:
            return 1
        raise DomainError(
            f"there are {len(classes)} classes; name one, such as of={classes.tolist()[0]!r}; "
            + suggestion("", texts)
        )
    same = np.flatnonzero([one == of and type(one == of) is bool for one in classes.tolist()])
    if not len(same):
        same = np.flatnonzero([text == str(of) for text in texts])
    if not len(same):
        raise DomainError(f"there is no class {of!r:.60}; {suggestion(of, texts)}")
    return int(same[0])
