"""Rows that come in chunks, read as often as learning asks for them: summaries add up to all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import BatchError, DomainError
from expecta.learn.pair_counts import MAX_CELLS, PairCounts
from expecta.learn.weighted_rows import WeightedRows
from expecta.tables.encoder import Encoder
from expecta.tables.row_reader import first_bad_row
from expecta.tables.table_sketch import TableSketch

CHUNK_CELLS = 1 << 21  # that are in memory at a time; the more, the more rows are equal
SAMPLE_ROWS = 30_000  # that structure is chosen with; a third of them is held out

Summary = TypeVar("Summary")
Unsigned = npt.NDArray[np.uint64]


class RowChunks(Protocol):
    """Encoded rows in chunks, wherever they are."""

    n_rows: int

    def total(self, summarise: Callable[[Ints, int], Summary], /) -> Summary:
        """Add up a summary of all chunks: of their values and the number of their first row."""

    def close(self) -> None:
        """Let go of the rows."""


class ChunkSource(Protocol):
    """Tables in chunks, wherever they are."""

    def sketch(self, encoder: Encoder) -> TableSketch:
        """Summarise all rows for an encoder."""

    def encoded(self, encoder: Encoder) -> RowChunks:
        """Encode all rows."""


def row_priorities(first: int, count: int, seed: int) -> Unsigned:
    """Return a random number for each row, that depends on its number and the seed alone.

    SplitMix64 (Steele, Lea and Flood 2014): the rows of the smallest numbers are a random sample,
    the same however rows are divided over chunks.
    """
    with np.errstate(over="ignore"):
        z = np.arange(first, first + count, dtype=np.uint64) + np.uint64(1)
        z = z * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed) * np.uint64(0xD1342543DE82EF95)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@dataclass(frozen=True, eq=False)
class ChunkSummary:
    """Counts of values, of pairs of them where these are few enough, and a sample of rows."""

    single: Floats
    pairs: PairCounts | None
    any_missing: bool
    priority: Unsigned  # of the rows of the sample ...
    number: Ints  # ... where they are among all ...
    codes: Ints  # ... and their values
    limit: int  # rows of a sample

    @classmethod
    def of(
        cls, codes: Ints, first: int, cardinalities: Ints, seed: int, limit: int
    ) -> ChunkSummary:
        """Summarise a chunk."""
        weight = np.ones(len(codes))
        pairs = None
        if PairCounts.n_cells(cardinalities) <= MAX_CELLS:
            pairs = PairCounts.of(codes, cardinalities, weight)
        single = WeightedRows(codes, weight).value_counts(cardinalities)
        priority = row_priorities(first, len(codes), seed)
        number = np.arange(first, first + len(codes))
        missing = bool(np.any(codes < 0))
        sample = priority, number, codes, limit
        return cls(np.concatenate(single), pairs, missing, *sample)._sampled()

    def __add__(self, other: ChunkSummary) -> ChunkSummary:
        pairs = None
        if self.pairs is not None and other.pairs is not None:
            pairs = self.pairs + other.pairs
        return ChunkSummary(
            self.single + other.single,
            pairs,
            self.any_missing or other.any_missing,
            np.concatenate([self.priority, other.priority]),
            np.concatenate([self.number, other.number]),
            np.concatenate([self.codes, other.codes]),
            self.limit,
        )._sampled()

    def _sampled(self) -> ChunkSummary:
        """Keep the rows of the smallest numbers."""
        if len(self.priority) <= self.limit:
            return self
        kept = np.argpartition(self.priority, self.limit)[: self.limit]
        rows = self.priority[kept], self.number[kept], self.codes[kept]
        return ChunkSummary(self.single, self.pairs, self.any_missing, *rows, self.limit)

    def sample(self) -> tuple[Ints, Bools, int]:
        """Return the sample in the order of its rows, and which third of it is held out.

        The last is the largest random number of a row that is held out.
        """
        order = np.argsort(self.number)
        cut = np.sort(self.priority)[(len(order) - 1) // 3]
        return self.codes[order], self.priority[order] <= cut, int(cut)


class HeldOutSample(NamedTuple):
    """Rows that are held out of chunks: those whose random number is at most ``cut``."""

    rows: WeightedRows
    seed: int
    cut: int
    any_missing: bool  # in any row, held out or not

    def weights(self, first: int, count: int) -> Floats:
        """Return 0 for the rows of a chunk that are held out, else 1."""
        priority = row_priorities(first, count, self.seed)
        return (priority > np.uint64(self.cut)).astype(np.float64)


# -- batches of one process ---------------------------------------------------------------


class BatchSource:
    """Tables that come one after the other, from something that can be iterated again.

    Parameters
    ----------
    batches
        A list or other collection of tables, or a function that returns an iterator of them.
    """

    def __init__(self, batches: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        if not callable(batches) and iter(batches) is batches:
            raise DomainError(
                "batches are read more than once: pass a list, a dataset, or a function that "
                "returns a new iterator each time"
            )
        self._batches = batches

    def _tables(self) -> Iterator[Any]:
        return iter(self._batches() if callable(self._batches) else self._batches)

    def sketch(self, encoder: Encoder) -> TableSketch:
        """Summarise all rows for an encoder."""
        total: TableSketch | None = None
        for number, table in enumerate(self._tables()):
            sketch = read_batch(number, None, encoder.sketch, table)
            if total is None:
                total = sketch
                continue
            try:
                total = total + sketch
            except DomainError as problem:
                raise BatchError(number, None, total.rows, str(problem)) from None
        if total is None or not total.rows:
            raise DomainError("the batches have no rows; there is nothing to learn from")
        return total

    def encoded(self, encoder: Encoder) -> SpooledChunks:
        """Encode all rows, into a temporary file."""
        chunks = SpooledChunks(encoder.cardinalities_)
        try:
            for number, table in enumerate(self._tables()):
                chunks.append(read_batch(number, chunks.n_rows, encoder.codes, table))
        except BaseException:
            chunks.close()
            raise
        return chunks


def read_batch(
    number: int, before: int | None, read: Callable[[Any], Summary], table: Any
) -> Summary:
    """Return what is read of a batch; an error names it, and its first row at fault."""
    try:
        return read(table)
    except DomainError as problem:
        row = None
        if hasattr(table, "slice") or hasattr(table, "iloc"):

            def part(first: int, count: int) -> Any:
                if hasattr(table, "iloc"):
                    return read(table.iloc[first : first + count])
                return read(table.slice(first, count))

            row = first_bad_row(part, len(table) if hasattr(table, "iloc") else table.num_rows)
        raise BatchError(number, row, before, str(problem)) from None


class SpooledChunks:
    """Encoded rows in a temporary file, that is gone with its process."""

    def __init__(self, cardinalities: Ints) -> None:
        largest = int(np.max(cardinalities, initial=1))
        self._dtype = np.dtype(
            np.int8 if largest < 2**7 else np.int16 if largest < 2**15 else np.int32
        )
        self._width = len(cardinalities)
        self._file: IO[bytes] = TemporaryFile(prefix="expecta-")  # noqa: SIM115 gone with it
        self.n_rows = 0

    def append(self, codes: Ints) -> None:
        """Add rows at the end."""
        self._file.write(codes.astype(self._dtype).tobytes())
        self.n_rows += len(codes)

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def total(self, summarise: Callable[[Ints, int], Summary]) -> Summary:
        """Add up a summary of all chunks: of their values and the number of their first row."""
        return reduce(add, (summarise(codes, first) for codes, first in self._chunks()))

    def _chunks(self) -> Iterator[tuple[Ints, int]]:
        row_bytes, n_rows = self._width * self._dtype.itemsize, max(1, CHUNK_CELLS // self._width)
        self._file.seek(0)
        for first in range(0, self.n_rows, n_rows):
            data = self._file.read(n_rows * row_bytes)
            codes = np.frombuffer(data, self._dtype).reshape(-1, self._width)
            yield codes.astype(np.int32), first
