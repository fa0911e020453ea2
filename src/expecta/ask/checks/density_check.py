"""Say how far answers under a density can be trusted, by rows it is checked against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.ask.checks.checked_rows import CheckedRows, noise_ratio
from expecta.ask.checks.group_check import MIN_ROWS, GroupCheck, check_groups
from expecta.ask.checks.likelihood_check import LikelihoodCheck, check_likelihood
from expecta.ask.checks.missing_dependence import missing_by_columns, missing_sentence
from expecta.ask.checks.pair_check import PairCheck, check_pairs
from expecta.ask.checks.pair_scores import strongest_pairs
from expecta.ask.printed_answer import PrintedAnswer
from expecta.common.errors import DomainError
from expecta.common.text import counted, figure, percent
from expecta.common.threads import one_blas_thread
from expecta.densities.density import Density
from expecta.tables.training_rows import TrainingRows

MAX_ROWS = 50_000  # that a density is checked against
MAX_COLUMNS, MIN_COLUMNS = 64, 8  # whose pairs are compared
MAX_VISITS = 300_000_000  # edges of the circuit times groups of values
N_GROUPS = 16  # of values of a column, at most
MAX_NAMED = 3  # columns with values that training did not have
DETECTED = 3.0  # standard errors: a difference that is mostly found

FAMILIES = "single columns", "pairs of columns", "groups by one column", "groups by two columns"


@dataclass(frozen=True, eq=False)
class DensityCheck(PrintedAnswer):
    """How well a density agrees with rows, and which answers under it can be trusted.

    Attributes
    ----------
    n_rows
        How many rows it was checked against.
    in_sample
        Whether they are the rows that it learned from: then all is better than on new rows.
    likelihood
        A `LikelihoodCheck`: log-likelihood against independent columns and a Chow-Liu tree.
    pairs
        A `PairCheck`: dependence of every pair of columns, the worst first.
    groups
        A `GroupCheck`: means and shares over all rows, over groups by one column and by two.
    unseen
        Of each column that has values which training did not have, their share of its known cells.
    doubts
        Sentences: what of the rows the density says nothing of, or that they cannot be.
    verdict
        Sentences: what can be trusted, what is off and by how much, what to do.
    """

    n_rows: int
    in_sample: bool
    likelihood: LikelihoodCheck
    pairs: PairCheck
    groups: GroupCheck
    unseen: Mapping[str, float]
    doubts: tuple[str, ...]
    verdict: tuple[str, ...]
    remarks: tuple[str, ...]

    display = "DensityCheckDisplay"

    def head(self) -> list[str]:
        """Return the sentences before the table."""
        learned = " that it learned from" * self.in_sample
        against = f"{counted(self.n_rows, 'row')}{learned}"
        return [f"Density against {against}: {self.likelihood.sentence()}"]

    def lines(self) -> Mapping[str, Sequence[Any]]:
        """Return a line for each kind of answer: how many are off, and the worst."""
        checks = self._families()
        return {
            "answers about": FAMILIES,
            "compared": [_count(check) for check in checks],
            "beyond chance": [int(check.beyond.sum()) for check in checks],
            "large": [int(check.large.sum()) for check in checks],
            "worst": [_worst(check) for check in checks],
        }

    def notes(self) -> list[str]:
        """Return the verdict, and what was done."""
        return [*self.verdict, *self.remarks]

    def short(self) -> list[str]:
        """Return lines for a summary: the worst pair, the share of groups that are off, doubts."""
        compared = len(self.groups.size)
        if not compared and not self.pairs.count:
            return ["too few rows to compare its answers with", *self.doubts]
        against = counted(self.n_rows, "training row" if self.in_sample else "row")
        return [
            *[
                f"{_some(check)} of {counted(_count(check), noun)} {what} {against} beyond chance"
                + (f"; {worst}" if (worst := _worst(check)) else "")
                for check, noun, what in self._compared()
                if _count(check)
            ],
            *self.doubts,
        ]

    def _compared(self) -> list[tuple[PairCheck | GroupCheck, str, str]]:
        return [
            (self.pairs, "pair", "of columns differ from"),
            (self.groups, "answer", "about groups differ from"),
        ]

    def _families(self) -> list[PairCheck | GroupCheck]:
        alone, *larger = (self.groups.of_size(size) for size in range(3))
        return [alone, self.pairs, *larger]


def _count(check: PairCheck | GroupCheck) -> int:
    return check.count if isinstance(check, PairCheck) else len(check.size)


def _some(check: PairCheck | GroupCheck) -> str:
    beyond, large = int(check.beyond.sum()), int(check.large.sum())
    return f"{beyond:,} ({large:,} by much)" if beyond else "none"


def _worst(check: PairCheck | GroupCheck) -> str:
    """Name the largest difference that is beyond chance."""
    return check.sentence(0) if np.any(check.beyond) else ""


def check_density(
    density: Density,
    X: Any,
    *,
    training: TrainingRows | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> DensityCheck:
    """Check a density against rows; see :meth:`Density.check`.

    ``training`` are the rows that it learned from, where they are kept; X may be None then, and
    these are the rows.
    """
    encoder = density._encoder
    learned = None if training is None else CheckedRows.of_training(training, encoder)
    if X is None and learned is None:
        raise DomainError("there are no training rows, as in a file without them; pass rows")
    rows = learned if X is None else CheckedRows.read(X, encoder, sample_weight)
    assert rows is not None
    in_sample = rows is learned or rows.are_training_rows(encoder)
    remarks = []
    if len(rows) > MAX_ROWS:
        remarks.append(f"Of {len(rows):,} rows, {MAX_ROWS:,} were drawn at random.")
        rows = rows.sample(MAX_ROWS)
    noise = noise_ratio(rows, density, in_sample)
    variables, chosen = _choose_columns(density, rows)
    others = None if in_sample or learned is None else learned.sample(MAX_ROWS)
    with one_blas_thread():
        likelihood = check_likelihood(density, rows, others)
        pairs = check_pairs(density, rows, variables, noise)
        groups = check_groups(density, rows, variables, noise)
    share, many = rows.unseen_shares()
    unseen = {c.name: float(s) for c, s in zip(encoder.columns_, share, strict=True) if s > 0}
    new = [c.name for c, beyond in zip(encoder.columns_, many, strict=True) if beyond]
    doubts = _doubts(len(rows), likelihood, unseen, new)
    few = [_unseen(unseen, [name for name in unseen if name not in new])]
    missing = missing_sentence(missing_by_columns(encoder, rows, variables))
    check = DensityCheck(
        len(rows),
        in_sample,
        likelihood,
        pairs,
        groups,
        unseen,
        doubts,
        _verdict(len(rows), likelihood, pairs, groups, doubts, missing),
        (*_remarks(density, in_sample), *remarks, *chosen, *groups.remarks, *filter(None, few)),
    )
    density.checked_ = tuple(check.short())
    return check


def _choose_columns(density: Density, rows: CheckedRows) -> tuple[list[int], list[str]]:
    """Return the columns to compare: all, or those of the pairs that depend most in the rows."""
    columns = density.encoder_.columns_
    usable = [v for v, column in enumerate(columns) if column.kind != "unknown"]
    edges = density.circuit.structure.n_edges
    most = max(MIN_COLUMNS, min(MAX_COLUMNS, MAX_VISITS // (edges * N_GROUPS)))
    if len(usable) <= most:
        return usable, []
    chosen: list[int] = []
    for pair in strongest_pairs(density.encoder_, rows, usable):
        chosen += [v for v in pair if v not in chosen]
        if len(chosen) >= most:
            break
    remark = (
        f"Of {len(columns):,} columns, the {len(chosen)} with the strongest dependences in the "
        f"rows were compared; what the density says about the others was not examined."
    )
    return sorted(chosen), [remark]


def _remarks(density: Density, in_sample: bool) -> list[str]:
    if not in_sample:
        return []
    remarks = [
        "These are the training rows, so likelihood, pairs and groups look better than they are; "
        "pass held-out rows for a fair check."
    ]
    learned = getattr(density, "learned_", None)
    if learned is not None and learned.held_out_rows:
        remarks.append(
            f"During learning, held-out rows had {learned.score:.4f} nats a row, "
            f"{learned.independent:.4f} if the columns were independent."
        )
    return remarks


def _doubts(
    n_rows: int, likelihood: LikelihoodCheck, unseen: Mapping[str, float], new: Sequence[str]
) -> tuple[str, ...]:
    """Say which values the density does not know, and how many rows cannot be under it."""
    impossible = (
        f"{likelihood.impossible:,} of {n_rows:,} rows have probability zero under the density: "
        f"it was learned from other kinds of rows, or excludes combinations that do occur."
    )
    return tuple(filter(None, [_unseen(unseen, new), impossible * bool(likelihood.impossible)]))


def _unseen(unseen: Mapping[str, float], names: Sequence[str]) -> str:
    """Say what share of some columns' cells training did not have, the largest first."""
    if not names:
        return ""
    first = sorted(names, key=lambda name: -unseen[name])[:MAX_NAMED]
    cells = " and ".join(f"{percent(unseen[name])} of the known cells of {name}" for name in first)
    more = f", and some of {len(names) - len(first):,} more columns," * (len(names) > len(first))
    return f"{cells}{more} are not in the training data: the density has no probability for them."


def _verdict(
    n_rows: int,
    likelihood: LikelihoodCheck,
    pairs: PairCheck,
    groups: GroupCheck,
    doubts: tuple[str, ...],
    missing: str,
) -> tuple[str, ...]:
    """Say what can be trusted, what is off, what may explain it, and what to do."""
    if n_rows < MIN_ROWS:
        return (
            f"There are too few rows to tell ({n_rows:,}); at least {MIN_ROWS:g} are needed.",
            *doubts,
        )
    if not len(groups.size):
        nothing = f"Nothing was compared: no column varies and is known in {MIN_ROWS:g} rows."
        return (nothing, *doubts)
    alone, by_one, by_two = (groups.of_size(size) for size in range(3))
    good, sentences, advice = [], list(doubts), []
    checks: list[PairCheck | GroupCheck] = [alone, pairs, by_one, by_two]
    for check, what in zip(checks, FAMILIES, strict=True):
        n, off, large = _count(check), int(check.beyond.sum()), int(check.large.sum())
        if large:
            sentences.append(
                f"Wrong, beyond chance and by much: {large:,} of {n:,} answers about {what}; "
                f"the worst is {_worst(check)}."
            )
        elif n and not sentences:
            good.append(
                what + (f" ({off} of {n:,} differ beyond chance, but by little)" if off else "")
            )
    if missing and any(np.any(check.large) for check in checks):
        sentences.append(missing)
    if good:
        sentences.insert(0, f"Can be trusted, as far as these rows show: {', '.join(good)}.")
    if np.any(alone.large) or doubts:
        bins = ", or with more bins (`max_bins`)" if np.any(alone.large) else ""
        advice.append(f"learn from rows like these{bins}")
    if np.any(pairs.large) or np.any(by_one.large):
        advice.append("try a LatentTree with more `states`, or another density (--density psdd)")
    elif np.any(by_two.large):
        advice.append("try a LatentTree with more `states`: two columns act together on a third")
    if np.any(by_one.large) or np.any(by_two.large):
        advice.append(
            "for these groups prefer the averages over rows, which `ask` and `split` print beside "
            "their answers"
        )
    lower = [
        name
        for name, gain, error in zip(
            likelihood.names[1:],
            likelihood.gain[1:].tolist(),
            likelihood.error[1:].tolist(),
            strict=True,
        )
        if gain < -2 * error
    ]
    if lower:
        sentences.append(
            f"Rows are less likely under the density than under {' and '.join(lower)}."
        )
        advice.append("compare with `ChowLiu` or `Independent` on held-out rows")
    if advice:
        sentences.append(f"What to do: {'; '.join(advice)}.")
    sentences.append(_power(pairs, by_one))
    return tuple(filter(None, sentences))


def _power(pairs: PairCheck, groups: GroupCheck) -> str:
    """Say what differences such a number of rows can show."""
    if not pairs.count:
        return ""
    pair = DETECTED * float(np.nanmedian(pairs.error))
    text = (
        f"This many rows show differences in dependence of about {figure(round(pair, 2))} or more"
    )
    if len(groups.size):  # by one column
        mean = DETECTED * float(np.median(groups.error / groups.unit[groups.mean]))
        text += f", and in means of groups of {figure(round(mean, 2))} standard deviations or more"
    return text + "; smaller ones cannot be distinguished from chance."
