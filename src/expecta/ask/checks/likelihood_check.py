"""Compare a density's likelihood with that of independent columns and of a Chow-Liu tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from expecta.ask.checks.checked_rows import CheckedRows
from expecta.ask.printed_answer import PrintedAnswer
from expecta.common.arrays import Floats, Ints
from expecta.common.text import counted, figure
from expecta.densities.density import Density
from expecta.densities.density_learner import independent_scores
from expecta.densities.tree_densities import ChowLiu
from expecta.learn.weighted_rows import WeightedRows
from expecta.tables import Encoder

FOLDS = 5
MIN_ROWS = 10  # below which nothing is learned from other rows of the table
MAX_TREE_COLUMNS = 500  # beyond which no tree is learned
SMOOTHING = 1.0, 30.0  # rows added to each conditional distribution of a tree
ROUNDING = 1e-12  # relative
INDEPENDENT, TREE = "independent columns", "Chow-Liu tree"


@dataclass(frozen=True, eq=False)
class LikelihoodCheck(PrintedAnswer):
    """Mean log-likelihood of rows under a density, and under two simpler ones.

    Attributes
    ----------
    names
        What is compared: the density first, then what it is compared with.
    score
        Mean log-likelihood in nats a row, over the same bins.  # (names,)
    gain, error
        How much higher the density's is, and the standard error of that difference: of the mean
        over rows of the difference in each row.  # (names,)
    impossible
        Number of rows that have probability zero under the density; they are left out.
    how
        In words, what the two others were learned from.
    """

    names: tuple[str, ...]
    score: Floats
    gain: Floats
    error: Floats
    impossible: int
    how: str

    def head(self) -> list[str]:
        """Return the sentence before the table."""
        return ["Log-likelihood of the rows, in nats a row"]

    def lines(self) -> Mapping[str, Sequence[Any]]:
        """Return a line for each density."""
        return {
            "density": self.names,
            "score": self.score.tolist(),
            "gain": self.gain.tolist(),
            "error": self.error.tolist(),
        }

    def notes(self) -> list[str]:
        """Return what the others were learned from."""
        n_rows = counted(self.impossible, "row")
        impossible = f"Left out, because of probability zero under the density: {n_rows}."
        return [self.how, *[impossible] * bool(self.impossible)]

    def sentence(self) -> str:
        """Say what the density gains, in one sentence."""
        without = (
            f"{counted(self.impossible, 'row')} of probability zero" if self.impossible else ""
        )
        if not np.isfinite(self.score[0]):
            return f"There are no rows to score{without and f', but {without}'}."
        gains = [
            f"{abs(gain):.3g} ± {error:.2g} {'above' if gain >= 0 else 'below'} "
            f"{'a ' * (name == TREE)}{name}"
            for name, gain, error in zip(
                self.names[1:], self.gain[1:].tolist(), self.error[1:].tolist(), strict=True
            )
            if np.isfinite(gain)
        ]
        score = f"{figure(float(self.score[0]))} nats a row{without and f' without {without}'}"
        return ", ".join([score, *gains])


def check_likelihood(
    density: Density, rows: CheckedRows, training: CheckedRows | None
) -> LikelihoodCheck:
    """Score rows under a density and under two others over the same bins.

    The others learn from the training rows if these are given; else the shares of independent
    columns are those that the encoder counted in training, and a tree learns from the rows
    themselves, each fifth scored by what the other four say. Cost: learning ten Chow-Liu trees.
    """
    encoder = density.encoder_
    scores = [density.circuit.log_prob(rows.codes) if len(rows) else np.zeros(0)]
    with_tree = len(encoder.columns_) <= MAX_TREE_COLUMNS
    how = "There are too few rows to learn simpler densities from."
    if training is not None and len(rows):
        how = "The others were learned from the training rows, over the same bins."
        scores += _simple_scores(training, rows.codes, encoder, with_tree)
    elif len(rows) >= MIN_ROWS:
        counts = [column.counts for column in encoder.columns_]
        how = (
            f"Independent columns have the shares of training; the tree was learned from these "
            f"rows, over the same bins: each of {FOLDS} parts is scored by what was learned from "
            f"the rest.{_fewer(counts, len(rows)) if with_tree else ''}"
        )
        fold = np.random.default_rng(0).permutation(len(rows)) % FOLDS
        parts: list[Floats] = [np.zeros(len(rows)) for _ in range(1 + len(SMOOTHING) * with_tree)]
        for k in range(FOLDS):
            learned, scored = rows.where(fold != k), fold == k
            simple = _simple_scores(learned, rows.codes[scored], encoder, with_tree)
            for part, score in zip(parts, simple, strict=True):
                part[scored] = score
        parts[0] = independent_scores(rows.codes, _shares(counts))
        scores += parts
    if len(scores) > 2:
        how += " The tree has the smoothing that gives it the best score."
        best = max(scores[2:], key=lambda score: float(np.average(score, weights=rows.weight)))
        scores[2:] = [best]
    elif not with_tree:
        how += f" No tree is learned of more than {MAX_TREE_COLUMNS:,} columns."
    possible = np.isfinite(scores[0])
    weight = rows.weight[possible]
    table = np.array([each[possible] for each in scores])
    gain = table[0] - table
    if not len(weight):
        mean, difference, error = np.full((3, len(table)), np.nan)
    else:
        mean, difference = (np.average(each, axis=1, weights=weight) for each in (table, gain))
        about = gain - difference[:, None]
        about[np.abs(about) < ROUNDING * np.abs(table[0]).max()] = 0.0
        error = np.sqrt(about**2 @ weight**2) / weight.sum()
    names = ("the density", INDEPENDENT, TREE)[: len(table)]
    return LikelihoodCheck(names, mean, difference, error, int(np.sum(~possible)), how)


def _fewer(counts: Sequence[Floats], n_rows: int) -> str:
    """Say whom it flatters that the tree learned from other numbers of rows than the density."""
    learned = max(float(each.sum()) for each in counts)
    if (FOLDS - 1) / FOLDS * n_rows > 0.5 * learned:
        return ""
    return (
        f" These are few beside the {learned:,.0f} rows that the density learned from, so the "
        f"comparison with the tree flatters the density."
    )


def _shares(counts: Sequence[Floats]) -> list[Floats]:
    """Return the shares of each column's values, smoothed by one row."""
    smoothed = [each + 1.0 / len(each) for each in counts]
    return [each / each.sum() for each in smoothed]


def _simple_scores(
    learned: CheckedRows, codes: Ints, encoder: Encoder, with_tree: bool
) -> list[Floats]:
    """Score rows by independent columns, and by Chow-Liu trees that learned from others."""
    weight = learned.weight / learned.weight.mean()  # beside the rows that smoothing adds
    rows = WeightedRows(learned.codes, weight).merged()
    shares = _shares(rows.value_counts(encoder.cardinalities_))
    scores = [independent_scores(codes, shares)]
    for pseudo_count in SMOOTHING if with_tree else ():
        tree = ChowLiu(pseudo_count=pseudo_count).of_rows(rows, encoder)
        scores.append(tree.log_prob(codes))
    return scores
