"""Encode records without making a table of them, where columns are numbers and categories."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from expecta.common.arrays import Ints
from expecta.tables.category_column import CategoryColumn
from expecta.tables.column import Column
from expecta.tables.encoder import Encoder
from expecta.tables.number_column import NumberColumn
from expecta.tables.scalars import TIMES, canonical

CodeOf = Callable[[Any], int]


class RecordEncoder:
    """Gives cells the codes that `Encoder.codes` gives them in a table.

    Cost: a search in each known cell's column, about a microsecond.
    """

    def __init__(self, codes: list[CodeOf]) -> None:
        self._codes = codes

    @classmethod
    def of(cls, encoder: Encoder) -> RecordEncoder | None:
        """Return that of an encoder; None where cells need a table to be read."""
        options = encoder.na or encoder.dates or encoder.numeric or encoder.decimal != "."
        if options or encoder.unseen != "unknown":
            return None
        codes = [_code_of(column) for column in encoder.columns_]
        return None if None in codes else cls([code for code in codes if code is not None])

    def codes(self, records: Sequence[Sequence[Any]]) -> Ints:
        """Return the codes of records, in the columns' order, -1 where a cell is None.

        A cell is a finite float in a column of numbers, and a text, Boolean or number in one of
        categories.  # (records, variables) int32
        """
        return np.array(
            [
                [
                    -1 if cell is None else code(cell)
                    for cell, code in zip(record, self._codes, strict=True)
                ]
                for record in records
            ],
            np.int32,
        ).reshape(-1, len(self._codes))


def _code_of(column: Column) -> CodeOf | None:
    """Return what gives a cell of a column its code."""
    if type(column) is NumberColumn and column.kind not in TIMES:
        return partial(bisect_right, column.edges.tolist())
    if type(column) is CategoryColumn:
        rest = len(column.values) if column.other else -1
        find = column.find

        def category(cell: Any) -> int:
            code = find(canonical(cell))
            return rest if code is None else code

        return category
    return None
