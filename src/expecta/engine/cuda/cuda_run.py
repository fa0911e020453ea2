"""Run a compiled pair on a card: evidence in, the root's values out, as ``run`` does it here."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.circuits.evidence import Evidence, code_table
from expecta.common.arrays import Floats
from expecta.common.progress import Progress
from expecta.common.settings import current
from expecta.common.threads import run_on_threads
from expecta.engine.algebras import Exponential
from expecta.engine.cuda.card_pair import GRAPH_ROWS, PLAIN, POSTERIOR, SCALED, WARP, CardPair
from expecta.engine.cuda.card_work import kept_on_card, on_the_card
from expecta.engine.cuda.devices import Device
from expecta.engine.cuda.rows_on_card import RowReader, RowsOnCard
from expecta.engine.plan import Plan
from expecta.engine.state_tables import StateTables

Array = npt.NDArray[Any]

TABLES = ((20_000, 1 << 16), (5_000, 1 << 13), (0, 243))  # from so many rows: their lanes
MANY_REUSED = 200_000  # rows of earlier calls, after which any call has the largest tables
MAX_STAGED = 1 << 25  # bytes of a tile's codes, and of its roots, in memory of the host
MAX_SENT = 1 << 28  # bytes of rows as they are, at a time
MIN_CELLS, MAX_PARTS = 1 << 18, 8  # of codes that a thread writes, and threads

_kept = kept_on_card()  # walks of each kind, by their plans


def run_on_card(
    plan: Plan,
    algebra: Any,
    constants: Sequence[Callable[[], Floats]],
    tables: StateTables,
) -> list[tuple[Floats, Floats, Floats]]:
    """Walk the pair for each table of constants; return q, its exponent and the root's state.

    Cost: the card's share of ``plan.n_joins`` products of states per row, no more launches than a
    few per level of the vtree and tile of rows. In float32 states are divided by the
    probability of the evidence on the way, and are good to about 1e-5 relative.
    """
    exponential = isinstance(algebra, Exponential)  # whose numbers no float32 holds
    real = "float" if current().precision == "float32" and not exponential else "double"
    scaled = tables.scaled or plan.scaled
    weights = POSTERIOR if real == "float" else SCALED if scaled else PLAIN
    per_edge = constants[0]().shape[1]

    def walk(device: Device) -> Any:
        card = _card_walk(device, plan, algebra, per_edge, tables, weights, real)
        out = None if card.too_small else card.run(constants, tables)
        if out is None:
            card.too_small = True  # remembered: the next call begins with exponents
            card = _card_walk(device, plan, algebra, per_edge, tables, SCALED, real)
            out = card.run(constants, tables)
            assert out is not None
        return out

    return [(root[0], root[1], root[2:]) for root in on_the_card(walk)]


class Reuse:
    """Counts the rows that were walked since the constants in tables changed."""

    rows = 0


def _card_walk(
    device: Device,
    plan: Plan,
    algebra: Any,
    per_edge: int,
    tables: StateTables,
    weights: int,
    real: str,
) -> CardWalk:
    """Return the walk for such rows: the more of them, the larger its tables, as memory allows."""
    kept: dict[Any, tuple[Reuse, dict[int, CardWalk | None]]] = _kept.setdefault(plan, {})
    n_states, n = tables.n_states, len(tables.evidence)
    key = (id(device), type(algebra), tuple(algebra), n_states.tobytes(), weights, real)
    if key not in kept:
        if len(kept) >= 16:  # evidence of ever new kinds
            kept.clear()
        kept[key] = Reuse(), {}
    reuse, walks = kept[key]
    rows = n if reuse.rows < MANY_REUSED else max(n, TABLES[0][0])
    for least, limit in TABLES:
        if rows < least:
            continue
        if limit not in walks:
            pair = CardPair(device, plan, algebra, per_edge, n_states, limit, weights, real)
            fits = pair.table_bytes <= device.memory or limit == TABLES[-1][1]
            walks[limit] = CardWalk(pair, reuse) if fits else None
        walk = walks[limit]
        if walk is not None:
            return walk
    raise AssertionError("tables of the last kind hold for any rows")


class CardWalk:
    """Walks rows through a pair on a device, tile after tile."""

    def __init__(self, pair: CardPair, reuse: Reuse) -> None:
        self.pair, self.device, self.reuse = pair, pair.device, reuse
        self.too_small = False  # a probability, to do without exponents
        self.sparse = len(pair.plan.pairs.pair_p) > 0 and not len(pair.layout.rows.runs)
        nothing: Array = np.empty(0)
        self.readers: dict[Any, RowReader] = {}  # of rows on the card, by the type of their cells
        self.staged = [(nothing, nothing)] * 2  # of the host: for codes, and for roots

    def run(self, constants: Sequence[Callable[[], Floats]], states: StateTables) -> Any:
        """Return q, exponent and state of the root for each table of constants and row.

        None where a probability is too small to do without exponents. What is asked on the card
        is answered there.
        """
        pair, rows, n = self.pair, states.evidence, len(states.evidence)
        has_pair = len(pair.plan.pairs.pair_p) > 0
        total = len(constants) * pair.n_chunks if has_pair else 1
        per = pair.width - pair.head
        numbers = 2 + (pair.whole_width if has_pair else 0)
        shape = len(constants), numbers, n
        reader = self._reader(rows) if isinstance(rows, RowsOnCard) else None
        there = reader is not None and reader.there
        out = self._empty_answer(shape) if there else np.empty(shape)
        copy = self.device.copy if there else np.copyto
        pair.place(n, total, reader is not None)
        todo = self._chunks(constants)
        done = 0
        with Progress("rows", n * len(constants)) as progress:
            while done < total:
                group = list(islice(todo, pair.chunks))
                if pair.make_tables(states, group):
                    self.reuse.rows = 0
                roots = (
                    self._roots(rows, len(group))
                    if reader is None
                    else (self._roots_there(reader, len(group)))
                )
                for part, root in roots:
                    if root is None:
                        return None
                    copy(out[:, :2, part], root[:2])
                    for k in range(len(group) if has_pair else 0):
                        table, chunk = divmod(done + k, pair.n_chunks)
                        state = root[2 + k * pair.width : 2 + (k + 1) * pair.width]
                        at = 2 + pair.head + chunk * per
                        copy(out[table, 2 : 2 + pair.head, part], state[: pair.head])
                        last = min(numbers, at + per)  # the last chunk may have channels to spare
                        copy(
                            out[table, at:last, part],
                            state[pair.head : pair.head + last - at],
                        )
                    progress.advance((part.stop - part.start) * len(group) // pair.n_chunks)
                done += len(group)
        if self.sparse:  # dense sums are cheaper than reading large tables
            self.reuse.rows += n
        if reader is not None:
            reader.check_and_forget()
            if self._is_too_small():
                return None
            out = self.device.answer(out) if there else out
        return out

    def _reader(self, rows: RowsOnCard) -> RowReader:
        cells = RowReader.cells_of(self.device, rows)
        if cells.dtype not in self.readers:
            cards = [table.shape[1] for table in rows.states]
            self.readers[cells.dtype] = RowReader(self.device, cells.dtype, cards, self.pair.code)
        reader = self.readers[cells.dtype]
        reader.cells, reader.there = cells, rows.there
        return reader

    def _empty_answer(self, shape: tuple[int, int, int]) -> Any:
        size = int(np.prod(shape))
        return self.device.empty(size, np.float64)[:size].reshape(shape)

    def _is_too_small(self) -> bool:
        flag = np.empty(1, np.int32)
        self.device.get(self.pair.flag, flag)
        return bool(flag[0])

    def _chunks(self, constants: Sequence[Callable[[], Floats]]) -> Iterator[Array]:
        """Yield g's constants for a few channels at a time.  # (edges, constants per edge)."""
        for table in constants:
            values = table()
            if self.pair.n_chunks == 1 and values.shape[1] == self.pair.per_edge:
                yield values
                continue
            wide = np.zeros((len(values), self.pair.n_chunks * max(1, self.pair.per_edge)))
            wide[:, : values.shape[1]] = values
            yield from np.moveaxis(wide.reshape(len(values), self.pair.n_chunks, -1), 1, 0)

    def _roots(self, evidence: Evidence, chunks: int) -> Iterator[tuple[slice, Floats | None]]:
        """Walk tile after tile; a root holds until the one after the next is asked for.

        Codes of a tile are written while the card walks the one before.
        """
        begun: deque[tuple[slice, Floats, int]] = deque()
        n_variables, numbers = len(evidence.codes), 2 + chunks * self.pair.width
        most = MAX_STAGED // max(n_variables * self.pair.code.itemsize, 8 * numbers)
        step = min(self.pair.tile, max(WARP, most // WARP * WARP))
        for slot, start in enumerate(range(0, len(evidence), step)):
            if len(begun) == 2:
                yield self._finished(*begun.popleft())
            part = slice(start, min(len(evidence), start + step))
            n = part.stop - start
            lanes = self.pair.lanes(n)
            codes, root = self._staging(slot % 2, n_variables * lanes, numbers * lanes)
            _write_codes(evidence, part, codes.reshape(n_variables, lanes))

            def copy_and_walk(lanes: int = lanes, codes: Array = codes, root: Array = root) -> None:
                self.device.send(self.pair.codes, codes)
                self.pair.launch_rows(lanes, chunks)
                self.device.receive(root, self.pair.out)

            kept = self.pair.graphs if lanes <= GRAPH_ROWS else None
            self.device.replay(kept, (lanes, chunks, slot % 2), copy_and_walk)
            self.device.mark(slot % 2)
            begun.append((part, root.reshape(numbers, lanes)[:, :n], slot % 2))
        while begun:
            yield self._finished(*begun.popleft())

    def _finished(self, part: slice, root: Floats, slot: int) -> tuple[slice, Floats | None]:
        """Wait for a tile's root, and for the tile after it, if no number of it can be used."""
        self.device.wait(slot)
        if np.isnan(root[1, 0]):
            self.device.answer(root)
            return part, None
        return part, root

    def _roots_there(self, reader: RowReader, chunks: int) -> Iterator[tuple[slice, Any]]:
        """Walk tile after tile of rows that the card reads."""
        numbers, n_rows = 2 + chunks * self.pair.width, len(reader.cells)
        step = self.pair.tile
        if not reader.there:
            most = MAX_SENT // max(1, reader.cells.itemsize * len(reader.cards))
            step = min(step, max(WARP, most // WARP * WARP))
        for start in range(0, n_rows, step):
            part = slice(start, min(n_rows, start + step))
            n = part.stop - start
            lanes = self.pair.lanes(n)
            reader.write(self.pair.codes, start, n, lanes)
            self.pair.walk_rows(lanes, chunks)
            root = self.pair.out[: numbers * lanes].reshape(numbers, lanes)
            if not reader.there:
                there, root = root, np.empty((numbers, lanes))
                self.device.get(there, root)
            yield part, root[:, :n]

    def _staging(self, slot: int, cells: int, numbers: int) -> tuple[Array, Array]:
        """Return memory of the host for codes and numbers, of which there are two pieces."""
        codes, out = self.staged[slot]
        if len(codes) < cells or len(out) < numbers:
            codes = self.device.staging(max(cells, len(codes)), self.pair.code)
            out = self.device.staging(max(numbers, len(out)), np.float64)
            self.staged[slot] = codes, out
            self.pair.graphs.clear()  # they hold its address
        return codes[:cells], out[:numbers]


def _write_codes(evidence: Evidence, part: slice, out: Array) -> None:
    """Write the codes of some rows, one variable after the other; lanes to spare are state 0."""
    n = part.stop - part.start
    out[:, n:] = 0

    def write(first: int, last: int) -> None:
        out[first:last, :n] = code_table(evidence, slice(first, last), part)

    parts = min(current().n_threads(), 1 + out.size // MIN_CELLS, MAX_PARTS)
    step = -(-len(out) // parts)
    run_on_threads(write, [(v, v + step) for v in range(0, len(out), step)], parts)
