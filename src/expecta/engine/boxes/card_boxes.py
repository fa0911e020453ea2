"""Compute the expectation of a sum of boxes on a card: what :mod:`.box_recursion` does here.

A block of threads takes a row. The memory that a row needs depends on how many boxes its known
values leave alive, so that many blocks have a little each at first; rows that need more go again,
with fewer blocks. ``boxes.cu`` has the kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DeviceError
from expecta.common.progress import Progress
from expecta.engine.boxes.box_layout import Mixing, Parts
from expecta.engine.boxes.box_recursion import SMALL_PROBABILITY
from expecta.engine.cuda.card_work import kept_on_card, on_the_card
from expecta.engine.cuda.devices import Device, kernel_text

Array = npt.NDArray[Any]

MAX_BOXES = 1 << 20  # whose numbers fit into a key of the hash table
MAX_BLOCKS = 528  # at a time: four on each multiprocessor of an H200
FEWER_BLOCKS = 8  # by which blocks are divided for rows that need more memory
NEAR = 2048  # slots of a hash table in shared memory, and products there: see boxes.cu
HALVES = 2048
MAX_TILE = 1 << 16  # rows
MAX_STAMPS = 1 << 24  # of a block: one for each row and vtree node

_kept = kept_on_card()  # sums of boxes, by what they were compiled for


def boxes_on_card(
    compiled: object, p: Mixing, parts: Parts, value: Floats, prior: Floats, at: Ints, rows: Ints
) -> Floats:
    """Return the expectation for rows of codes.  # (rows, outputs).

    What depends on the boxes alone stays on the card as long as ``compiled`` lives.
    """

    def work(device: Device) -> Floats:
        kept = _kept.setdefault(compiled, {})
        if id(device) not in kept:
            kept[id(device)] = CardBoxes(device, p, parts, value, prior, at)
        answer: Floats = kept[id(device)](rows)
        return answer

    return on_the_card(work)


class CardBoxes:
    """A sum of boxes and its circuit, on a device."""

    def __init__(
        self, device: Device, p: Mixing, parts: Parts, value: Floats, prior: Floats, at: Ints
    ) -> None:
        self.device, self.outputs = device, value.shape[1]
        n, self.n_boxes = len(p.order), len(value)
        counts, self.n_layers = np.diff(parts.start), n
        box_part = _parts_of_boxes(p, parts, self.n_boxes)
        layers, edges = _layers(p, at)
        put = device.put
        masks = [_masks(p, parts, box_part, int(v)) for v in np.flatnonzero(p.variable >= 0)]
        variable = p.variable[p.variable >= 0]
        self.n_variables = len(variable)
        mask_at = np.empty(len(variable), np.int64)
        mask_at[variable] = np.cumsum([0, *(mask.size for mask in masks)])[:-1]
        self.words = masks[0].shape[1]
        cards = np.array([len(mask) for mask in masks])
        self.code = np.dtype(np.int16 if cards.max() < 1 << 15 else np.int32)
        self.lists = (
            put(layers),
            np.int32(n),
            put(np.stack([p.left, p.right], 1).astype(np.int32)),
            put(p.weight),
            *(put(part) for part in edges),
            put(_leaf_vectors(p)),
            put(prior),
            put(box_part[p.order]),
            np.int32(self.n_boxes),
            put(np.concatenate([mask.reshape(-1) for mask in masks])),
            put(mask_at),
            np.int32(self.words),
            put(value),
            np.int32(self.outputs),
        )
        text = kernel_text("expecta.engine.boxes", "boxes.cu")
        options = {
            "REAL": "double",
            "CODE": "short" if self.code == np.int16 else "int",
            "NEAR": NEAR,
            "HALVES": HALVES,
            "SMALL": SMALL_PROBABILITY,
        }
        given = tuple((name, str(option)) for name, option in options.items())
        self.kernel = device.compile(text, given)["expect_boxes"]
        least = max(64, 1 << (2 * self.n_boxes - 1).bit_length())
        self.slots = least if least > NEAR else 0
        self.fixed = 3 * n + self.slots + (self.slots + self.n_boxes + 1) // 2  # numbers of 8 bytes
        above = p.variable < 0
        vectors = np.minimum(counts, self.n_boxes)[above] * p.n_nodes[above]
        self.most_room = int(vectors.sum()) + int(above.sum()) * 2 * (self.n_boxes + 1)

    def __call__(self, rows: Ints) -> Floats:
        """Compute the expectation for rows of codes.  # (rows, outputs)."""
        out = np.empty((len(rows), self.outputs + 1))
        todo, blocks = np.arange(len(rows)), MAX_BLOCKS
        with Progress("rows", len(rows)) as progress:
            while len(todo):
                room = min(self.most_room, self.device.memory // (8 * blocks) - self.fixed)
                if room > 0:
                    out[todo] = self._tiles(rows[todo], blocks, room)
                    short = out[todo, -1] == 0.0
                    progress.advance(int(np.sum(~short)))
                    todo = todo[short]
                if len(todo) and blocks == 1:
                    raise DeviceError("boxes need more memory than the card has; use device='cpu'")
                blocks = max(1, blocks // FEWER_BLOCKS)
        return out[:, :-1]

    def _tiles(self, rows: Ints, blocks: int, room: int) -> Floats:
        """Compute outputs and whether the room was enough.  # (rows, outputs + 1)."""
        device, n, stride = self.device, len(rows), self.fixed + room
        blocks = min(blocks, n)
        tile = min(n, MAX_TILE, blocks * (MAX_STAMPS // self.n_layers - 1))
        codes = device.empty(tile * self.n_variables, self.code)
        to = device.empty(tile * (self.outputs + 1), np.float64)
        scratch = device.empty(blocks * stride, np.float64)
        out = np.empty((n, self.outputs + 1))
        for first in range(0, n, tile):
            part = rows[first : first + tile]
            device.fill(codes, np.ascontiguousarray(part, self.code))
            arguments = (codes, np.int32(self.n_variables), np.int32(len(part)), scratch)
            sizes = (np.int64(stride), np.int64(self.slots), np.int64(room), to)
            grid = (min(blocks, len(part)), 1, 1)
            device.launch(self.kernel, grid, (*self.lists, *arguments, *sizes))
            device.get(to, out[first : first + len(part)])
        return out


def _parts_of_boxes(p: Mixing, parts: Parts, n_boxes: int) -> Array:
    """Return the part that each box has of each layer.  # (layers, boxes)."""
    out = np.empty((len(p.order), n_boxes), np.int32)
    out[p.order[-1]] = np.arange(n_boxes)
    for v in p.order[::-1].tolist():
        if p.variable[v] < 0:
            part = parts.start[v] + out[v]
            out[p.tree_left[v]], out[p.tree_right[v]] = parts.left[part], parts.right[part]
    return out


def _masks(p: Mixing, parts: Parts, box_part: Array, leaf: int) -> Array:
    """Write which boxes each value of a leaf leaves alive, as bits.  # (values, words)."""
    cards = int(p.leaf_at[leaf + 1] - p.leaf_at[leaf]) // int(p.n_nodes[leaf])
    first, last = parts.start[leaf : leaf + 2]
    change = np.zeros((last - first, cards + 1), np.int64)
    runs = slice(parts.run_at[first], parts.run_at[last])
    part = np.repeat(np.arange(last - first), np.diff(parts.run_at[first : last + 1]))
    np.add.at(change, (part, parts.low[runs]), 1)
    np.add.at(change, (part, parts.high[runs]), -1)
    allowed = np.cumsum(change, axis=1)[:, :-1] > 0
    words = -(-box_part.shape[1] // 32)
    out = np.zeros((cards, 4 * words), np.uint8)
    for value in range(cards):
        bits = np.packbits(allowed[box_part[leaf], value], bitorder="little")
        out[value, : len(bits)] = bits
    return out.view("<u4")


def _layers(p: Mixing, at: Ints) -> tuple[Array, tuple[Array, Array, Array]]:
    """Write the layers, children first, and the edges of p by node: starts, elements, weights."""
    n = len(p.order)
    position = np.empty(n, np.int64)
    position[p.order] = np.arange(n)
    leaf = p.variable >= 0
    height = np.diff(p.element_at)
    node_start = np.append(0, np.cumsum(p.n_nodes))
    weights = np.where(
        p.dense, p.weight_at[p.run_at[np.minimum(p.element_at[:-1], len(p.left))]], -1
    )
    fields = [
        p.variable,
        np.where(leaf, -1, position[p.tree_left]),
        np.where(leaf, -1, position[p.tree_right]),
        p.n_nodes,
        height,
        p.element_at[:-1],
        weights,
        node_start[:-1],
        at[:-1],
        p.leaf_at[:-1],
    ]
    runs = np.diff(p.weight_at)
    run = np.repeat(np.arange(len(runs)), runs)
    element = np.repeat(np.arange(len(p.left)), np.diff(p.run_at))[run]
    layer = np.repeat(np.arange(n), height)[element]
    node = node_start[layer] + p.run_node[run] + np.arange(len(run)) - p.weight_at[run]
    by_node = np.argsort(node, kind="stable")
    edges = (
        np.searchsorted(node[by_node], np.arange(node_start[-1] + 1)).astype(np.int32),
        (element - p.element_at[layer])[by_node].astype(np.int32),
        p.weight[by_node],
    )
    return np.stack(fields, 1)[p.order].astype(np.int64), edges


def _leaf_vectors(p: Mixing) -> Array:
    """Return the weights at leaves, those of a value made larger where all of them are small."""
    out = p.leaf.copy()
    for v in np.flatnonzero(p.variable >= 0).tolist():
        values = out[p.leaf_at[v] : p.leaf_at[v + 1]].reshape(-1, int(p.n_nodes[v]))
        most = values.max(axis=1, keepdims=True)
        values /= np.where((most > 0.0) & (most < SMALL_PROBABILITY), most, 1.0)
    return out
