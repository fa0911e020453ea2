"""Rows unlike the density, and the columns that make them so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from expecta.ask.populations import spread_out, table_of
from expecta.ask.printed_answer import PrintedAnswer
from expecta.circuits.evidence import Evidence
from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.densities.density import Density
from expecta.expected.expected_output import ExpectedOutput

if TYPE_CHECKING:
    from expecta.ask.displays import OutliersDisplay

__all__ = ["Outliers", "outliers"]

CELLS = 1 << 22  # of posterior distributions that are held at a time


@dataclass(frozen=True, eq=False)
class Outliers(PrintedAnswer):
    """How unlike the density each row is.

    Attributes
    ----------
    columns
        The columns, in the table's order.
    log_prob
        Log-probability of what is seen of each row, in nats. Exact.  # (rows,)
    surprise, error
        Probability that a random row, seen in the same columns, is at most as likely;
        sampled, and its standard error.  # (rows,)
    conditional
        log p(column | the other columns seen), in nats; NaN where unseen.  # (rows, columns)
    tail
        Probability, given the other columns seen, of a value that is at most as likely as
        the row's; NaN where unseen. Exact.  # (rows, columns)
    known
        What each row has in each column, as text; empty where unseen.
    samples
        From how many random rows ``surprise`` is estimated.
    """

    columns: tuple[str, ...]
    log_prob: Floats
    surprise: Floats
    error: Floats
    conditional: Floats
    tail: Floats
    known: tuple[tuple[str, ...], ...]
    samples: int

    @property
    def most_surprising(self) -> list[str | None]:
        """The column of each row whose tail is smallest; None where nothing is seen."""
        key = np.where(np.isnan(self.tail), np.inf, self.tail)
        return [
            self.columns[int(np.argmin(row))] if np.isfinite(row).any() else None for row in key
        ]

    def lines(self) -> dict[str, Any]:
        """Return a line per row, the most surprising first."""
        order = np.lexsort((self.log_prob, self.surprise))
        column = [self.most_surprising[i] for i in order.tolist()]
        place = [-1 if name is None else self.columns.index(name) for name in column]
        pairs = list(zip(order.tolist(), place, strict=True))
        return {
            "row": order,
            "log probability": self.log_prob[order],
            "surprise": self.surprise[order],
            "error": self.error[order],
            "column": [name or "" for name in column],
            "value": [self.known[i][p] if p >= 0 else "" for i, p in pairs],
            "its tail": np.array([self.tail[i, p] if p >= 0 else np.nan for i, p in pairs]),
        }

    def plot(self, ax: Any = None) -> OutliersDisplay:
        """Draw it, on axes of yours or on new ones; needs matplotlib."""
        from expecta.ask.displays import OutliersDisplay

        return OutliersDisplay(self).plot(ax)

    def head(self) -> list[str]:
        """Say what there is."""
        return [f"{len(self.log_prob)} row(s), the least likely of their kind first"]

    def notes(self) -> list[str]:
        """Say what the columns are."""
        return [
            f"surprise: probability of a row at most as likely, from {self.samples} samples.",
            "its tail: probability of a value at most as likely, given the rest of the row.",
        ]


def outliers(
    subject: ExpectedOutput | Density, rows: Any, samples: int = 2000, seed: int = 0
) -> Outliers:
    """Measure how unlike the density rows are, whatever is missing in them.

    Log-probabilities, of rows and of each column given the others that are seen, are exact
    under the density, in which a number is its bin. Since the size of a bin decides how
    likely it is, rows are compared with ``samples`` random rows seen in the same columns,
    with a standard error, and columns by the exact probability of a value that is at most
    as likely given the rest. ``rows`` is a table, or one row as a mapping.

    Cost: ``samples`` rows for each pattern of holes, and two passes over the circuit for
    each cell.
    """
    if samples < 1:
        raise DomainError(f"samples is 1 or more, not {samples!r:.40}")
    if isinstance(subject, ExpectedOutput):
        encoder, circuit = subject.encoder, subject.circuit
        codes = encoder.codes(table_of(subject, rows))
    else:
        circuit, encoder = subject.circuit, subject.encoder_
        codes = encoder.codes(spread_out(encoder, rows))
    log_prob = circuit.log_prob(Evidence.rows(codes, encoder.cardinalities_))
    surprise = _surprise(circuit, codes, log_prob, samples, seed)
    conditional, tail = _columns(circuit, codes)
    shown = tuple(
        tuple(
            column.labels[code] if code >= 0 else ""
            for column, code in zip(encoder.columns_, row, strict=True)
        )
        for row in codes.tolist()
    )
    return Outliers(
        tuple(encoder.feature_names_in_.tolist()),
        log_prob,
        surprise,
        np.sqrt(surprise * (1 - surprise) / samples),
        conditional,
        tail,
        shown,
        samples,
    )


def _surprise(
    circuit: ProbabilisticCircuit, codes: Ints, log_prob: Floats, samples: int, seed: int
) -> Floats:
    """Estimate how often a random row is at most as likely; rounding does not matter."""
    drawn = circuit.sample(samples, seed=seed)
    out = np.ones(len(codes))
    masks, kind = np.unique(codes >= 0, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    for number, mask in enumerate(masks):
        if not mask.any():
            continue
        seen = np.sort(circuit.log_prob(np.where(mask, drawn, -1)))
        rows = np.flatnonzero(kind == number)
        reach = log_prob[rows] + 1e-9 * (1 + np.abs(np.nan_to_num(log_prob[rows], neginf=0.0)))
        out[rows] = np.searchsorted(seen, reach, side="right") / samples
    return out


def _columns(circuit: ProbabilisticCircuit, codes: Ints) -> tuple[Floats, Floats]:
    """Return log p of each seen cell given the others, and the tail it lies in."""
    conditional, tail = np.full((2, *codes.shape), np.nan)
    row, column = np.nonzero(codes >= 0)
    width = int(np.sum(circuit.cardinalities))
    for part in np.array_split(np.arange(len(row)), 1 + len(row) * width // CELLS):
        rest = codes[row[part]].copy()
        rest[np.arange(len(part)), column[part]] = -1
        possible = np.isfinite(circuit.log_prob(rest)) if len(part) else np.zeros(0, np.bool_)
        part, rest = part[possible], rest[possible]
        if not len(part):
            continue
        posterior = circuit.marginals(rest)
        for variable in np.unique(column[part]).tolist():
            some = np.flatnonzero(column[part] == variable)
            cells = row[part[some]]
            shares = posterior[variable][some]
            own = shares[np.arange(len(some)), codes[cells, variable]][:, None]
            with np.errstate(divide="ignore"):
                conditional[cells, variable] = np.log(own[:, 0])
            below = shares <= own * (1 + 1e-9)
            tail[cells, variable] = np.minimum((shares * below).sum(axis=1), 1.0)
    return conditional, tail
