"""Hold rows of values that a card reads and checks: they lie there, or are copied there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.circuits.evidence import Evidence, bad_value, every_value
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
MIN_CELLS = 1 << 15  # of NumPy's tables that are worth sending: those of a millisecond's reading
MAX_STATES = 1 << 24  # weights of the states of all variables
NONE_BAD = np.iinfo(np.int64).max


def lies_on_card(X: object) -> bool:
    """Whether an array lies on a card, by DLPack."""
    where = None if isinstance(X, np.ndarray) else getattr(X, "__dlpack_device__", None)
    return where is not None and int(where()[0]) in CARDS


def worth_sending(X: object, cardinalities: Ints) -> bool:
    """Whether a card reads a table of NumPy's sooner than the processor, its way there included."""
    return (
        type(X) is np.ndarray
        and X.shape[1:] == (len(cardinalities),)
        and X.size >= MIN_CELLS
        and X.dtype.isnative
        and X.dtype.str[1:] in CELLS
        and _n_weights(cardinalities) <= MAX_STATES
    )


def _n_weights(cardinalities: Ints) -> int:
    """Count the weights of a state for each value of each variable, and one for unknown."""
    cards = cardinalities.astype(np.int64)
    return int((cards * (cards + 1)).sum())


@dataclass(frozen=True, eq=False)
class RowsOnCard:
    """Rows of values for a card; a state for each value, and a last one for unknown."""

    given: Any  # (rows, variables), by DLPack, or of NumPy
    states: tuple[Floats, ...]
    n_rows: int

    @property
    def there(self) -> bool:
        """Whether they lie on the card, and so do answers."""
        return type(self.given) is not np.ndarray

    @cached_property
    def evidence(self) -> Evidence:
        """Read rows of NumPy's here."""
        return Evidence.rows(self.given, np.array([table.shape[1] for table in self.states]))

    @classmethod
    def of(cls, given: Any, cardinalities: Ints) -> RowsOnCard:
        """Take a table for a circuit's variables; its cells are checked when it is read."""
        shape = tuple(given.shape)
        if len(shape) != 2 or shape[1] != len(cardinalities):
            raise DomainError(
                f"X has the shape {shape}: a table with {len(cardinalities)} columns is needed, "
                "one for each variable"
            )
        if _n_weights(cardinalities) > MAX_STATES:
            raise DomainError("variables with that many values are not read on a card: pass NumPy")
        return cls(given, tuple(every_value(card) for card in cardinalities.tolist()), shape[0])

    def __len__(self) -> int:
        return self.n_rows


class RowReader:
    """Turns rows on a device into codes there, for variables with so many values."""

    def __init__(self, device: Device, kind: Any, cards: list[int], code: npt.DTypeLike) -> None:
        self.device, self.cards = device, cards
        self.cells: Any = None  # while they are read
        self.there = False  # whether they lie on the device
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
        if not rows.there:
            return rows.given
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
        cells, first, size = self.cells, 0, self.cells.dtype.itemsize
        if not self.there:
            cells, first, start = self.device.put(cells[start : start + rows]), start, 0
        self.device.launch(
            self.kernel,
            (-(-lanes // BLOCK), -(-n_variables // COLUMNS), 1),
            (
                cells,
                *(q(stride // size) for stride in cells.strides),
                q(start),
                q(first),
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
            value = cells[row : row + 1, variable : variable + 1]
            if self.there:
                on_card, value = value, np.empty((1, 1), cells.dtype)
                self.device.get(on_card, value)
            raise bad_value(row, variable, value[0, 0], self.cards[variable])
