"""Tell which columns are missing depending on others: then rows differ from a right density too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import chdtrc

from expecta.ask.checks.chance import beyond_chance
from expecta.ask.checks.checked_rows import CheckedRows
from expecta.ask.checks.pair_scores import ScoredColumn
from expecta.common.arrays import Bools, Floats, Ints
from expecta.tables import Encoder

MIN_ROWS = 20.0  # in which a column is known, and in which it is not
MAX_NAMED = 3  # columns that the sentence names


def missing_by_columns(
    encoder: Encoder, rows: CheckedRows, variables: Sequence[int]
) -> dict[str, list[str]]:
    """Return the columns whose cells are missing depending on others, and these, by evidence.

    Chi-squared tests of whether a cell is known, by groups of each other column; of all that is
    returned 5% at most is expected to be chance. Cost: a count over the rows for each pair of
    columns of which the first has missing cells.
    """
    columns, scale = encoder.columns_, rows.per_weight
    unknown = rows.codes < 0
    missing = scale * (rows.weight @ unknown)
    few = np.minimum(missing, rows.size - missing) < MIN_ROWS
    targets = [v for v in variables if not few[v]]
    if not targets:
        return {}
    groups = {v: ScoredColumn.of(columns[v], rows.codes[:, v], rows.weight) for v in variables}
    pairs = [(a, b) for a in targets for b in variables if a != b]
    p = np.array([_p_value(unknown[:, a], groups[b].known, scale * rows.weight) for a, b in pairs])
    depending: dict[str, list[str]] = {}
    beyond = beyond_chance(p)
    for pair in np.argsort(p, kind="stable").tolist():
        if beyond[pair]:
            a, b = pairs[pair]
            depending.setdefault(columns[a].name, []).append(columns[b].name)
    return depending


def missing_sentence(depending: dict[str, list[str]]) -> str:
    """Write what follows for differences between rows and density."""
    if not depending:
        return ""
    named = [f"{name} (by {others[0]})" for name, others in depending.items()][:MAX_NAMED]
    more = f" and {len(depending) - len(named)} more" if len(depending) > len(named) else ""
    return (
        f"Cells are missing depending on other columns: {', '.join(named)}{more}. Rows in which "
        f"these are known are not like all rows, and a right density differs from them too."
    )


def _p_value(unknown: Bools, group: Ints, weight: Floats) -> float:
    """Return how often chance alone makes missing shares differ so between groups; NaN if never."""
    kept = group >= 0
    size = int(group.max(initial=-1)) + 1
    parts = (kept & unknown, kept & ~unknown)
    table = np.array([np.bincount(group[part], weight[part], size) for part in parts])
    table = table[:, table.sum(axis=0) > 0]
    total = table.sum()
    if table.shape[1] < 2 or np.any(table.sum(axis=1) < MIN_ROWS):
        return float("nan")
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    statistic = float(np.sum((table - expected) ** 2 / expected))
    return float(chdtrc(table.shape[1] - 1, statistic))
