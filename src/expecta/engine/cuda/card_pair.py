"""Hold a compiled pair on a card: its lists, memory for tiles of rows, and a walk's launches."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Ints
from expecta.engine.algebras import cuda_text, width
from expecta.engine.cuda.devices import Device, kernel_text
from expecta.engine.cuda.pair_layout import OUT, Q_OUT, PairLayout, Stage, Sums
from expecta.engine.plan import Plan
from expecta.engine.state_tables import StateTables

Array = npt.NDArray[Any]

PLAIN, SCALED, POSTERIOR = range(3)  # what the edges of p weigh: see `walk.cu`
MAX_STATE = 11  # numbers of a state that a thread keeps in registers
MAX_TILE = 1 << 16  # rows
MAX_CHUNKS = 256  # of channels, at a time
GRAPH_ROWS = 4096  # up to which all launches of a batch are kept as one graph
MIN_TILES = 4  # of many rows, so that the host writes codes while the card walks
WARP, BLOCK = 32, 256
MAX_OFFSET = 1 << 31  # pairs of numbers that a chunk's states take
ROWS_FIRST = 1  # which blocks follow one another: see `walk.cu`
MAX_ITEMS = 8  # of a level that a thread takes at most
MIN_BLOCKS = 2048  # a card should have at a time
MIN_LARGE_BLOCKS = 264  # that sum large sums: two on each multiprocessor of an H200
MIN_SIDE, SIDE, WIDEST_SIDE = 4, 128, 256  # lanes that a block takes side by side
MANY_LANES = 10_000  # from which blocks are wide, and what they read comes from far
MAX_GRID = 60_000  # blocks in the second direction


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
            "AHEAD": 1 if large or self.width > 2 else 2,
            "ROWS_FIRST": ROWS_FIRST,
            "ORDER": algebra[0] if len(algebra) > 1 else 1,
        }
        self.code = np.dtype(np.uint8 if options["CODE"] == "unsigned char" else np.int32)
        text = kernel_text("expecta.engine.cuda", "walk.cu", cuda_text(algebra))
        self.kernels = device.compile(text, tuple((k, str(v)) for k, v in options.items()))
        self.layout = PairLayout.of(plan, n_states, max_patterns)
        none, one = (self.layout.layers(tile, self.vectors)[1:] for tile in (0, 1))
        self.sizes = none, (one[0] - none[0], one[1] - none[1])  # fixed, and per row
        self.table_bytes = 2 * self.real.itemsize * none[0] + 16 * none[1]
        self._put_lists()
        self.tile = self.chunks = 0
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

    def place(self, n: int, chunks: int, there: bool) -> None:
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

    def _of_lanes(self, n: int, side: int) -> tuple[Any, ...]:
        """Return what kernels of a level share: the weights of p, and which lanes a block has."""
        i, q = np.int32, np.int64
        weights = (*self.edges, self.Q, self.K)
        return *weights, self.maps, q(self.tile), i(n), i(side.bit_length() - 1)

    def _probabilities(self, which: int, level: int, lanes: int) -> None:
        """Launch q of the nodes of a level."""
        stage, (nodes, *_) = self.stages[which]
        i = np.int32
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
                    *self._of_lanes(n, side),
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
                    *self._of_lanes(n, side),
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
                    *self._of_lanes(n, side),
                ),
            )

    def make_tables(self, states: StateTables, constants: list[Array]) -> bool:
        """Compute all layers below the frontier, unless they are as they were.

        Returns whether tables of something else were there.
        """
        old, chunks = self.in_tables, len(constants)
        new = (states.weight, states.exponent, *constants)
        if old and len(old) == len(new) and all(map(_same, old, new)):
            return False
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
        return old is not None

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
        self.device.replay(kept, key, lambda: self.launch_rows(lanes, chunks))

    def launch_rows(self, lanes: int, chunks: int) -> None:
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


def _channels(algebra: Any) -> int:
    """Count the channels that a thread takes at once."""
    head = width(algebra._replace(**{algebra._fields[-1]: 0}))
    per = width(algebra._replace(**{algebra._fields[-1]: 1})) - head
    return int(min(algebra[-1], max(1, (MAX_STATE - head) // per)))


def _same(one: Array, other: Array) -> bool:
    return one is other or np.array_equal(one, other)


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
