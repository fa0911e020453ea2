"""Hold rows of values that lie on a card: they are read, checked, and answered there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.circuits.evidence import bad_value, every_value
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.engine.cuda.devices import Device, kernel_text

CARDS = (2, 13)  # what DLPack calls memory of a CUDA card, its own or managed
CELLS = {  # types of cells that kernels read: in C, and what is unknown
    "f8": ("double", "x != x"),
    "f4": ("float", "x != x"),
    "i8": ("long long", "x == -1"),
    "i4": ("int", "x == -1"),
    "i2": ("short", "x == -1"),
    "i1": ("signed char", "x == -1"),
    "u1": ("unsigned char", "false"),
    "b1": ("unsigned char", "false"),
}
COLUMNS, BLOCK = 16, 256  # see `encode.cu`
MAX_STATES = 1 << 24  # weights of the states of all variables
NONE_BAD = np.iinfo(np.int64).max


def lies_on_card(X: object) -> bool:
    """Whether an array lies on a card, by DLPack."""
    where = None if isinstance(X, np.ndarray) else getattr(X, "__dlpack_device__", None)
    return where is not None and int(where()[0]) in CARDS


@dataclass(frozen=True, eq=False)
class RowsOnCard:
    """Rows of values on a card; a state for each value, and a last one for unknown."""

    given: Any  # (rows, variables), by DLPack
    states: tuple[Floats, ...]
    n_rows: int

    @classmethod
    def of(cls, given: Any, cardinalities: Ints) -> RowsOnCard:
        """Take a table for a circuit's variables; its cells are checked when it is read."""
        shape, cards = tuple(given.shape), cardinalities.astype(np.int64)
        if len(shape) != 2 or shape[1] != len(cards):
            raise DomainError(
                f"X has the shape {shape}: a table with {len(cards)} columns is needed, "
                "one for each variable"
            )
        if int((cards * (cards + 1)).sum()) > MAX_STATES:
            raise DomainError("variables with that many values are not read on a card: pass NumPy")
        return cls(given, tuple(every_value(card) for card in cards.tolist()), shape[0])

    def __len__(self) -> int:
        return self.n_rows


class RowReader:
    """Turns rows on a device into codes there, for variables with so many values."""

    def __init__(self, device: Device, kind: Any, cards: list[int], code: npt.DTypeLike) -> None:
        self.device, self.cards = device, cards
        self.cells: Any = None  # while they are read
        cell, unknown = CELLS[kind.kind + str(kind.itemsize)]
        options = {
            "REAL": "double",
            "CODE": "unsigned char" if np.dtype(code) == np.uint8 else "int",
            "CELL": cell,
            "UNKNOWN": f"({unknown})",
        }
        text = kernel_text("expecta.engine.cuda", "encode.cu")
        self.kernel = device.compile(text, tuple(options.items()))["encode"]
        self.put_cards = device.put(np.array(cards, np.int32))
        self.bad = device.put(np.full(1, NONE_BAD))

    @staticmethod
    def cells_of(device: Device, rows: RowsOnCard) -> Any:
        """Read a table by DLPack, as cells that kernels know."""
        cells = device.adopt(rows.given)
        if cells.dtype.kind not in "fiub":
            raise DomainError(
                f"X must hold numbers (values 0, 1, 2, ... of each variable), not {cells.dtype}"
            )
        known = cells.dtype.kind + str(cells.dtype.itemsize) in CELLS
        return cells if known else cells.astype(np.float64)

    def write(self, codes: Any, start: int, rows: int, lanes: int) -> None:
        """Begin to write the codes of some rows, variable by variable; lanes to spare repeat."""
        i, q, n_variables = np.int32, np.int64, len(self.cards)
        size = self.cells.dtype.itemsize
        self.device.launch(
            self.kernel,
            (-(-lanes // BLOCK), -(-n_variables // COLUMNS), 1),
            (
                self.cells,
                *(q(stride // size) for stride in self.cells.strides),
                q(start),
                i(rows),
                i(lanes),
                i(n_variables),
                self.put_cards,
                codes,
                self.bad,
            ),
        )

    def check_and_forget(self) -> None:
        """Wait, and refuse rows with a cell that holds no value of its variable."""
        cells, self.cells = self.cells, None  # which are not ours to keep
        first = np.empty(1, np.int64)
        self.device.get(self.bad, first)
        if first[0] != NONE_BAD:
            self.device.fill(self.bad, np.full(1, NONE_BAD))
            row, variable = divmod(int(first[0]), len(self.cards))
            value = np.empty((1, 1), cells.dtype)
            self.device.get(cells[row : row + 1, variable : variable + 1], value)
            raise bad_value(row, variable, value[0, 0], self.cards[variable])
