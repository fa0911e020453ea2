"""Measure how unlike the learned density rows are, and which columns make them so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from expecta.ask.populations import cell_labels
from expecta.ask.printed_answer import PrintedAnswer
from expecta.circuits.evidence import Evidence
from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.text import counted
from expecta.densities.density import Density
from expecta.expected.expected_output import ExpectedOutput
from expecta.tables import Encoder
from expecta.tables.estimator_inputs import read_rows
from expecta.tables.table import Table, find_columns
from expecta.tables.unfamiliar_cells import cell_texts, unfamiliar_cells

MAX_CELLS = 1 << 22  # of posterior distributions that are held at a time


@dataclass(frozen=True, eq=False)
class Outliers(PrintedAnswer):
    """How unlike the density each row is.

    Attributes
    ----------
    columns
        The columns, in the table's order.
    log_prob
        Log-probability of the known cells of each row, in nats. Exact.  # (rows,)
    surprise, error
        Probability that a random row, known in the same columns, is at most as likely;
        sampled, and its standard error.  # (rows,)
    conditional
        log p(column | the other known columns), in nats; NaN where unknown.  # (rows, columns)
    tail
        Probability, given the other known columns, of a value that is at most as likely as
        the row's; NaN where unknown. Exact.  # (rows, columns)
    known
        What each row has in each column, as text; empty where unknown.
    samples
        From how many random rows ``surprise`` is estimated.
    unfamiliar
        Whether a cell has a category that the training data does not have, or a number far from
        all of its: no training row tells how likely it is, so its tail is 0.  # (rows, columns)
    """

    columns: tuple[str, ...]
    log_prob: Floats
    surprise: Floats
    error: Floats
    conditional: Floats
    tail: Floats
    known: tuple[tuple[str, ...], ...]
    samples: int
    unfamiliar: Bools

    display = "OutliersDisplay"

    @property
    def most_surprising(self) -> list[str | None]:
        """The column of each row whose tail is smallest; None where nothing is known."""
        key = np.where(np.isnan(self.tail), np.inf, self.tail)
        return [
            self.columns[int(np.argmin(row))] if np.isfinite(row).any() else None for row in key
        ]

    def lines(self) -> dict[str, Any]:
        """Return a line per row: those with unfamiliar cells first, then the most surprising."""
        order = np.lexsort((self.log_prob, self.surprise, -self.unfamiliar.sum(axis=1)))
        most_surprising = self.most_surprising
        names = [most_surprising[i] for i in order.tolist()]
        pairs = [
            (i, -1 if name is None else self.columns.index(name))
            for i, name in zip(order.tolist(), names, strict=True)
        ]
        return {
            "row": order,
            "log probability": self.log_prob[order],
            "surprise": self.surprise[order],
            "error": self.error[order],
            "column": [name or "" for name in names],
            "value": [self.known[i][v] if v >= 0 else "" for i, v in pairs],
            "its tail": np.array([self.tail[i, v] if v >= 0 else np.nan for i, v in pairs]),
        }

    def head(self) -> list[str]:
        """Return the sentence before the table."""
        return [f"{counted(len(self.log_prob), 'row')}, the least likely first"]

    def notes(self) -> list[str]:
        """Return the sentences after it."""
        rows = int(np.count_nonzero(self.unfamiliar.any(axis=1)))
        unlike = (
            f"{counted(rows, 'row')} with values unlike the training data (categories that it does "
            f"not have, numbers far from all of its), where the tail is 0."
        )
        return [
            *[unlike] * bool(rows),
            f"surprise: share of random rows that are at most as likely, small for odd rows; from "
            f"{self.samples} samples, with their standard error.",
            "its tail: probability of a value at most as likely, given the rest of the row.",
        ]


def outliers(
    subject: ExpectedOutput | Density, rows: Any, samples: int = 2000, random_state: int = 0
) -> Outliers:
    """Measure how unlike the density rows are; see :meth:`Asking.outliers`."""
    if samples < 1:
        raise DomainError(f"samples must be at least 1, not {samples!r:.40}")
    if isinstance(subject, ExpectedOutput):
        encoder, circuit = subject.encoder, subject.circuit
    else:
        encoder, circuit = subject.encoder_, subject.circuit
    table = read_rows(rows, encoder, "the density")
    codes = encoder.codes(table)
    log_prob = circuit.log_prob(Evidence.rows(codes, encoder.cardinalities_))
    surprise = _surprise(circuit, codes, log_prob, samples, random_state)
    conditional, tail = _columns(circuit, codes)
    unfamiliar = unfamiliar_cells(table, encoder, codes)
    tail[unfamiliar] = 0.0
    return Outliers(
        tuple(encoder.feature_names_in_.tolist()),
        log_prob,
        surprise,
        np.sqrt(surprise * (1 - surprise) / samples),
        conditional,
        tail,
        _labels(table, encoder, codes, unfamiliar),
        samples,
        unfamiliar,
    )


def _labels(
    table: Table, encoder: Encoder, codes: Ints, unfamiliar: Bools
) -> tuple[tuple[str, ...], ...]:
    """Return a text for every cell; of unfamiliar ones the value, as no bin or category says it."""
    labels = [list(row) for row in cell_labels(encoder, codes)]
    positions = find_columns(table, encoder)
    for variable in np.flatnonzero(unfamiliar.any(axis=0)).tolist():
        rows = np.flatnonzero(unfamiliar[:, variable])
        texts = cell_texts(table.column(positions[variable]), rows)
        for row, text in zip(rows.tolist(), texts, strict=True):
            labels[row][variable] = text
    return tuple(map(tuple, labels))


def _surprise(
    circuit: ProbabilisticCircuit, codes: Ints, log_prob: Floats, samples: int, random_state: int
) -> Floats:
    """Estimate how often a random row is at most as likely; rounding does not matter."""
    drawn = circuit.sample(samples, seed=random_state)
    out = np.ones(len(codes))
    masks, pattern = np.unique(codes >= 0, axis=0, return_inverse=True)
    for i, mask in enumerate(masks):
        if not mask.any():
            continue
        sampled = np.sort(circuit.log_prob(np.where(mask, drawn, -1)))
        rows = np.flatnonzero(pattern.reshape(-1) == i)
        reach = log_prob[rows] + 1e-9 * (1 + np.abs(np.nan_to_num(log_prob[rows], neginf=0.0)))
        out[rows] = np.searchsorted(sampled, reach, side="right") / samples
    return out


def _columns(circuit: ProbabilisticCircuit, codes: Ints) -> tuple[Floats, Floats]:
    """Return log p of each known cell given the others, and the tail it lies in."""
    conditional, tail = np.full((2, *codes.shape), np.nan)
    row, column = np.nonzero(codes >= 0)
    width = int(np.sum(circuit.cardinalities))
    for part in np.array_split(np.arange(len(row)), 1 + len(row) * width // MAX_CELLS):
        rest = codes[row[part]].copy()
        rest[np.arange(len(part)), column[part]] = -1
        possible = np.isfinite(circuit.log_prob(rest)) if len(part) else np.zeros(0, np.bool_)
        part, rest = part[possible], rest[possible]
        if not len(part):
            continue
        posterior = circuit.marginals(rest)
        for variable in np.unique(column[part]).tolist():
            cells = np.flatnonzero(column[part] == variable)
            rows = row[part[cells]]
            shares = posterior[variable][cells]
            likely = shares[np.arange(len(cells)), codes[rows, variable]][:, None]
            with np.errstate(divide="ignore"):
                conditional[rows, variable] = np.log(likely[:, 0])
            below = shares <= likely * (1 + 1e-9)
            tail[rows, variable] = np.minimum((shares * below).sum(axis=1), 1.0)
    return conditional, tail
