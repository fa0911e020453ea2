"""Sum over the points of rows on a card what :mod:`.quasi_sampling` sums here: the same points."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DeviceError
from expecta.common.row_random import Words
from expecta.engine.cuda.card_work import kept_on_card, on_the_card
from expecta.engine.cuda.devices import Device, kernel_text
from expecta.engine.passes.card_draws import CardCircuit
from expecta.expected.leaf_masks import LeafMasks

LINKS = {"identity": 0, "exp": 1, "logistic": 2, "softmax": 3, "one-vs-rest": 4}
MAX_MARGINS = 32
BLOCKS = 4  # on a multiprocessor at a time
MAX_BLOCKS = 528  # on all of an H200's
DRAWS_PER_BLOCK = 1024
MAX_SUMS = 1 << 28  # bytes of sums at a time

_kept = kept_on_card()  # sums of trees and their densities, by the trees


class RowPoints(NamedTuple):
    """Rows, and which points of each are asked for."""

    codes: Ints
    keys: Words
    net: Words
    points: Ints  # from which on and up to which of the net  # (rows, 2)
    n_replicates: int
    centre: Floats  # (rows, outputs)
    expected: Floats  # (rows, margins)


def points_on_card(
    circuit: ProbabilisticCircuit, trees: LeafMasks, link: str, asked: RowPoints
) -> tuple[Floats, Floats]:
    """Return sums over some points of each row.  # (replicates, ..., rows), (..., rows).

    The first are of y (outputs less ``centre``) and b (margins less ``expected``), by replicate;
    then those of y², b y and b b, of all. The circuit and the trees stay on the card as long as
    the trees live.
    """

    def work(device: Device) -> tuple[Floats, Floats]:
        kept: dict[Any, CardPoints] = _kept.setdefault(trees, {})
        outputs = asked.centre.shape[1]
        key = id(device), id(circuit), link, outputs
        if key not in kept:
            kept.clear()
            kept[key] = CardPoints(device, circuit, trees, link, outputs)
        return kept[key](asked)

    return on_the_card(work)


class CardPoints:
    """A function of a sum of trees, and the density of its inputs, on a device."""

    def __init__(
        self,
        device: Device,
        circuit: ProbabilisticCircuit,
        trees: LeafMasks,
        link: str,
        outputs: int,
    ) -> None:
        self.device, self.of = device, circuit  # which is kept alive, as it is known by its id
        self.margins, self.outputs = len(trees.bias), outputs
        self.n_groups = trees.words.shape[1]
        self.circuit = CardCircuit(device, circuit)
        options = {
            "REAL": "double",
            "CODE": "short" if self.circuit.code == np.int16 else "int",
            "SCALED": int(self.circuit.scaled),
            "MARGINS": self.margins,
            "OUTPUTS": outputs,
            "LINK": LINKS[link],
            "BLOCKS": BLOCKS,
        }
        draws = (files("expecta.engine.passes") / "draws.cu").read_text("utf-8")
        text = kernel_text("expecta.expected", "points.cu", draws)
        kernels = device.compile(text, tuple((k, str(v)) for k, v in options.items()))
        self.kernel, self.add = kernels["add_points"], kernels["add_replicates"]
        self.circuit.sum_leaves(device, kernels["sum_leaves"])
        groups = [trees.value_at, trees.output, trees.width, trees.split]
        self.lists = (
            *self.circuit.lists,
            device.put(trees.words.T),
            device.put(trees.start.astype(np.int64)),
            np.int32(len(trees.words)),
            device.put(np.stack(groups, 1).astype(np.int32)),
            np.int32(self.n_groups),
            device.put(trees.value),
            device.put(trees.bias),
        )

    def __call__(self, asked: RowPoints) -> tuple[Floats, Floats]:
        """Return what :func:`points_on_card` does."""
        codes, keys, net, points, n_replicates, centre, expected = asked
        device, i = self.device, np.int32
        n, n_variables = codes.shape
        m, k = self.margins, self.outputs
        n_products = k + m * (k + m)
        first_sums, products = np.empty((n_replicates, k + m, n)), np.empty((n_products, n))
        tile = max(1, min(n, MAX_SUMS // (8 * n_replicates * (k + m + n_products))))
        sums = [
            device.empty(tile * size, np.float64)
            for size in (n_replicates * (k + m), n_replicates * n_products, n_products)
        ]
        words = device.put(net.astype(np.uint32))
        for first in range(0, n, tile):
            some = slice(first, min(n, first + tile))
            items, room = _items(points[some], n_replicates)
            stride = self._room(room, n_variables)
            blocks = min(MAX_BLOCKS, len(items), device.memory // (8 * stride))
            if blocks < 1:
                raise DeviceError("draws need more memory than the card allows; use device='cpu'")
            device.launch(
                self.kernel,
                (blocks, 1, 1),
                (
                    *self.lists,
                    device.put(codes[some].astype(self.circuit.code)),
                    i(n_variables),
                    i(some.stop - first),
                    device.put(keys[some]),
                    device.put(centre[some]),
                    device.put(expected[some]),
                    words,
                    device.put(items),
                    i(len(items)),
                    device.put(points[some].astype(i)),
                    i(room),
                    device.empty(blocks * stride, np.float64),
                    np.int64(stride),
                    *sums[:2],
                ),
            )
            size = n_products * (some.stop - first)
            given = sums[1], i(n_replicates), np.int64(size), sums[2]
            device.launch(self.add, (-(-size // 256), 1, 1), given)
            device.get(sums[0], first_sums[..., some])
            device.get(sums[2], products[:, some])
        return first_sums, products

    def _room(self, draws: int, n_variables: int) -> int:
        """Count the numbers of 8 bytes that a block needs: see points.cu."""
        numbers, halves = self.circuit.numbers
        numbers += 2 * self.n_groups + self.margins * (draws + max(draws, 256))
        numbers += self.outputs * draws
        halves += 3 * n_variables + self.n_groups + self.circuit.n_layers * draws
        return numbers + -(-halves // 2)


def _items(points: Ints, n_replicates: int) -> tuple[Ints, int]:
    """Divide the replicates of rows among blocks; return the most completions at once, too.

    How depends on the number of points alone, so that a row has the same bits whatever else is
    asked. Blocks with the most work come first.  # (blocks, 4): see points.cu
    """
    count = points[:, 1] - points[:, 0]
    parts = np.clip(-(-n_replicates * count // DRAWS_PER_BLOCK), 1, n_replicates)
    each = -(-n_replicates // parts)
    at_once = np.clip(DRAWS_PER_BLOCK // each, 1, count)
    row = np.repeat(np.arange(len(count)), parts)
    part = np.arange(len(row)) - np.repeat(np.cumsum(parts) - parts, parts)
    ends = [n_replicates * (part + which) // parts[row] for which in (0, 1)]
    items = np.stack([row, *ends, at_once[row]], 1).astype(np.int32)
    order = np.argsort(-(count * each)[row], kind="stable")
    return items[order], int((each * at_once).max())
