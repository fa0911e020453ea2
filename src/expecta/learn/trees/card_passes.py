"""Pass messages through a tree on a card: what :mod:`.messages` does here, with the same results.

Nodes of one height go together: two launches per height on the way up, one on the way down.
First the patterns that rows share go up, then rows in tiles go up and down, and then what they
brought to the patterns goes down from there. ``messages.cu`` has the kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.settings import current
from expecta.engine.cuda.card_work import kept_on_card, on_the_card
from expecta.engine.cuda.devices import Device, kernel_text
from expecta.learn.trees.card_tree import CardTree
from expecta.learn.trees.layout import TreeLayout

BLOCK, SIDE = 256, 64  # threads, and lanes of a product: see messages.cu
MAX_TILE = 1 << 15  # rows
MAX_COUNT_PARTS, MAX_SUM_PARTS = 16, 64  # of a tile's rows, each added up by itself
PART_ROWS = 256  # at least
ENOUGH_BLOCKS = 512  # to keep a card busy
FLOORS = {"double": 2.0**-64, "float": 2.0**-8}  # λ below it is scaled

_kept = kept_on_card()  # tables on the card, by their rows


class CardRows:
    """A table of rows, its patterns and its tree, copied to a device."""

    def __init__(self, device: Device, tree: CardTree, weight: Floats) -> None:
        self.tree, self.host_weight = tree, weight
        self.code = np.dtype(np.int16 if tree.codes.max(initial=0) < 1 << 15 else np.int32)
        self.codes = device.put(tree.codes.astype(self.code))
        self.patterns = device.put(tree.pattern_codes)
        self.links = device.put(tree.links)
        self.lists = device.put(tree.nodes_by_level)
        self.weight = device.put(weight.astype(np.float64))


def passes_on_card(
    layout: TreeLayout, theta: Floats, table: Any, rows: Ints, *, learn: bool
) -> tuple[Floats, Floats]:
    """Return expected counts, laid out like θ, and the rows' log-likelihoods.

    ``table`` is a `TreeRows`. There are no counts unless ``learn``. Cost: that of the passes here,
    and copies of θ and of the counts.
    """

    def work(device: Device) -> tuple[Floats, Floats]:
        kept = _kept.setdefault(table, {})
        if id(device) not in kept:
            tree = CardTree.of(table.tree, table.patterns, table.columns)
            kept[id(device)] = CardRows(device, tree, table.weight)
        real = "float" if current().precision == "float32" else "double"
        return _CardPass(device, layout, theta, kept[id(device)], real).run(rows, learn)

    return on_the_card(work)


class _CardPass:
    """One pass over rows, up or up and down, with the parameters of one moment."""

    def __init__(
        self, device: Device, layout: TreeLayout, theta: Floats, table: CardRows, real: str
    ) -> None:
        self.device, self.layout, self.table, self.tree = device, layout, table, table.tree
        self.real = np.dtype(np.float32 if real == "float" else np.float64)
        most = int(layout.states.max())
        per_lane = min(BLOCK, _power_of_two(most, 4))
        options = {
            "REAL": real,
            "CODE": "short" if table.code == np.int16 else "int",
            "PER_LANE": per_lane,
            "HELD": -(-most // per_lane),
            "PER_BIN": min(BLOCK, _power_of_two(most, 1)),
            "FLOOR": FLOORS[real],
        }
        self.lanes_per_block = BLOCK // per_lane
        self.bins_per_block = BLOCK // int(options["PER_BIN"])
        text = kernel_text("expecta.learn.trees", "messages.cu")
        self.kernels = device.compile(text, tuple((k, str(v)) for k, v in options.items()))
        self.theta = device.put(theta.astype(self.real, copy=False))
        self.up_tiles = self._tiles(layout.above)
        self.down_tiles = self._tiles(layout.states)
        self.count_tiles = self._tiles(layout.above, layout.states)

    def _tiles(self, *sides: Ints) -> tuple[Any, Ints]:
        """List the parts of the products of each level's nodes, and where levels begin."""
        nodes, (down, right) = self.tree.nodes_by_level, (*sides, np.ones_like(sides[0]))[:2]
        n_down, n_right = -(-down[nodes] // SIDE), -(-right[nodes] // SIDE)
        n = n_down * n_right
        end = np.cumsum(n)
        number = np.arange(end[-1]) - np.repeat(end - n, n)
        columns = [np.repeat(nodes, n), number // np.repeat(n_right, n) * SIDE]
        if len(sides) == 2:
            columns += [number % np.repeat(n_right, n) * SIDE, np.zeros_like(number)]
        starts = np.append(0, end)[self.tree.level_start]
        return self.device.put(np.stack(columns, 1).astype(np.int32)), starts

    # -- memory -----------------------------------------------------------------------

    def _place(self, n_rows: int, learn: bool) -> None:
        """Take memory for the messages of all patterns and of a tile of rows, and for sums."""
        layout, tree, item = self.layout, self.tree, self.real.itemsize
        k, above = layout.states.astype(np.int64), layout.above.astype(np.int64)
        per_lane = (2 * k + above) * item + 8
        own = ~tree.shared
        memory = 2 * self.device.memory
        down_start = np.cumsum(np.append(0, np.where(own, 0, tree.n_patterns * above)))
        leaf_size = int(layout.leaf_start[-1])
        self.sizes = int(layout.a_start[-1]), leaf_size + int(down_start[-1])
        tiles = int(self.count_tiles[1][-1])
        wanted = min(MAX_COUNT_PARTS, -(-ENOUGH_BLOCKS // max(1, tiles)))
        self.parts = [
            max(1, min(most, n_rows // PART_ROWS, memory // 8 // (8 * size)))
            for most, size in zip((wanted, MAX_SUM_PARTS), self.sizes, strict=True)
        ]
        fixed = int((tree.n_patterns * per_lane)[~own].sum())
        fixed += sum(8 * p * size for p, size in zip(self.parts, self.sizes, strict=True)) * learn
        fits = (memory - fixed) // max(1, int(per_lane[own].sum())) // SIDE * SIDE
        self.tile = max(SIDE, min(fits, MAX_TILE, -(-n_rows // SIDE) * SIDE))

        n_lanes = np.where(own, self.tile, tree.n_patterns)
        lam = np.append(0, np.cumsum(n_lanes * k))
        message = np.append(0, np.cumsum(n_lanes * above))
        scale = np.append(0, np.cumsum(n_lanes))
        fields = [
            k,
            above,
            np.where(own, -1, tree.n_patterns),
            lam[:-1],
            lam[-1] + message[:-1],
            lam[-1] + message[-1] + lam[:-1],
            scale[:-1],
            layout.a_start[:-1],
            layout.b_start[:-1],
            layout.cardinalities,
            tree.link_start[:-1],
            tree.link_start[1:],
            tree.value_map,
            leaf_size + down_start[:-1],
        ]
        device = self.device
        self.nodes = device.put(np.stack(fields, 1).astype(np.int64))
        to = np.append(layout.leaf_start[:-1], leaf_size + down_start[:-1])[tree.bin_to]
        self.bins = device.put(np.column_stack([tree.bins, to]))
        self.down_root = leaf_size + int(down_start[-2])
        self.work = device.empty(int(2 * lam[-1] + message[-1]), self.real)
        self.scale = device.empty(int(scale[-1]), np.float64)
        self.rows = device.empty(self.tile, np.int32)
        self.out = device.empty(self.tile, np.float64)
        if learn:
            self.counts, self.sums = (
                device.empty(parts * size, np.float64)
                for parts, size in zip(self.parts, self.sizes, strict=True)
            )

    # -- passes -----------------------------------------------------------------------

    def run(self, rows: Ints, learn: bool) -> tuple[Floats, Floats]:
        """Pass over rows; return the counts and the log-likelihoods."""
        tree, device, i = self.tree, self.device, np.int32
        self._place(len(rows), learn)
        if learn:
            for sums in (self.counts, self.sums):
                n = int(np.prod(sums.shape))
                self._launch("clear", -(-n // BLOCK), 1, sums, np.int64(n))
        for level in tree.shared_levels:
            self._up(level, tree.most_patterns)
        out = np.empty(len(rows))
        for first in range(0, len(rows), self.tile):
            part = rows[first : first + self.tile]
            device.fill(self.rows, part.astype(np.int32))
            for level in tree.row_levels:
                self._up(level, len(part))
            down = learn and tree.root_map < 0
            self._launch(
                "likelihoods",
                -(-len(part) // BLOCK),
                1,
                self.nodes,
                i(len(tree.shared) - 1),
                np.int64(tree.root_map),
                self.work,
                self.scale,
                self.table.codes,
                np.int64(tree.n_rows),
                self.rows,
                i(len(part)),
                self.table.weight,
                i(down),
                self.out,
            )
            if down:
                self._rows_down(len(part))
            device.get(self.out, out[first : first + len(part)])
        if not learn:
            return np.empty(0), out
        self._patterns_down(rows)
        counts = np.empty(self.layout.size)  # in place: they may be gigabytes
        self._total(self.counts, 0, counts[: self.sizes[0]])
        values = np.empty(int(self.layout.leaf_start[-1]))
        self._total(self.sums, 1, values)
        counts[self.sizes[0] :] = values[self.layout.value_index]
        return counts, out

    def _up(self, level: int, lanes: int) -> None:
        tree, table = self.tree, self.table
        a, b = tree.level_start[level : level + 2]
        nodes = (self.nodes, table.links, table.lists, np.int32(a), self.theta)
        across = -(-lanes // self.lanes_per_block)
        self._launch("up", b - a, across, *nodes, self.work, self.scale, *self._looks(lanes))
        tiles, start = self.up_tiles
        a, b = start[level : level + 2]
        lists = (self.nodes, tiles, np.int32(a), self.theta, self.work, np.int32(lanes))
        self._launch("pass_up", b - a, -(-lanes // SIDE), *lists)

    def _looks(self, lanes: int) -> tuple[Any, ...]:
        """Return what lanes are looked up in."""
        table = self.table
        n_rows = np.int64(self.tree.n_rows)
        return table.patterns, table.codes, n_rows, self.rows, np.int32(lanes)

    def _down(self, level: int, lanes: int) -> None:
        tiles, start = self.down_tiles
        a, b = start[level : level + 2]
        lists = (self.nodes, self.table.links, tiles, np.int32(a), self.theta, self.work)
        self._launch("pass_down", b - a, -(-lanes // SIDE), *lists, np.int32(lanes))

    def _add(self, levels: range, lanes: int, count_parts: int, sum_parts: int) -> None:
        """Add up counts, values, and what goes down to patterns."""
        if not len(levels):
            return
        first, last = levels[0], levels[-1] + 1
        tiles, start = self.count_tiles
        a, b = int(start[first]), int(start[last])
        lists = (self.nodes, tiles, np.int32(a), self.work, np.int32(lanes), self.counts)
        self._launch("count", b - a, count_parts, *lists, np.int64(self.sizes[0]))
        a, b = (int(self.tree.bin_start[level]) for level in (first, last))
        lists = (self.nodes, self.bins, np.int32(a), self.work, *self._looks(lanes))
        sums = (np.int32(sum_parts), self.sums, np.int64(self.sizes[1]))
        self._launch("collect", b - a, -(-sum_parts // self.bins_per_block), *lists, *sums)

    def _rows_down(self, lanes: int) -> None:
        levels = self.tree.row_levels
        for level in reversed(levels):
            self._down(level, lanes)
        self._add(levels, lanes, *self.parts)

    def _patterns_down(self, rows: Ints) -> None:
        """Send posteriors down through the shared nodes, all rows of a pattern at once."""
        tree, lanes = self.tree, self.tree.most_patterns
        sums, shift, parts = self.sums, 0, self.parts[1]
        if tree.root_map >= 0:  # every node is shared: the weights of a pattern's rows
            codes = tree.codes[tree.root_map][rows]
            weight = np.bincount(codes, self.table.host_weight[rows], int(tree.n_patterns[-1]))
            sums, shift, parts = self.device.put(weight), self.down_root, 1
        for level in reversed(tree.shared_levels):
            a, b = tree.level_start[level : level + 2]
            across = -(-lanes * int(self.layout.above.max()) // BLOCK)
            lists = (self.nodes, self.table.lists, np.int32(a), self.work, sums)
            size = np.int64(self.sizes[1])
            self._launch("arrive", b - a, across, *lists, size, np.int32(parts), np.int64(shift))
            self._down(level, lanes)
            self._add(range(level, level + 1), lanes, 1, 1)
            sums, shift, parts = self.sums, 0, self.parts[1]

    def _total(self, sums: Any, which: int, out: Floats) -> None:
        """Add up the parts of sums; those of transitions are multiplied by θ."""
        n, to = len(out), self.device.empty(len(out), np.float64)
        parts = (np.int64(self.sizes[which]), np.int32(self.parts[which]))
        times = (self.theta, np.int32(which == 0), np.int64(n))
        self._launch("total", -(-n // BLOCK), 1, sums, *parts, *times, to)
        self.device.get(to, out)

    def _launch(self, name: str, across: int, down: int, *arguments: Any) -> None:
        self.device.launch(self.kernels[name], (int(across), int(down), 1), arguments)


def _power_of_two(n: int, share: int) -> int:
    """Return the least power of two that is at least n / share."""
    return 1 << max(0, -(-n // share) - 1).bit_length()
