"""Translate conditions on columns to conditions on the paper's one-hot bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from expecta.ask.language.column_sets import ValueSet
from expecta.ask.language.conditions import Compound, Condition, Fact
from expecta.common.errors import QueryError
from expecta.tables import BooleanEncoder, Encoder
from expecta.tables.category_column import CategoryColumn
from expecta.tables.column import CodeColumn, Column
from expecta.tables.number_column import NumberColumn


class BitEncoder(Encoder):
    """An encoder of one-hot bits that also knows the columns they come from.

    Conditions on these columns are read by ``column_encoder``, and :meth:`in_bits` translates
    them to conditions on bits.
    """

    column_encoder: Encoder
    bit: dict[str, dict[int, str]]  # of each value of a column

    @classmethod
    def from_encoder(cls, encoder: BooleanEncoder) -> BitEncoder:
        """Take the bits of a fitted encoder."""
        names = encoder.get_feature_names_out().tolist()
        made = cls()
        made._set("codes", [CodeColumn(name, "code", "int8", 2, np.zeros(2)) for name in names], [])
        made.column_encoder = Encoder()
        made.bit = {}
        columns = []
        for group, name in enumerate(encoder.features_):
            levels, used, bit_names = encoder.bits_[group]
            numeric = isinstance(levels, np.ndarray)
            columns.append(_bins(name, levels) if numeric else _categories(name, levels, used))
            values = used - 1 if numeric else range(len(used))
            made.bit[name] = dict(zip(map(int, values), bit_names, strict=True))
        made.column_encoder._set("dict", columns, [])
        return made

    def in_bits(self, condition: Condition) -> Condition:
        """Translate a condition on columns to one on their bits."""
        if isinstance(condition, Compound):
            return Compound(condition.word, tuple(self.in_bits(part) for part in condition.parts))
        column = self.column_encoder.column(condition.column)
        weights = condition.subset.binned(column).weights(column)
        if np.any((weights > 0) & (weights < 1)):
            raise QueryError(
                f"the bits of column {column.name!r} are whole bins, and the condition cuts one; "
                f"their edges are {', '.join(f'{edge:.6g}' for edge in column.edges.tolist())}"
            )
        bits = self.bit[column.name]
        values = np.flatnonzero((weights == 0) if condition.negated else (weights > 0))
        return Compound("or", tuple(_one_hot(bits, int(value)) for value in values))


def _one_hot(bits: dict[int, str], value: int) -> Condition:
    """Return that the bit of a value is set, and the others of its column are not."""
    facts = (Fact(bit, ValueSet(frozenset([int(i == value)]), 2)) for i, bit in bits.items())
    return Compound("and", tuple(facts))


def _categories(name: str, levels: Any, used: Any) -> Column:
    every = [level for _, level in levels]
    values = tuple(every[i] for i in used.tolist())
    return CategoryColumn(name, "category", "object", len(values), np.zeros(len(values)), values)


def _bins(name: str, edges: Any) -> Column:
    """Return the bins of equal width, and that of the largest number."""
    highs = np.append(np.nextafter(edges[1:], -np.inf), edges[-1])
    return NumberColumn(
        name,
        "number",
        "float64",
        len(edges),
        np.zeros(len(edges)),
        edges=edges[1:],
        means=edges / 2 + highs / 2,
        stds=np.zeros(len(edges)),
        lows=edges,
        highs=highs,
    )
