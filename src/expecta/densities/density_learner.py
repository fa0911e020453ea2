"""Learn a density from a table: what all learners share, from encoding to printing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone

from expecta.common.arrays import Floats
from expecta.common.errors import DomainError
from expecta.common.progress import Progress
from expecta.densities.density import Density
from expecta.learn.weighted_rows import WeightedRows
from expecta.tables import Encoder
from expecta.tables.estimator_inputs import read_weights

HELD_OUT_SHARE = 0.1  # of the rows, where none are given
MIN_ROWS = 20  # below which none are held out: the score is then that of the rows themselves


class LearningTask(NamedTuple):
    """What a density learns from."""

    rows: WeightedRows
    held_out: WeightedRows
    rng: np.random.Generator
    report: Callable[..., None]  # told the held-out score as it goes on


@dataclass(frozen=True)
class LearningRecord:
    """What learning came to."""

    rows: int  # learned from
    held_out_rows: int  # 0: too few to hold some out, the score is of the training rows
    score: float  # mean log-likelihood of the held-out rows, in nats
    independent: float  # the same under independent columns
    seconds: float
    how: str  # in words


class DensityLearner(BaseEstimator, Density):  # type: ignore[misc]
    """A density that learns from a table.

    Derived classes say how in ``_learn``; the outside is scikit-learn's.
    """

    encoder: Encoder | None
    random_state: int | None
    learned_: LearningRecord
    value_counts_: list[Floats]  # of each column in training

    def fit(self, X: Any, valid: Any = None, *, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learn from a table; missing values are summed out, never filled in.

        Parameters
        ----------
        X
            A pandas, polars or Arrow table, a dict of columns, or an array; an array of
            integers holds the values 0, 1, 2, ... of each variable, -1 for unknown.
        valid
            Held-out rows, to decide when to stop and which size is best. By default a tenth
            of ``X``, chosen at random; when all is decided and scored, trees learn from these
            rows too, by one last step over all.
        sample_weight
            How much each row of X counts.  # (rows,)
        """
        begun = time.perf_counter()
        for name in ("circuit_", "learned_"):  # a failure leaves nothing half learned
            self.__dict__.pop(name, None)
        rng = np.random.default_rng(self.random_state)
        self._learn_encoding(X, sample_weight)
        rows = self._encoded(X, sample_weight)
        weight = rows.weight
        held_out = everything = rows
        if valid is not None:
            codes = self.encoder_.codes(valid)
            if not len(codes):
                raise DomainError("valid has no rows; leave it out to hold out a tenth of X")
            held_out = WeightedRows(codes, np.ones(len(codes)))
        elif np.count_nonzero(weight) >= MIN_ROWS:
            order = rng.permutation(np.flatnonzero(weight))
            cut = int(HELD_OUT_SHARE * len(order))
            rows, held_out = rows[np.sort(order[cut:])], rows[np.sort(order[:cut])]
        n_held_out = 0 if held_out is rows else len(held_out.codes)
        rows, held_out = rows.merged(), held_out.merged()
        self.value_counts_ = rows.value_counts(self.encoder_.cardinalities_)
        with Progress(type(self).__name__, None) as progress:

            def report(score: float, what: str = "") -> None:
                progress.advance(label=f"{type(self).__name__} {what} held out {score:.4g}")

            how, score = self._learn(LearningTask(rows, held_out, rng, report))
        independent = self._independent(held_out)
        if valid is None:
            self._finish(everything.merged())
        self.learned_ = LearningRecord(
            rows=int(np.count_nonzero(weight)) - (n_held_out if valid is None else 0),
            held_out_rows=n_held_out,
            score=score,
            independent=independent,
            seconds=time.perf_counter() - begun,
            how=how,
        )
        return self

    def _learn_encoding(self, X: Any, sample_weight: npt.ArrayLike | None) -> None:
        """Learn what the columns are."""
        encoder = Encoder() if self.encoder is None else clone(self.encoder)
        self.encoder_ = encoder.fit(X, sample_weight=sample_weight)
        self.n_features_in_ = encoder.n_features_in_
        self.feature_names_in_ = encoder.feature_names_in_

    def _encoded(self, X: Any, sample_weight: npt.ArrayLike | None) -> WeightedRows:
        """Read a table by the encoding that was learned."""
        codes = self.encoder_.codes(X)
        return WeightedRows(codes, read_weights(sample_weight, len(codes)))

    def _learn(self, task: LearningTask) -> tuple[str, float]:
        """Set ``circuit_``; returns in words what was done, and the held-out score."""
        raise TypeError(f"{type(self).__name__} does not say how it learns")

    def _marginals(self) -> list[Floats]:
        """Distribution of each column in training, a row added evenly."""
        smooth = [counts + 1.0 / len(counts) for counts in self.value_counts_]
        return [counts / counts.sum() for counts in smooth]

    def _finish(self, rows: WeightedRows) -> None:
        """Learn once more from all rows, now that none need be held out."""

    def _independent(self, rows: WeightedRows) -> float:
        """Mean log-likelihood of rows if the columns were independent."""
        total = np.zeros(len(rows.codes))
        for column, marginal in zip(rows.codes.T, self._marginals(), strict=True):
            total += np.append(np.log(marginal), 0.0)[column]
        return float(np.average(total, weights=rows.weight))

    # -- printing ---------------------------------------------------------------------

    def __repr__(self, *args: Any) -> str:
        if not hasattr(self, "learned_"):
            return str(BaseEstimator.__repr__(self, *args))
        s, learned = self.circuit.structure, self.learned_
        scored = (
            f"{learned.held_out_rows:,} rows held out"
            if learned.held_out_rows
            else f"the {learned.rows:,} rows learned from"
        )
        lines = [
            f"{type(self).__name__} of {s.n_variables} columns, {learned.how}",
            f"  circuit   {s.n_nodes:,} nodes, {s.n_edges:,} parameters",
            f"  score     {learned.score:.4f} nats a row on {scored}",
            f"            {learned.independent:.4f} if the columns were independent",
            f"  learned   from {learned.rows:,} rows in {learned.seconds:.1f} s",
        ]
        return "\n".join([*lines, *(f"  note      {note}" for note in self.encoder_.notes_)])

    __str__ = __repr__
