"""Ask a density for the distribution of columns in many groups at a time."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from expecta.ask.language.query import build_evidence
from expecta.common.arrays import Floats
from expecta.common.errors import ImpossibleEvidenceWarning
from expecta.common.progress import Progress
from expecta.densities.density import Density

MAX_CELLS = 1 << 23  # of posteriors at a time


def group_posteriors(
    density: Density,
    groups: Sequence[Sequence[tuple[int, Floats]]],
    variables: Sequence[int],
    label: str,
) -> dict[int, Floats]:
    """Return the distribution of some columns in groups; NaN where a group is impossible.

    A group is variables with the weights of their values. Exact. Cost: two passes over the
    circuit's edges for each group.  # (groups, values) for each variable
    """
    cards = density.circuit.cardinalities.tolist()
    step = max(1, MAX_CELLS // max(sum(cards), 1))
    out = {v: np.empty((len(groups), cards[v])) for v in variables}
    evidence = build_evidence(cards, groups)
    with Progress(label, len(groups)) as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", ImpossibleEvidenceWarning)
        for start in range(0, len(groups), step):
            block = slice(start, start + step)
            posteriors = density.circuit.marginals(evidence[block])
            for v, table in out.items():
                table[block] = posteriors[v]
            progress.advance(min(step, len(groups) - start))
    return out
