"""Show the distribution of one column, in the user's words and units."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from expecta.common.arrays import Floats
from expecta.common.errors import DomainError
from expecta.common.text import figure
from expecta.tables import Column

MAX_LINES = 24  # of a printed distribution
MIN_SHARE = 0.0005  # what prints as 0.0% is left to "other values"
BAR_CHARACTERS = 30


@dataclass(frozen=True, eq=False)
class Marginal:
    """The distribution of one column under a density.

    Parameters
    ----------
    column
        What the encoder knows of the column.
    probabilities
        Of each of its values.  # (values,)

    Examples
    --------
    >>> from expecta import Independent
    >>> density = Independent(pseudo_count=0).fit({"age": [20, 30, 30, 40]})
    >>> density.marginal("age").mean
    30.0
    """

    column: Column
    probabilities: Floats

    @property
    def name(self) -> str:
        """The column's name."""
        return self.column.name

    @property
    def labels(self) -> tuple[str, ...]:
        """A readable text for every value."""
        return tuple(self.column.labels[i] for i in range(self.column.cardinality))

    @cached_property
    def mean(self) -> float:
        """Mean of a column of numbers, its bins standing for the mean of what fell in them."""
        return float(self.probabilities @ self.column.numeric())

    @cached_property
    def std(self) -> float:
        """Standard deviation of a column of numbers, within and between bins."""
        centres = self.column.numeric()
        within = self.column.stds if len(self.column.stds) else np.zeros(len(centres))
        return float(np.sqrt(self.probabilities @ (within**2 + (centres - self.mean) ** 2)))

    def to_dict(self) -> dict[str, float]:
        """Return the probability of each label."""
        return dict(zip(self.labels, self.probabilities.tolist(), strict=True))

    def __repr__(self) -> str:
        labels, shares = list(self.labels), self.probabilities.tolist()
        title = self.name
        try:
            if self.column.kind in ("integer", "number"):
                title += f": mean {figure(self.mean)}, std {figure(self.std)}"
        except DomainError:  # a column of which nothing is known has no mean
            pass
        shown = np.flatnonzero(self.probabilities >= MIN_SHARE)
        if len(shown) > MAX_LINES:
            shown = np.sort(np.argsort(-self.probabilities, kind="stable")[:MAX_LINES])
        lines = shown.tolist()
        if len(lines) < len(labels):
            rest = 1.0 - sum(shares[i] for i in lines)
            labels = [*(labels[i] for i in lines), f"{len(labels) - len(lines)} other values"]
            shares = [*(shares[i] for i in lines), max(rest, 0.0)]
        width, scale = max(map(len, labels)), BAR_CHARACTERS / max(shares)
        for label, share in zip(labels, shares, strict=True):
            title += f"\n  {label:<{width}}  {share:6.1%}  {'█' * round(scale * share)}".rstrip()
        return title
