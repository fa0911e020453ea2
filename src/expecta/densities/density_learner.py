"""Learn a density from a table: what all learners share, from encoding to printing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone

from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.progress import Progress
from expecta.common.text import counted
from expecta.densities import row_chunks
from expecta.densities.density import Density
from expecta.densities.row_chunks import (
    BatchSource,
    ChunkSource,
    ChunkSummary,
    HeldOutSample,
    RowChunks,
)
from expecta.engine.run import prepare_walk
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
    report: Callable[..., None]  # told the score as it goes on
    everything: WeightedRows | None = None  # both, as they came; None if held-out rows were given


class LearningOutcome(NamedTuple):
    """What a derived class says of its learning."""

    how: str
    score: float
    independent: float | None = None  # None: to be scored on the held-out rows
    held_out_rows: int | None = None  # None: those of the task
    rows: int | None = None  # None: those of the task


@dataclass(frozen=True)
class LearningRecord:
    """What learning came to."""

    rows: int  # learned from
    # 0: too few to hold some out, the score is of the training rows; as many as `rows`: each was
    # held out in turn
    held_out_rows: int
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
            rows too, by one last step over all. A `LatentTree` with a choice of sizes holds out
            every fifth of a small table in turn.
        sample_weight
            How much each row of X counts.  # (rows,)

        Returns
        -------
        self
            The same, which has learned.
        """
        begun = self._begin_learning()
        self._learn_encoding(X, sample_weight)
        rows, held_out = self._encoded(X, sample_weight), None
        if valid is not None:
            codes = self.encoder_.codes(valid)
            if not len(codes):
                raise DomainError("valid has no rows; leave it out to hold out a tenth of X")
            held_out = WeightedRows(codes, np.ones(len(codes)))
        return self._learn_rows(rows, held_out, begun)

    def fit_batches(self, batches: Iterable[Any] | Callable[[], Iterable[Any]]) -> Self:
        """Learn from tables that come one after the other, in constant memory.

        Batches are read twice: to learn what the columns hold, by summaries that add up, and to
        encode the rows into a temporary file, of a byte or two for each cell. Up to 30,000 rows
        are then learned from as :meth:`fit` does. Of more, the tree follows from the counts of all
        pairs of columns (beyond 16 million combinations of values, from a sample), and the number
        of states and a first model from a random sample of 30,000 rows, of which a third is held
        out. Steps of EM over all rows come last: their sufficient statistics add up over chunks. A
        `PSDD` is learned from the sample alone. The result is the same to rounding however the rows
        are divided over batches.

        Parameters
        ----------
        batches
            Tables with the same columns, such as Arrow record batches, in a list or other
            collection, or a function that returns a new iterator of them each time.

        Returns
        -------
        self
            The same, which has learned.

        Raises
        ------
        BatchError
            A batch cannot be read: its number, and the first row at fault.

        Examples
        --------
        >>> from expecta import ChowLiu
        >>> len(ChowLiu().fit_batches([{"x": [0, 1, 1]}, {"x": [1, 0]}]).marginal("x").to_dict())
        2
        """
        return self.fit_source(BatchSource(batches))

    def fit_source(self, source: ChunkSource) -> Self:
        """Learn from chunks of rows, wherever they are; see :meth:`fit_batches`."""
        begun = self._begin_learning()
        encoder = self.default_encoder() if self.encoder is None else clone(self.encoder)
        self._set_encoder(encoder.fit_sketch(source.sketch(encoder)))
        rng = np.random.default_rng(self.random_state)
        seed = int(rng.integers(1 << 62))
        with closing(source.encoded(encoder)) as chunks:
            return self._fit_chunks(chunks, rng, seed, begun)

    def learned_anew(self, rows: WeightedRows, seed: int) -> Self:
        """Return what would be learned from other rows, in the same encoding.

        Parameters
        ----------
        rows
            Encoded rows and their weights.
        seed
            Seed of its starts, batches and held-out rows.
        """
        other = copy(self)
        other.random_state = seed
        return other._learn_rows(rows, None, time.perf_counter())

    def _fit_chunks(
        self, chunks: RowChunks, rng: np.random.Generator, seed: int, begun: float
    ) -> Self:
        """Learn from encoded chunks: a sample first, then all rows."""
        cards = self.encoder_.cardinalities_
        limit = row_chunks.SAMPLE_ROWS
        sampled = partial(ChunkSummary.of, cardinalities=cards, seed=seed, limit=limit)
        summary = chunks.total(sampled)
        codes, held, cut = summary.sample()
        if len(codes) == chunks.n_rows:
            return self._learn_rows(WeightedRows(codes, np.ones(len(codes))), None, begun)
        rows, held_out = (
            WeightedRows(codes[part], np.ones(np.count_nonzero(part)), summary.pairs)
            for part in (~held, held)
        )
        self.value_counts_ = np.split(summary.single, np.cumsum(cards)[:-1])
        with self._reporting() as report:
            outcome = self._learn(LearningTask(rows, held_out, rng, report, rows))
            held_rows = HeldOutSample(held_out, seed, cut, summary.any_missing)
            outcome = self._learn_chunks(chunks, held_rows, outcome, report)
        self.learned_ = LearningRecord(
            rows=len(rows.codes) if outcome.rows is None else outcome.rows,
            held_out_rows=len(held_out.codes),
            score=outcome.score,
            independent=self._independent(held_out),
            seconds=time.perf_counter() - begun,
            how=outcome.how,
        )
        return self

    def _begin_learning(self) -> float:
        """Forget what was learned before; return the time."""
        begun = time.perf_counter()
        prepare_walk()
        for name in ("circuit_", "learned_", "checked_"):  # a failure leaves nothing half learned
            self.__dict__.pop(name, None)
        return begun

    @contextmanager
    def _reporting(self) -> Iterator[Callable[..., None]]:
        """Show the score as it goes on."""
        with Progress(type(self).__name__, None) as progress:

            def report(score: float, what: str = "") -> None:
                progress.advance(label=f"{type(self).__name__} {what} held out {score:.4g}")

            yield report

    def _learn_rows(self, rows: WeightedRows, valid: WeightedRows | None, begun: float) -> Self:
        """Learn from encoded rows, and say what it came to."""
        rng = np.random.default_rng(self.random_state)
        weight = rows.weight
        held_out = everything = rows
        if valid is not None:
            held_out = valid
        elif np.count_nonzero(weight) >= MIN_ROWS:
            order = rng.permutation(np.flatnonzero(weight))
            cut = int(HELD_OUT_SHARE * len(order))
            rows, held_out = rows[np.sort(order[cut:])], rows[np.sort(order[:cut])]
        n_held_out = 0 if held_out is rows else len(held_out.codes)
        rows, held_out = rows.merged(), held_out.merged()
        self.value_counts_ = rows.value_counts(self.encoder_.cardinalities_)
        with self._reporting() as report:
            whole = everything[np.flatnonzero(weight)] if valid is None else None
            outcome = self._learn(LearningTask(rows, held_out, rng, report, whole))
        independent = outcome.independent
        if independent is None:
            independent = self._independent(held_out)
        n_rows = int(np.count_nonzero(weight))
        if outcome.held_out_rows is not None:
            n_held_out = outcome.held_out_rows
        elif valid is None:
            n_rows -= n_held_out
        if valid is None:
            self._finish(everything.merged())
        self.learned_ = LearningRecord(
            rows=n_rows,
            held_out_rows=n_held_out,
            score=outcome.score,
            independent=independent,
            seconds=time.perf_counter() - begun,
            how=outcome.how,
        )
        return self

    def _learn_encoding(self, X: Any, sample_weight: npt.ArrayLike | None) -> None:
        """Learn what the columns are."""
        encoder = self.default_encoder() if self.encoder is None else clone(self.encoder)
        self._set_encoder(encoder.fit(X, sample_weight=sample_weight))

    def _set_encoder(self, encoder: Encoder) -> None:
        self.encoder_ = encoder
        self.n_features_in_ = encoder.n_features_in_
        self.feature_names_in_ = encoder.feature_names_in_

    def default_encoder(self) -> Encoder:
        """Return the encoder of a density to which none is given."""
        return Encoder()

    def _encoded(self, X: Any, sample_weight: npt.ArrayLike | None) -> WeightedRows:
        """Read a table by the encoding that was learned."""
        codes = self.encoder_.codes(X)
        return WeightedRows(codes, read_weights(sample_weight, len(codes)))

    def _learn(self, task: LearningTask) -> LearningOutcome:
        """Set ``circuit_``; return in words what was done, and the held-out score."""
        raise TypeError(f"{type(self).__name__} does not say how it learns")

    def _marginals(self, value_counts: list[Floats] | None = None) -> list[Floats]:
        """Distribution of each column in training, or of other counts, a row added evenly."""
        counts = self.value_counts_ if value_counts is None else value_counts
        smooth = [each + 1.0 / len(each) for each in counts]
        return [each / each.sum() for each in smooth]

    def _learn_chunks(
        self,
        chunks: RowChunks,
        held_out: HeldOutSample,
        outcome: LearningOutcome,
        report: Callable[..., None],
    ) -> LearningOutcome:
        """Learn from all rows what was learned from a sample; here nothing more."""
        return outcome._replace(how=f"{outcome.how}, from a sample of all rows")

    def _finish(self, rows: WeightedRows) -> None:
        """Learn once more from all rows, now that none need be held out."""

    def _independent(self, rows: WeightedRows) -> float:
        """Mean log-likelihood of rows if the columns were independent."""
        scores = independent_scores(rows.codes, self._marginals())
        return float(np.average(scores, weights=rows.weight))

    # -- printing ---------------------------------------------------------------------

    def __repr__(self, *args: Any) -> str:
        if not hasattr(self, "learned_"):
            return str(BaseEstimator.__repr__(self, *args))
        s, learned = self.circuit.structure, self.learned_
        scored = f"the {counted(learned.rows, 'training row')}"
        if learned.held_out_rows:
            scored = counted(learned.held_out_rows, "held-out row")
            if learned.held_out_rows == learned.rows:
                scored = f"{counted(learned.rows, 'row')}, each held out in turn"
        lines = [
            f"{type(self).__name__} of {counted(s.n_variables, 'column')}, {learned.how}",
            f"  circuit   {s.n_nodes:,} nodes, {s.n_edges:,} parameters",
            f"  score     {learned.score:.4f} nats a row on {scored}",
            f"            {learned.independent:.4f} if the columns were independent",
            f"  learned   from {counted(learned.rows, 'row')} in {learned.seconds:.1f} s",
        ]
        lines += [f"  checked   {line}" for line in self.checked_]
        return "\n".join([*lines, *(f"  note      {note}" for note in self.encoder_.notes_)])

    __str__ = __repr__


def independent_scores(codes: Ints, marginals: list[Floats]) -> Floats:
    """Log-likelihood of each row if the columns were independent.  # (rows,)."""
    total = np.zeros(len(codes))
    for column, marginal in zip(codes.T, marginals, strict=True):
        total += np.append(np.log(marginal), 0.0)[column]
    return total
