"""Learn how far a density's means over groups are typically off, from groups of the training rows.

Many random groups, of five rows to all, are asked of samples from the density and of the rows:
the gaps between the two, beyond chance, tell the bias. It is learned once for each output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from expecta.ask.credibility import Credibility, RowMoments
from expecta.common.arrays import Bools, Floats, Ints

N_GROUPS = 320
MAX_TRIES = 20 * N_GROUPS
MAX_FACTS = 3  # that make a group
MIN_ROWS = 5  # of a group
MIN_DRAWS = 20
LARGE_ROWS = 30  # of groups whose variances are compared
WEIGHT = 0.05  # of a group: groups overlap, so that all tell as much as some twenty would
BIASES: Floats = np.geomspace(0.01, 10.0, 61)
PRIOR_BIAS, PRIOR_WIDTH = 0.3, 1.0  # of the logarithm
MAX_SPREAD = 4.0  # of the ratio of variances, and its inverse
MAX_SHARED = 0.5  # correlation of errors
SHARED_PAIRS = 50.0  # pairs of groups that a correlation of zero counts for
MAX_GAP = 4.0  # standard deviations that a product of gaps counts


class CodedOutputs(NamedTuple):
    """Rows as codes, -1 where unknown, the model's output for each, and their weights."""

    codes: Ints  # (rows, variables)
    outputs: Floats  # (rows,)
    weight: Floats

    @property
    def sums(self) -> Floats:
        """What is summed over the rows of a group: weights, their squares, ...  # (4, rows)."""
        value = self.outputs - self.outputs[:1]
        return np.stack([self.weight, self.weight**2, self.weight * value, self.weight * value**2])


class _Groups(NamedTuple):
    """Moments of groups over rows and samples, and of the siblings that differ in one fact."""

    rows: RowMoments
    draws: RowMoments

    def gaps(self) -> Floats:
        return self.rows.mean - self.draws.mean


def learn_credibility(
    rows: CodedOutputs, draws: CodedOutputs, ordered: Sequence[bool], n_rows: int
) -> Credibility:
    """Learn the typical bias of a density.

    Parameters
    ----------
    rows, draws
        Training rows, or a part of them, and samples from the density.
    ordered
        Whether each variable is a number, whose groups are ranges.
    n_rows
        How many rows the density learned from.
    """
    rng = np.random.default_rng(0)
    groups, siblings = _random_groups(rows, draws, ordered, rng)
    spread = _spread(groups)
    scale = n_rows / max(len(rows.weight), 1)

    def score(bias: float) -> float:
        prior = 0.5 * (np.log(bias / PRIOR_BIAS) / PRIOR_WIDTH) ** 2
        noise = groups.draws.variance / groups.draws.size
        gaps = groups.gaps(), noise, groups.draws.variance, groups.rows, scale * groups.rows.size
        return WEIGHT * Credibility(bias, spread).log_likelihood(*gaps) - prior

    best = Credibility(max(BIASES.tolist(), key=score), spread)
    return best._replace(shared=_shared(groups, siblings))


def _random_groups(
    rows: CodedOutputs, draws: CodedOutputs, ordered: Sequence[bool], rng: np.random.Generator
) -> tuple[_Groups, _Groups]:
    """Draw groups of one to three facts about a random row, as many of each size."""
    n = len(rows.weight)
    if n < MIN_ROWS:
        nothing = _Groups(*(RowMoments(*np.zeros((3, 0))) for _ in range(2)))
        return nothing, nothing
    known = [np.flatnonzero(rows.codes[:, v] >= 0) for v in range(rows.codes.shape[1])]
    usable = [
        v for v, at in enumerate(known) if len(at) and np.ptp(rows.codes[at, v]) > 0
    ]  # columns that vary
    sizes = (np.maximum(rows.codes.max(axis=0), draws.codes.max(axis=0)) + 1).tolist()
    edges = np.geomspace(MIN_ROWS, max(n, MIN_ROWS + 1), 9)[1:-1]
    wanted = np.full(len(edges) + 1, N_GROUPS // (len(edges) + 1))
    of_rows, of_draws = rows.sums, draws.sums
    found: list[Floats] = []
    for tried in range(MAX_TRIES if usable else 0):
        if len(found) >= N_GROUPS or (tried >= MAX_TRIES // 2 and len(found) < 2):
            break
        facts = _random_facts(rows, ordered, usable, known, sizes, rng)
        each = [fact[rows.codes[:, v]] for v, fact in facts]
        inside = np.logical_and.reduce(each)
        size = int(np.count_nonzero(inside))
        bucket = int(np.searchsorted(edges, size, "right"))
        if size < MIN_ROWS or (wanted[bucket] <= 0 and tried < MAX_TRIES // 2):
            continue
        wanted[bucket] -= 1
        drawn = [fact[draws.codes[:, v]] for v, fact in facts]
        beside = np.logical_and.reduce([~each[0] & (rows.codes[:, facts[0][0]] >= 0), *each[1:]])
        rest = [~drawn[0], *drawn[1:]]
        pairs = (
            (of_rows, inside),
            (of_draws, np.logical_and.reduce(drawn)),
            (of_rows, beside),
            (of_draws, np.logical_and.reduce(rest)),
        )
        found.append(np.stack([sums @ which for sums, which in pairs]))
    totals = np.array(found).reshape(-1, 4, 4)
    totals = totals[totals[:, 1, 0] >= MIN_DRAWS]
    centers = rows.outputs[0], draws.outputs[0]
    first, second = (
        _Groups(*(_moments(totals[:, i], center) for i, center in zip(part, centers, strict=True)))
        for part in ((0, 1), (2, 3))
    )
    return first, second


def _moments(totals: Floats, center: float) -> RowMoments:
    moments = RowMoments.from_sums(*totals.T)
    return moments._replace(mean=moments.mean + center)


def _random_facts(
    rows: CodedOutputs,
    ordered: Sequence[bool],
    usable: list[int],
    known: Sequence[Ints],
    sizes: list[int],
    rng: np.random.Generator,
) -> list[tuple[int, Bools]]:
    """Return one to three columns, and which codes of each are in the group."""
    n_facts = int(rng.integers(1, min(MAX_FACTS, len(usable)) + 1))
    row = rows.codes[rng.integers(len(rows.codes))]
    facts = []
    for v in rng.choice(usable, n_facts, replace=False).tolist():
        one, other = (rows.codes[known[v][rng.integers(len(known[v]))], v] for _ in range(2))
        one = row[v] if row[v] >= 0 else one
        inside = np.zeros(sizes[v] + 1, np.bool_)  # the last is that of unknown cells
        if ordered[v] and rng.random() < 0.6:
            inside[min(one, other) : max(one, other) + 1] = True
        inside[one] = True
        facts.append((v, inside))
    return facts


def _spread(groups: _Groups) -> float:
    """Return the median ratio of variances, over rows and under the density."""
    large = (groups.rows.size >= LARGE_ROWS) & (groups.draws.size >= LARGE_ROWS)
    large &= (groups.rows.variance > 0) & (groups.draws.variance > 0)
    if not np.any(large):
        return 1.0
    ratio = groups.rows.variance[large] / groups.draws.variance[large]
    return float(np.clip(np.median(ratio), 1.0 / MAX_SPREAD, MAX_SPREAD))


def _shared(groups: _Groups, siblings: _Groups) -> float:
    """Return the correlation of the density's errors in groups that differ in one fact.

    Rows of disjoint groups err apart: what their gaps have in common is the density's.
    """
    both = (siblings.rows.size >= MIN_ROWS) & (siblings.draws.size >= MIN_DRAWS)
    both &= (groups.draws.variance > 0) & (siblings.draws.variance > 0)
    if not np.any(both):
        return 0.0
    scaled = []
    for one in (groups, siblings):
        size = np.sqrt(one.draws.variance[both] / one.rows.size[both])
        scaled.append(np.clip(one.gaps()[both] / size, -MAX_GAP, MAX_GAP))
    a, b = scaled
    products, squares = float(a @ b), float(np.sqrt((a @ a) * (b @ b)))
    correlation = products / (squares + SHARED_PAIRS) if squares > 0 else 0.0
    return float(np.clip(correlation, -MAX_SHARED, MAX_SHARED))
