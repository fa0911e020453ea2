"""Predict for streams of rows, NDJSON or Arrow, in constant memory.

A request is read and answered in blocks. Answers are kept in a temporary file until the request
has ended: many clients read nothing while they send, and a row that is at fault can still be told
by the status.
"""

from __future__ import annotations

import asyncio
import struct
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import numpy as np
import pyarrow as pa
from fastapi import Request
from pydantic_core import from_json
from starlette.background import BackgroundTask
from starlette.responses import StreamingResponse

from expecta.common.errors import DomainError
from expecta.estimators.row_predictions import predict_rows
from expecta.expected.expected_model import ModelRows
from expecta.serve.arrow_messages import (
    BATCH,
    CONTINUATION,
    DICTIONARY,
    END,
    SCHEMA,
    read_message,
)
from expecta.serve.model_registry import ModelEntry, ModelRegistry
from expecta.serve.prediction_requests import PredictRequest, count_rows
from expecta.serve.problems import ProblemError, busy, to_json
from expecta.serve.request_bodies import parse_request
from expecta.serve.serve_options import ServeOptions
from expecta.serve.served_model import PredictOptions, ServedModel
from expecta.tables.row_reader import arrow_columns
from expecta.tables.unfamiliar_cells import UnfamiliarCounts

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
BLOCK_ROWS = 4096  # that are predicted at a time
BLOCK_BYTES = 1 << 22  # of lines, from which fewer are
MAX_BATCH_ROWS = 1 << 20  # of an Arrow batch
SPOOL_BYTES = 1 << 20  # of answers that are kept in memory
PIECE = 1 << 16  # bytes that are sent at a time
MAX_REMARKS = 3  # on single rows, in the header of an answer
MAX_HEADER = 2000  # characters of that header


class RowBlocks(ABC):
    """Reads a stream piece by piece, and answers for each block of rows.

    Parameters
    ----------
    served, wanted
        The model, and what to add to predictions.
    limit
        Bytes that a line or a message may have.
    """

    media_type: str

    def __init__(self, served: ServedModel, wanted: PredictOptions, limit: int) -> None:
        self.served, self.wanted, self.limit = served, wanted, limit
        self.n_rows = self.n_impossible = self.n_unseen = 0
        self.remarks: list[str] = []  # on values unlike the training data, the first of them
        self._rest = bytearray()

    @abstractmethod
    def blocks(self, piece: bytes) -> Iterator[Any]:
        """Take the next bytes, and return the blocks that are complete."""

    @abstractmethod
    def last(self) -> Iterator[Any]:
        """Return the last block, once the stream has ended."""

    @abstractmethod
    def read(self, block: Any) -> Any:
        """Read a block's rows, in turn; those of the block before may be waiting for answers."""

    @abstractmethod
    def answer(self, rows: Any, out: IO[bytes]) -> None:
        """Predict for the rows of a block, and write the answers."""

    @abstractmethod
    def close(self, out: IO[bytes]) -> None:
        """Write what ends the answers."""

    def _check_length(self, length: int, what: str) -> None:
        if length > self.limit:
            raise ProblemError(413, f"{what} is larger than {self.limit:,} bytes")


class JsonLineBlocks(RowBlocks):
    """One row in each line, as an object."""

    media_type = NDJSON

    def __init__(self, served: ServedModel, wanted: PredictOptions, limit: int) -> None:
        super().__init__(served, wanted, limit)
        self._lines: list[bytes] = []
        self._size = 0  # of the lines, in bytes

    def blocks(self, piece: bytes) -> Iterator[list[bytes]]:
        """Take the next bytes, and return lists of complete lines: the same however they come."""
        self._rest += piece
        end = self._rest.rfind(b"\n")
        if end >= 0:
            lines = bytes(self._rest[:end]).split(b"\n")
            del self._rest[: end + 1]
            for line in lines:
                self._lines.append(line)
                self._size += len(line)
                if len(self._lines) >= BLOCK_ROWS or self._size >= BLOCK_BYTES:
                    yield self._taken()
        self._check_length(len(self._rest), "a line")

    def _taken(self) -> list[bytes]:
        lines, self._lines, self._size = self._lines, [], 0
        return lines

    def last(self) -> Iterator[list[bytes]]:
        """Return the last lines, of which one may not be ended."""
        yield [*self._taken(), bytes(self._rest)]

    def read(self, block: list[bytes]) -> tuple[int, list[list[Any]]]:
        """Return the number of the first row, and the cells of all."""
        first = self.n_rows
        cells: list[list[Any]] = []
        for line in block:
            if not line.strip():
                continue
            row = first + len(cells)
            try:
                given = from_json(line)
            except ValueError as error:
                raise ProblemError(400, f"row {row} is not JSON: {error}", row=row) from None
            if not isinstance(given, dict):
                raise ProblemError(
                    422, f"row {row} is not an object from columns to values", row=row
                )
            cells.append(self.served.rows.row(given, row))
            remarks = self.served.rows.unseen(cells[-1], row)
            self.n_unseen += len(remarks)
            self.remarks += remarks[: max(MAX_REMARKS - len(self.remarks), 0)]
        self.n_rows += len(cells)
        return first, cells

    def answer(self, rows: tuple[int, list[list[Any]]], out: IO[bytes]) -> None:
        """Predict for rows, and write a line for each."""
        first, cells = rows
        try:
            answers = self.served.predict_all(cells, self.wanted)
        except ProblemError as problem:
            if "row" in problem.where:
                problem.where["row"] += first
            raise
        self.n_impossible += sum(row["error"] is None for row in answers)
        out.write(b"".join(to_json(row) + b"\n" for row in answers))

    def close(self, out: IO[bytes]) -> None:
        """Do nothing: lines end by themselves."""


class ArrowBlocks(RowBlocks):
    """Record batches, of which each is answered by one."""

    media_type = ARROW

    def __init__(self, served: ServedModel, wanted: PredictOptions, limit: int) -> None:
        super().__init__(served, wanted, limit)
        self._unlike = UnfamiliarCounts(served.model.expected_model.density.encoder_)
        self._head = b""  # the schema and dictionaries, without which no batch can be read
        self._writer: Any = None
        self._ended = False

    def blocks(self, piece: bytes) -> Iterator[Any]:
        """Take the next bytes, and return complete batches, each with its schema as a stream."""
        self._rest += piece
        while not self._ended and len(self._rest) >= 8:
            mark, size = struct.unpack_from("<II", self._rest)
            if mark != CONTINUATION:
                raise ProblemError(
                    400, "this is not an Arrow stream: a message begins with FFFFFFFF"
                )
            if size == 0:
                self._ended = True
                return
            self._check_length(size, "a message")
            if len(self._rest) < 8 + size:
                return
            kind, length, is_compressed = read_message(bytes(self._rest[8 : 8 + size]))
            self._check_length(length, "a batch")
            if is_compressed:
                raise ProblemError(422, "the batches are compressed; send them as they are")
            if len(self._rest) < 8 + size + length:
                return
            message = self._rest[: 8 + size + length]
            del self._rest[: 8 + size + length]
            if kind in (SCHEMA, DICTIONARY):
                self._head += message
                self._check_length(len(self._head), "the schema with its dictionaries")
            elif kind == BATCH:
                yield b"".join((self._head, message, END))  # a stream of its own
            else:
                raise ProblemError(400, f"an Arrow stream has no message of kind {kind}")

    def last(self) -> Iterator[Any]:
        """Complain where a message is not complete, or there was none."""
        if self._rest and not self._ended:
            raise ProblemError(400, "the Arrow stream ends within a message")
        if not self._head:
            raise ProblemError(400, "the Arrow stream is empty; it begins with a schema")
        return iter(())

    def _table(self, stream: bytes) -> Any:
        """Return the model's columns of a batch; those that it lacks are unknown."""
        try:
            with pa.ipc.open_stream(pa.BufferReader(stream)) as reader:
                (batch,) = reader
                if batch.num_rows > MAX_BATCH_ROWS:
                    raise ProblemError(
                        413, f"a batch has {batch.num_rows:,} rows, more than {MAX_BATCH_ROWS:,}"
                    )
                batch.validate(full=True)
        except (pa.ArrowException, ValueError, OSError) as error:
            raise ProblemError(400, f"an Arrow batch cannot be read: {error!s:.300}") from None
        names = self.served.rows.names
        given = batch.schema.names
        if len(set(given)) < len(given):
            raise ProblemError(422, "two columns of the batch have the same name")
        return arrow_columns(batch, names)[0]

    def read(self, block: bytes) -> tuple[range, ModelRows]:
        """Return the numbers of a batch's rows, and what the model sees of them."""
        table = self._table(block)
        numbers = range(self.n_rows, self.n_rows + table.num_rows)
        with _named(numbers):
            rows = self.served.model.expected_model.rows(table)
        self.n_rows += len(numbers)
        self._unlike.add(rows.table, rows.codes)
        self.n_unseen, self.remarks = self._unlike.total, self._unlike.sentences()
        return numbers, rows

    def answer(self, rows: tuple[range, ModelRows], out: IO[bytes]) -> None:
        """Predict for a batch, and write one."""
        with _named(rows[0]):
            predicted = predict_rows(self.served.model, rows[1], **self.wanted.arguments())
        self.n_impossible += int(np.count_nonzero(predicted.impossible))
        batch = predicted.to_arrow(error=True)
        self._open(batch.schema, out).write_batch(batch)

    def _open(self, schema: Any, out: IO[bytes]) -> Any:
        if self._writer is None:
            self._writer = pa.ipc.new_stream(pa.PythonFile(out, "w"), schema)
        return self._writer

    def close(self, out: IO[bytes]) -> None:
        """Write the end of the stream; of one without batches, the schema."""
        if self._writer is None:
            model = self.served.model
            empty = predict_rows(model, self.served.rows.table([]), **self.wanted.arguments())
            self._open(empty.to_arrow(error=True).schema, out)
        self._writer.close()


@contextmanager
def _named(rows: range) -> Iterator[None]:
    """Say among which rows the library refuses one."""
    try:
        yield
    except DomainError as error:
        first, last = rows.start, rows.stop - 1
        raise ProblemError(422, f"rows {first} to {last}: {error}", rows=[first, last]) from None


# -- requests -----------------------------------------------------------------------------


class StreamAnswers:
    """Answers streams of a service, a limited number at a time."""

    def __init__(self, registry: ModelRegistry, options: ServeOptions) -> None:
        self.registry, self.options = registry, options
        self._open = 0

    async def __call__(self, entry: ModelEntry, request: Request, kind: str) -> StreamingResponse:
        """Read a stream to its end, and return the answers as a stream of the same kind."""
        entry.served.check_predicts()
        wanted = stream_options(request)
        if self._open >= self.options.max_streams:
            raise busy(f"{self._open} streams are being read already")
        self._open += 1
        out = SpooledTemporaryFile(SPOOL_BYTES)  # noqa: SIM115 the answer closes it
        try:
            of_kind = JsonLineBlocks if kind == NDJSON else ArrowBlocks
            blocks = of_kind(entry.served, wanted, self.options.max_bytes)
            await self._read(blocks, request, out)
        except BaseException:
            out.close()
            raise
        finally:
            self._open -= 1
        count_rows(
            self.registry, entry.served.name, blocks.n_rows, blocks.n_impossible, blocks.n_unseen
        )
        request.state.facts["rows"] = blocks.n_rows
        length = str(out.tell())
        out.seek(0)
        return StreamingResponse(
            _pieces(out),
            media_type=kind,
            headers={
                "Content-Length": length,
                "Expecta-Exactness": _ascii(entry.served.exactness),
                **_remarks(blocks),
            },
            background=BackgroundTask(out.close),
        )

    async def _read(self, blocks: RowBlocks, request: Request, out: Any) -> None:
        """Read and answer a stream; the next block arrives and is read while one is answered."""
        stream = aiter(request.stream())
        answering: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        answering.set_result(None)
        try:
            while True:
                piece = await self._next_piece(stream, answering)
                for block in blocks.last() if piece is None else blocks.blocks(piece):
                    rows = await self.registry.reading.run(partial(blocks.read, block))
                    await answering
                    answer = self.registry.streams.run(partial(blocks.answer, rows, out))
                    answering = asyncio.ensure_future(answer)
                if piece is None:
                    await answering
                    await self.registry.streams.run(partial(blocks.close, out))
                    return
        except ProblemError:
            await answering  # what is wrong with earlier rows comes first
            raise
        finally:
            answering.cancel()

    async def _next_piece(
        self, stream: AsyncIterator[bytes], answering: asyncio.Future[None]
    ) -> bytes | None:
        """Return the next bytes; faults of a whole block are told, whether more arrive or not."""
        arriving = asyncio.ensure_future(self._piece(stream))
        try:
            first: set[asyncio.Future[Any]] = {arriving, answering}
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                answering.result()
            return await arriving
        finally:
            arriving.cancel()

    async def _piece(self, stream: AsyncIterator[bytes]) -> bytes | None:
        """Return the next bytes of a request; None at its end."""
        try:
            async with asyncio.timeout(self.options.timeout):
                return await anext(stream, None)
        except TimeoutError:
            limit = self.options.timeout
            raise ProblemError(
                408, f"nothing arrived for {limit:g} seconds", {"Connection": "close"}
            ) from None


def stream_options(request: Request) -> PredictOptions:
    """Read what to add to predictions from the address: ``?std=true&quantiles=0.1,0.9``."""
    given: dict[str, Any] = {"rows": {}}
    for name, text in request.query_params.multi_items():
        if name == "quantiles":
            given.setdefault(name, []).extend(text.split(","))
        elif len(request.query_params.getlist(name)) > 1:
            raise ProblemError(422, f"the address has {name[:80]!r} twice; give it once")
        else:
            given[name] = text
    return parse_request(to_json(given), PredictRequest).options()


async def _pieces(out: Any) -> AsyncIterator[bytes]:
    while piece := out.read(PIECE):
        yield piece


def _remarks(blocks: RowBlocks) -> dict[str, str]:
    """Return the header that tells of values unlike the training data, and of impossible rows."""
    more = blocks.n_unseen - len(blocks.remarks) if isinstance(blocks, JsonLineBlocks) else 0
    rest = [f"... and {more} more values like these"] * (more > 0)
    if blocks.n_impossible:
        rest.append(
            f"{blocks.n_impossible} of {blocks.n_rows} rows have probability zero under the "
            f"learned density: nothing is predicted of them"
        )
    remarks = "; ".join([*blocks.remarks, *rest])
    return {"Expecta-Remarks": _ascii(remarks)[:MAX_HEADER]} if remarks else {}


def _ascii(text: str) -> str:
    return text.encode("ascii", "replace").decode()
