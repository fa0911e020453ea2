"""Run a compiled pair on a card: evidence in, the root's values out, as ``run`` does it here."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.circuits.evidence import Evidence, code_table
from expecta.common.arrays import Floats, Ints
from expecta.common.progress import Progress
from expecta.common.settings import current
from expecta.common.threads import run_on_threads
from expecta.engine.algebras import Exponential, cuda_text, width
from expecta.engine.cuda.card_work import kept_on_card, on_the_card
from expecta.engine.cuda.devices import Device, kernel_text
from expecta.engine.cuda.pair_layout import OUT, Q_OUT, PairLayout, Stage, Sums
from expecta.engine.cuda.rows_on_card import RowReader, RowsOnCard
from expecta.engine.plan import Plan
from expecta.engine.state_tables import StateTables

Array = npt.NDArray[Any]

PLAIN, SCALED, POSTERIOR = range(3)  # what the edges of p weigh: see `walk.cu`
MAX_STATE = 11  # numbers of a state that a thread keeps in registers
MAX_TILE = 1 << 16  # rows
TABLES = ((20_000, 1 << 16), (5_000, 1 << 13), (0, 243))  # from so many rows: their lanes
MAX_CHUNKS = 256  # of channels, at a time
GRAPH_ROWS = 4096  # up to which all launches of a batch are kept as one graph
MAX_STAGED = 1 << 25  # bytes of a tile's codes, and of its roots, in memory of the host
MAX_SENT = 1 << 28  # bytes of rows as they are, at a time
MIN_TILES = 4  # of many rows, so that the host writes codes while the card walks
MIN_CELLS, MAX_PARTS = 1 << 18, 8  # of codes that a thread writes, and threads
WARP, BLOCK = 32, 256
MAX_OFFSET = 1 << 31  # pairs of numbers that a chunk's states take
ROWS_FIRST = 1  # which blocks follow one another: see `walk.cu`
MAX_ITEMS = 8  # of a level that a thread takes at most
MIN_BLOCKS = 2048  # a card should have at a time
MIN_LARGE_BLOCKS = 264  # that sum large sums: two on each multiprocessor of an H200
MIN_SIDE, SIDE, WIDEST_SIDE = 4, 128, 256  # lanes that a block takes side by side
MANY_LANES = 10_000  # from which blocks are wide, and what they read comes from far
MAX_GRID = 60_000  # blocks in the second direction

_kept = kept_on_card()  # pairs, by their plans


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
        pair = _card_pair(device, plan, algebra, per_edge, tables, weights, real)
        out = None if pair.too_small else pair.run(constants, tables)
        if out is None:
            pair.too_small = True  # remembered: the next call begins with exponents
            pair = _card_pair(device, plan, algebra, per_edge, tables, SCALED, real)
            out = pair.run(constants, tables)
            assert out is not None
        return out

    return [(root[0], root[1], root[2:]) for root in on_the_card(walk)]


def _card_pair(
    device: Device,
    plan: Plan,
    algebra: Any,
    per_edge: int,
    tables: StateTables,
    weights: int,
    real: str,
) -> CardPair:
    kept: dict[Any, CardPair] = _kept.setdefault(plan, {})
    n_states = tables.n_states
    limit = next(limit for rows, limit in TABLES if len(tables.evidence) >= rows)
    key = (id(device), type(algebra), tuple(algebra), n_states.tobytes(), limit, weights, real)
    if key not in kept:
        if len(kept) >= 16:  # evidence of ever new kinds
            kept.clear()
        kept[key] = CardPair(device, plan, algebra, per_edge, n_states, limit, weights, real)
    return kept[key]


def _channels(algebra: Any) -> int:
    """Count the channels that a thread takes at once."""
    head = width(algebra._replace(**{algebra._fields[-1]: 0}))
    per = width(algebra._replace(**{algebra._fields[-1]: 1})) - head
    return int(min(algebra[-1], max(1, (MAX_STATE - head) // per)))


class CardPair:
    """A pair on a device, for one algebra and evidence of so many states per variable."""

    def __init__(
        self,
        device: Device,
        plan: Plan,
        algebra: Any,
        per_edge: int,
        n_states: Ints,
        max_patterns: int,
        weights: int,
        real: str,
    ) -> None:
        self.device, self.plan, self.weights = device, plan, weights
        self.too_small = False
        channels = algebra[-1]
        self.channels = _channels(algebra) if channels else 0
        self.n_chunks = -(-channels // self.channels) if channels else 1
        self.head = width(algebra._replace(**{algebra._fields[-1]: 0}))
        self.width = width(algebra._replace(**{algebra._fields[-1]: self.channels}))
        self.whole_width = width(algebra)
        self.vectors = (self.width + 1) // 2
        self.real = np.dtype(np.float32 if real == "float" else np.float64)
        self.per_edge = self.channels * (per_edge // channels) if channels else 0
        self.run_size = 8 if self.width <= 2 else 4 if self.width <= 4 else 2
        large = max_patterns >= MANY_LANES
        options = {
            "REAL": real,
            "CODE": "unsigned char" if n_states.max(initial=1) <= 256 else "int",
            "WIDTH": self.width,
            "CHANNELS": self.channels,
            "CONSTANTS": self.per_edge,
            "WEIGHTS": weights,
            "BLOCKS": (5 if large else 4) if self.width <= 2 else 3 if self.width <= 4 else 2,
            "RUN": self.run_size,
            "AHEAD": 1 if large or self.width > 4 else 2,
            "ROWS_FIRST": ROWS_FIRST,
            "ORDER": algebra[0] if len(algebra) > 1 else 1,
        }
        self.code = np.dtype(np.uint8 if options["CODE"] == "unsigned char" else np.int32)
        text = kernel_text("expecta.engine.cuda", "walk.cu", cuda_text(algebra))
        self.kernels = device.compile(text, tuple((k, str(v)) for k, v in options.items()))
        self.layout = PairLayout.of(plan, n_states, max_patterns)
        none, one = (self.layout.layers(tile, self.vectors)[1:] for tile in (0, 1))
        self.sizes = none, (one[0] - none[0], one[1] - none[1])  # fixed, and per row
        self._put_lists()
        self.tile = self.chunks = 0
        nothing: Array = np.empty(0)
        self.readers: dict[Any, RowReader] = {}  # of rows on the card, by the type of their cells
        self.staged = [(nothing, nothing)] * 2  # of the host: for codes, and for roots
        self.in_tables: tuple[Array, ...] | None = None

    def _put_lists(self) -> None:
        """Copy what depends neither on rows nor on constants."""
        layout, plan = self.layout, self.plan

        def ints(array: Array) -> Any:
            return self.device.put(np.asarray(array, np.int32))

        self.terms = ints(layout.terms)
        self.edges = (
            ints(layout.edge_nodes),
            self.device.put(plan.p.mantissa),
            self.device.put(plan.p.exponent),
        )
        self.target, self.pair_p = ints(plan.p.target), ints(plan.pairs.pair_p)
        self.mix_half = ints(plan.pairs.mix_half)
        self.node_cell, self.pair_cell = (
            ints(layout.leaves.node_cell),
            ints(layout.leaves.pair_cell),
        )
        self.meetings = ints(layout.leaves.meetings)
        self.subtree_start = ints(layout.subtree_start)
        self.subtree_variables = ints(layout.subtree_variables)
        self.stages = []
        for stage in (layout.tables, layout.rows):
            records, starts = self._split_runs(stage)
            lists = [ints(stage.nodes.record), ints(records), starts]
            for sums in (stage.first, stage.late):
                lists += [ints(sums.record), ints(sums.node)]
            self.stages.append((stage, lists))

    def _split_runs(self, stage: Stage) -> tuple[Array, Ints]:
        """Cut runs to what a thread sums at once, and say where those of a level begin."""
        first, pairs, terms, edge, step = stage.runs.T
        parts = -(-pairs // self.run_size)
        which = np.repeat(np.arange(len(pairs)), parts)
        u = (np.arange(len(which)) - np.repeat(np.cumsum(parts) - parts, parts)) * self.run_size
        pair = first[which] + u
        layer = stage.run_layer[which]
        half = self.plan.pairs.mix_start[first[which]]
        count = np.minimum(self.run_size, pairs[which] - u)
        number = pair - self.plan.pairs.pair_start[layer]
        edge = edge[which] + u * step[which]
        columns = [layer, number, count, half, terms[which], edge, step[which], pair]
        return np.stack(columns, 1), np.cumsum([0, *parts])[stage.run_start]

    # -- memory -----------------------------------------------------------------------

    def _place(self, n: int, chunks: int, there: bool) -> None:
        """Take memory for tiles of rows and chunks of channels.

        Rows that are not on the card come in several tiles, if they are many.
        """
        if not there and n > GRAPH_ROWS:
            n = max(GRAPH_ROWS // 2, -(-n // MIN_TILES))
        if self.tile >= n and self.chunks >= chunks:
            return
        layout, size = self.layout, 2 * self.real.itemsize
        (fixed, _), (lane, lane_q) = self.sizes
        memory = self.device.memory
        per_row = lane * size + lane_q * 16 + 8 * (2 + self.width) + 4 * len(layout.frontier)
        wanted = min(-(-n // WARP) * WARP, MAX_TILE)
        most = min(memory // max(1, per_row), (MAX_OFFSET - fixed) // max(1, lane))
        tile = max(WARP, min(wanted, most // WARP * WARP))
        fits = memory // max(1, (fixed + lane * tile) * size + 8 * self.width * tile)
        chunks = max(1, min(chunks, fits, MAX_CHUNKS))
        if self.tile >= tile and self.chunks >= chunks:
            return
        self.tile, self.chunks = tile, chunks
        fields, states, probabilities = layout.layers(tile, self.vectors)
        put, empty = self.device.put, self.device.empty
        self.z_size = states
        self.Z = empty(2 * states * chunks, self.real)
        self.Q = empty(probabilities, np.float64)
        self.K = empty(probabilities if self.weights else 1, np.float64)
        self.maps = empty(len(layout.frontier) * tile, np.int32)
        self.out = empty((2 + chunks * self.width) * tile, np.float64)
        self.codes = empty(len(self.plan.cardinalities) * tile, self.code)
        self.flag = put(np.zeros(1, np.int32))
        self.layers = put(fields.astype(np.int32))
        leaves, stride = layout.leaves, layout.patterns
        layer, node, state = leaves.node.T
        self.node_to = put(fields[layer, Q_OUT] + node * stride[layer] + state)
        layer, pair, state, node = leaves.pair.T
        to = fields[layer, OUT] + pair * self.vectors * stride[layer] + state
        self.pair_to = put(np.stack([to, fields[layer, Q_OUT] + node * stride[layer] + state], 1))
        self.in_tables = None
        self.graphs: dict[Any, Any] = {}

    # -- launches ---------------------------------------------------------------------

    def _levels(self, which: int, lanes: int, chunks: int) -> None:
        """Launch the levels of the tables (0) or of the rows (1)."""
        levels = range(self.stages[which][0].n_levels)
        if self.weights == PLAIN and lanes <= GRAPH_ROWS:  # states do without probabilities

            def probabilities() -> None:
                for level in levels:
                    self._probabilities(which, level, lanes)

            self.device.beside(probabilities)
            for level in levels:
                self._states(which, level, lanes, chunks)
            self.device.join()
        else:
            for level in levels:
                self._probabilities(which, level, lanes)
                self._states(which, level, lanes, chunks)

    def _probabilities(self, which: int, level: int, lanes: int) -> None:
        """Launch q of the nodes of a level."""
        stage, (nodes, *_) = self.stages[which]
        i, q = np.int32, np.int64
        n = int(stage.lanes[level]) or lanes
        side = _side(n, 0)
        across = -(-n // side)
        a, b = (int(at) for at in stage.nodes.start[level : level + 2])
        if b > a:
            chunk, blocks = _blocks(b - a, across, BLOCK // side)
            self.device.launch(
                self.kernels["probabilities"],
                _grid(blocks, across, 1),
                (
                    self.layers,
                    nodes,
                    i(a),
                    i(b),
                    i(chunk),
                    *self.edges,
                    self.Q,
                    self.K,
                    self.maps,
                    q(self.tile),
                    i(n),
                    i(side.bit_length() - 1),
                    self.flag,
                ),
            )

    def _states(self, which: int, level: int, lanes: int, chunks: int) -> None:
        """Launch the states of the pairs of a level."""
        stage, (_, runs, run_start, *sums) = self.stages[which]
        i, q = np.int32, np.int64
        n = int(stage.lanes[level]) or lanes
        for phase, record, node in (
            (stage.first, sums[0], sums[1]),
            (stage.late, sums[2], sums[3]),
        ):
            self._sums(phase, level, record, node, n, chunks)
        side = _side(n, 0)
        across = -(-n // side)
        a, b = int(run_start[level]), int(run_start[level + 1])
        if b > a:
            self.device.launch(
                self.kernels["runs"],
                _grid(-(-(b - a) // (BLOCK // side)), across, chunks),
                (
                    self.layers,
                    runs,
                    i(a),
                    i(b),
                    self.mix_half,
                    self.pair_p,
                    self.Z,
                    q(self.z_size),
                    *self.edges,
                    self.Q,
                    self.K,
                    self.maps,
                    q(self.tile),
                    i(n),
                    i(side.bit_length() - 1),
                ),
            )

    def _sums(self, phase: Sums, level: int, record: Any, node: Any, n: int, chunks: int) -> None:
        """Launch the sums of one phase of a level."""
        i, q = np.int32, np.int64
        a, b = int(phase.small[level]), int(phase.small[level + 1])
        large = int(phase.large[level + 1] - phase.large[level])
        side = _side(n, large)
        across = -(-n // side)
        chunk, blocks = _blocks(b - a, across, BLOCK // side)
        if large + blocks:
            self.device.launch(
                self.kernels["states"],
                _grid(large + blocks, across, chunks),
                (
                    self.layers,
                    record,
                    node,
                    i(phase.large[level]),
                    i(large),
                    i(a),
                    i(b),
                    i(chunk),
                    self.terms,
                    self.constants,
                    q(self.c_size),
                    self.Z,
                    q(self.z_size),
                    *self.edges,
                    self.Q,
                    self.K,
                    self.maps,
                    q(self.tile),
                    i(n),
                    i(side.bit_length() - 1),
                ),
            )

    def _make_tables(self, states: StateTables, constants: list[Array]) -> None:
        """Compute all layers below the frontier, unless they are as they were."""
        old, chunks = self.in_tables, len(constants)
        new = (states.weight, states.exponent, *constants)
        if old and len(old) == len(new) and all(map(_same, old, new)):
            return
        device, kernels, i, q = self.device, self.kernels, np.int32, np.int64
        self.constants = device.put(np.stack(constants).astype(self.real))
        self.c_size = constants[0].size
        weights = device.put(np.concatenate([states.weight, states.exponent]))
        leaf = (self.target, *self.edges[1:], weights, q(len(states.weight)))
        n = len(self.layout.leaves.node)
        device.launch(
            kernels["leaf_probabilities"],
            (-(-n // BLOCK), 1, 1),
            (self.node_cell, self.node_to, i(n), *leaf, self.Q, self.K, self.flag),
        )
        n = len(self.layout.leaves.pair)
        if n:
            device.launch(
                kernels["leaf_states"],
                (-(-n // BLOCK), 1, chunks),
                (
                    self.pair_cell,
                    self.pair_to,
                    i(n),
                    self.meetings,
                    *leaf,
                    self.constants,
                    q(self.c_size),
                    self.Z,
                    q(self.z_size),
                    self.Q,
                    self.K,
                ),
            )
        self._levels(0, 0, chunks)
        mine = (part.copy() if part.flags.writeable else part for part in constants)
        self.in_tables = (*new[:2], *mine)
        self.graphs.clear()  # they hold the address of the constants

    def lanes(self, n: int) -> int:
        """Return for how many lanes rows are walked: few are rounded up, to share graphs."""
        if n <= WARP:
            return 1 << (n - 1).bit_length()
        step = max(WARP, 1 << (n - 1).bit_length() >> 4)  # a sixteenth to an eighth of the rows
        return n if n > GRAPH_ROWS else min(self.tile, -(-n // step) * step)

    def walk_rows(self, lanes: int, chunks: int) -> None:
        """Walk the rows whose codes are on the device."""
        kept = self.graphs if lanes <= GRAPH_ROWS else None
        key = (lanes, chunks)
        self.device.replay(kept, key, lambda: self._launch_rows(lanes, chunks))

    def _launch_rows(self, lanes: int, chunks: int) -> None:
        """Launch everything that rows need."""
        device, kernels, i, q = self.device, self.kernels, np.int32, np.int64
        layout, across = self.layout, -(-lanes // BLOCK)
        subtrees, where = len(layout.frontier), (self.maps, q(self.tile))
        device.launch(
            kernels["number"],
            (across, min(subtrees, 64), 1),
            (
                self.codes,
                q(lanes),
                i(lanes),
                self.subtree_start,
                self.subtree_variables,
                i(subtrees),
                *where,
            ),
        )
        self._levels(1, lanes, chunks)
        root = len(layout.patterns) - 1
        in_table = bool(layout.patterns[root])
        has_pair = len(self.plan.pairs.pair_p) > 0
        device.launch(
            kernels["finish"],
            (across, 1, chunks),
            (
                self.layers,
                i(root),
                i(0 if in_table else -1),
                self.Z,
                q(self.z_size),
                self.Q,
                self.K,
                *where,
                self.flag,
                self.out,
                q(lanes),
                i(lanes),
                i(has_pair),
            ),
        )

    # -- rows -------------------------------------------------------------------------

    def run(self, constants: Sequence[Callable[[], Floats]], states: StateTables) -> Any:
        """Return q, exponent and state of the root for each table of constants and row.

        None where a probability is too small to do without exponents. What is asked on the card
        is answered there.
        """
        rows, n = states.evidence, len(states.evidence)
        has_pair = len(self.plan.pairs.pair_p) > 0
        total = len(constants) * self.n_chunks if has_pair else 1
        per = self.width - self.head
        numbers = 2 + (self.whole_width if has_pair else 0)
        shape = len(constants), numbers, n
        reader = self._reader(rows) if isinstance(rows, RowsOnCard) else None
        there = reader is not None and reader.there
        out = self._empty_answer(shape) if there else np.empty(shape)
        copy = self.device.copy if there else np.copyto
        self._place(n, total, reader is not None)
        todo = self._chunks(constants)
        done = 0
        with Progress("rows", n * len(constants)) as progress:
            while done < total:
                group = list(islice(todo, self.chunks))
                self._make_tables(states, group)
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
                        table, chunk = divmod(done + k, self.n_chunks)
                        state = root[2 + k * self.width : 2 + (k + 1) * self.width]
                        at = 2 + self.head + chunk * per
                        copy(out[table, 2 : 2 + self.head, part], state[: self.head])
                        last = min(numbers, at + per)  # the last chunk may have channels to spare
                        copy(out[table, at:last, part], state[self.head : self.head + last - at])
                    progress.advance((part.stop - part.start) * len(group) // self.n_chunks)
                done += len(group)
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
            self.readers[cells.dtype] = RowReader(self.device, cells.dtype, cards, self.code)
        reader = self.readers[cells.dtype]
        reader.cells, reader.there = cells, rows.there
        return reader

    def _empty_answer(self, shape: tuple[int, int, int]) -> Any:
        size = int(np.prod(shape))
        return self.device.empty(size, np.float64)[:size].reshape(shape)

    def _is_too_small(self) -> bool:
        flag = np.empty(1, np.int32)
        self.device.get(self.flag, flag)
        return bool(flag[0])

    def _chunks(self, constants: Sequence[Callable[[], Floats]]) -> Iterator[Array]:
        """Yield g's constants for a few channels at a time.  # (edges, constants per edge)."""
        for table in constants:
            values = table()
            if self.n_chunks == 1 and values.shape[1] == self.per_edge:
                yield values
                continue
            wide = np.zeros((len(values), self.n_chunks * max(1, self.per_edge)))
            wide[:, : values.shape[1]] = values
            yield from np.moveaxis(wide.reshape(len(values), self.n_chunks, -1), 1, 0)

    def _roots(self, evidence: Evidence, chunks: int) -> Iterator[tuple[slice, Floats | None]]:
        """Walk tile after tile; a root holds until the one after the next is asked for.

        Codes of a tile are written while the card walks the one before.
        """
        begun: deque[tuple[slice, Floats, int]] = deque()
        n_variables, numbers = len(evidence.codes), 2 + chunks * self.width
        most = MAX_STAGED // max(n_variables * self.code.itemsize, 8 * numbers)
        step = min(self.tile, max(WARP, most // WARP * WARP))
        for slot, start in enumerate(range(0, len(evidence), step)):
            if len(begun) == 2:
                yield self._finished(*begun.popleft())
            part = slice(start, min(len(evidence), start + step))
            n = part.stop - start
            lanes = self.lanes(n)
            codes, root = self._staging(slot % 2, n_variables * lanes, numbers * lanes)
            _write_codes(evidence, part, codes.reshape(n_variables, lanes))

            def copy_and_walk(lanes: int = lanes, codes: Array = codes, root: Array = root) -> None:
                self.device.send(self.codes, codes)
                self._launch_rows(lanes, chunks)
                self.device.receive(root, self.out)

            kept = self.graphs if lanes <= GRAPH_ROWS else None
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
        numbers, n_rows = 2 + chunks * self.width, len(reader.cells)
        step = self.tile
        if not reader.there:
            most = MAX_SENT // max(1, reader.cells.itemsize * len(reader.cards))
            step = min(step, max(WARP, most // WARP * WARP))
        for start in range(0, n_rows, step):
            part = slice(start, min(n_rows, start + step))
            n = part.stop - start
            lanes = self.lanes(n)
            reader.write(self.codes, start, n, lanes)
            self.walk_rows(lanes, chunks)
            root = self.out[: numbers * lanes].reshape(numbers, lanes)
            if not reader.there:
                there, root = root, np.empty((numbers, lanes))
                self.device.get(there, root)
            yield part, root[:, :n]

    def _staging(self, slot: int, cells: int, numbers: int) -> tuple[Array, Array]:
        """Return memory of the host for codes and numbers, of which there are two pieces."""
        codes, out = self.staged[slot]
        if len(codes) < cells or len(out) < numbers:
            codes = self.device.staging(max(cells, len(codes)), self.code)
            out = self.device.staging(max(numbers, len(out)), np.float64)
            self.staged[slot] = codes, out
            self.graphs.clear()  # they hold its address
        return codes[:cells], out[:numbers]


def _same(one: Array, other: Array) -> bool:
    return one is other or np.array_equal(one, other)


def _write_codes(evidence: Evidence, part: slice, out: Array) -> None:
    """Write the codes of some rows, one variable after the other; lanes to spare are state 0."""
    n = part.stop - part.start
    out[:, n:] = 0

    def write(first: int, last: int) -> None:
        out[first:last, :n] = code_table(evidence, slice(first, last), part)

    parts = min(current().n_threads(), 1 + out.size // MIN_CELLS, MAX_PARTS)
    step = -(-len(out) // parts)
    run_on_threads(write, [(v, v + step) for v in range(0, len(out), step)], parts)


def _grid(items: int, across: int, chunks: int) -> tuple[int, int, int]:
    return (across, items, chunks) if ROWS_FIRST else (items, across, chunks)


def _side(lanes: int, large: int) -> int:
    """Return how many lanes a block takes side by side.

    Fewer where there are few large sums, so that more threads, and blocks, share each.
    """
    side = min(WIDEST_SIDE if lanes >= MANY_LANES else SIDE, 1 << (lanes - 1).bit_length())
    while side > MIN_SIDE and 0 < large * -(-lanes // side) < MIN_LARGE_BLOCKS:
        side //= 2
    return side


def _blocks(count: int, across: int, slots: int) -> tuple[int, int]:
    """Return how many items of a level a thread takes, and how many blocks that makes.

    Several, one after the other, save it the look at their layer; where there are few rows
    more threads are better.
    """
    chunk = 1
    while chunk < MAX_ITEMS and -(-count // (2 * chunk * slots)) * across >= MIN_BLOCKS:
        chunk *= 2
    while -(-count // (chunk * slots)) > MAX_GRID:
        chunk *= 2
    return chunk, -(-count // (chunk * slots))
