"""Evaluate sums of trees on complete rows: a bit per leaf, and one word per tree and value.

Of each variable's each value a word says which leaves of a tree it allows. The words of a row's
values, combined bit by bit, leave the leaf that the row reaches. No branch depends on the row, and
what neighbouring rows agree on is combined once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Floats, Ints
from expecta.common.kernels import U, kernel
from expecta.common.settings import current
from expecta.common.threads import run_on_threads
from expecta.engine.boxes import Runs

BITS = 64  # leaves to a word; a larger tree has several, of which all but one come out empty
MAX_BYTES = 1 << 28  # of all words
MIN_THREADED_WORDS = 1_000_000  # below which threads cost more than they bring
# (word · DE_BRUIJN) >> 58 differs for all words of one bit, so that a table tells which it is
DE_BRUIJN = 0x03F79D71B4CB0A89
_BIT_NUMBER = np.zeros(BITS, np.int64)
_BIT_NUMBER[[((DE_BRUIJN << bit) % (1 << 64)) >> 58 for bit in range(BITS)]] = np.arange(BITS)


@dataclass(frozen=True, eq=False)
class LeafMasks:
    """A sum of trees over codes, and a constant."""

    words: npt.NDArray[np.uint64]  # of the values of each used variable  # (values, groups)
    start: Ints  # of the values of each variable; -1 where no tree asks  # (variables,)
    value_at: Ints  # where the values of each group's leaves begin  # (groups,)
    output: Ints  # the first output that a group adds to  # (groups,)
    width: Ints  # and to how many  # (groups,)
    value: Floats  # of leaves, group by group  # (leaves · width,)
    split: npt.NDArray[np.bool_]  # whether a group is a part of its tree  # (groups,)
    bias: Floats  # (outputs,)

    @classmethod
    def of(
        cls,
        trees: Sequence[Sequence[tuple[dict[int, Runs], Floats]]],
        bias: Floats,
        cardinalities: Ints,
    ) -> LeafMasks | None:
        """Write trees, each by the boxes of its leaves; None where that takes too much memory."""
        bias = bias.astype(np.float64)
        groups, split = [], []
        for leaves in trees:
            if len(leaves) == 1:
                bias = bias + leaves[0][1]
            else:
                parts = [leaves[at : at + BITS] for at in range(0, len(leaves), BITS)]
                groups += parts
                split += [len(parts) > 1] * len(parts)
        used = sorted({v for group in groups for box, _ in group for v in box})
        start = np.full(len(cardinalities), -1, np.int64)
        start[used] = np.cumsum([0, *(int(cardinalities[v]) + 1 for v in used)])[:-1]
        rows = sum(int(cardinalities[v]) + 1 for v in used)
        if rows * len(groups) * 8 > MAX_BYTES:
            return None
        # a leaf's bit is added where a run of allowed values begins, and taken off after its end
        changes: list[tuple[int, int, int]] = []
        free = np.zeros((len(cardinalities), len(groups)), np.uint64)
        for number, group in enumerate(groups):
            free[:, number] = (1 << len(group)) - 1
            for place, (box, _) in enumerate(group):
                bit = 1 << place
                for variable, allowed in box.items():
                    free[variable, number] -= np.uint64(bit)
                    first = int(start[variable])
                    for low, high in zip(allowed[::2], allowed[1::2], strict=True):
                        changes.append((first + low, number, bit))
                        changes.append((first + high, number, (1 << 64) - bit))
        words = np.zeros((rows, len(groups)), np.uint64)
        if changes:
            row, column, bits = zip(*changes, strict=True)
            np.add.at(words, (np.array(row), np.array(column)), np.array(bits, np.uint64))
        for variable in used:
            part = words[start[variable] : start[variable] + cardinalities[variable] + 1]
            part[0] += free[variable]
            np.cumsum(part, axis=0, out=part)
        values, output, width = [np.zeros(0)], [], []
        for group in groups:
            value = np.array([value for _, value in group], np.float64)
            (some,) = np.nonzero(np.any(value, axis=0))
            first, last = (some[0], some[-1] + 1) if len(some) else (0, 0)
            values.append(value[:, first:last].ravel())
            output.append(first)
            width.append(last - first)
        value_at = np.cumsum([len(part) for part in values])[:-1]
        return cls(
            words,
            start,
            value_at,
            np.array(output, np.int64),
            np.array(width, np.int64),
            np.concatenate(values),
            np.array(split, np.bool_),
            bias,
        )

    def __call__(self, codes: Ints, per_block: int = 1) -> Floats:
        """Compute the sum for complete rows.  # (rows, outputs).

        ``per_block`` rows after each other probably agree in many columns. Cost per row: a word
        per tree for each variable in which the rows of a block differ.
        """
        out = np.empty((len(codes), len(self.bias)))
        used = np.flatnonzero(self.start >= 0)
        blocks = -(-len(codes) // per_block)
        do = partial(
            _add_leaves,
            self.words,
            self.start[used],
            np.ascontiguousarray(codes[:, used], np.int64),
            per_block,
            (
                self.value_at,
                self.output,
                self.width,
                self.value,
                self.split,
                self.bias,
                _BIT_NUMBER,
            ),
            out,
        )
        work = len(codes) * self.words.shape[1] * max(len(used), 1)
        threads = min(blocks, current().n_threads()) if work > MIN_THREADED_WORDS else 1
        cuts = [blocks * k // threads for k in range(threads + 1)] if threads else [0]
        run_on_threads(do, list(pairwise(cuts)), threads)
        return out


@kernel
def _add_leaves(
    words: Any,
    start: Ints,
    codes: Ints,
    per_block: int,
    leaves: Any,
    out: Floats,
    first: int,
    last: int,
) -> None:
    """Compute the sums of the blocks ``first`` to ``last``."""
    value_at, output, width, value, split, bias, bit_number = leaves
    n_rows, n_used = codes.shape
    n_outputs = len(bias)
    agreed, total = np.empty(n_outputs), np.empty(n_outputs)
    groups = words.shape[1]
    # trees whose leaf is open: those that add to one output, from where and to which; and others
    narrow, at, to, wide = np.empty((4, groups), np.int64)
    shared = np.empty(groups, np.uint64)
    alive = np.empty(groups, np.uint64)
    differs, different = np.zeros(n_used, np.bool_), np.empty(n_used, np.int64)
    zero, one = np.uint64(0), np.uint64(1)
    multiplier, shift = np.uint64(DE_BRUIJN), np.uint64(58)
    for block in range(first, last):
        begin, end = block * per_block, min(n_rows, (block + 1) * per_block)
        differs[:] = False
        for row in range(begin + 1, end):
            for j in range(n_used):
                if codes[row, j] != codes[begin, j]:
                    differs[j] = True
        shared[:] = ~np.uint64(0)
        for j in range(n_used):
            if not differs[j]:
                allowed = words[start[j] + codes[begin, j]]
                for g in range(U(groups)):
                    shared[g] &= allowed[g]
        # what the block agrees on decides the leaf of many trees
        for k in range(n_outputs):
            agreed[k] = bias[k]
        n_narrow = n_wide = n_different = 0
        for j in range(n_used):
            if differs[j]:
                different[n_different] = j
                n_different += 1
        for g in range(U(groups)):
            word = shared[g]
            # a part of a tree may still lose its last leaf to another part
            if word & (word - one) != zero or (split[g] and word != zero):
                if width[g] == 1:
                    narrow[n_narrow], at[n_narrow], to[n_narrow] = g, value_at[g], output[g]
                    n_narrow += 1
                else:
                    wide[n_wide] = g
                    n_wide += 1
            elif word != zero:  # else another word of its tree has the leaf
                leaf = value_at[g] + width[g] * bit_number[(word * multiplier) >> shift]
                for k in range(width[g]):
                    agreed[output[g] + k] += value[leaf + k]
        for row in range(begin, end):
            alive[:] = shared
            for i in range(0, n_different - 1, 2):  # two at a time: fewer passes over what is alive
                j, u = different[i], different[i + 1]
                allowed, too = words[start[j] + codes[row, j]], words[start[u] + codes[row, u]]
                for g in range(U(groups)):
                    alive[g] &= allowed[g] & too[g]
            if n_different % 2:
                j = different[n_different - 1]
                allowed = words[start[j] + codes[row, j]]
                for g in range(U(groups)):
                    alive[g] &= allowed[g]
            total[:] = agreed
            i = 0
            while i < n_narrow:
                k = to[i]
                part = total[k]  # in no memory between the terms of a sum
                while i < n_narrow and to[i] == k:
                    word = alive[narrow[i]]
                    if word != zero:
                        part += value[at[i] + bit_number[(word * multiplier) >> shift]]
                    i += 1
                total[k] = part
            for i in range(n_wide):
                g = wide[i]
                if alive[g] != zero:
                    leaf = value_at[g] + width[g] * bit_number[(alive[g] * multiplier) >> shift]
                    for k in range(width[g]):
                        total[output[g] + k] += value[leaf + k]
            for k in range(n_outputs):
                out[row, k] = total[k]
