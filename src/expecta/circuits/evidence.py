"""Hold evidence: what is known of each variable in each row.

A cell is a known value, unknown, a set of values that are still possible, or a
likelihood per value. All of these are one thing, a weight per value, and rows
mostly repeat each other: so a variable's evidence is a short table of states
(weights over the values) and the number of a state for every row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Bools, Floats, Ints, within
from expecta.common.errors import DomainError
from expecta.common.text import shortened

FEW_VALUES = 64  # of a variable, up to which there is a state for each of them


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of each variable, row by row.

    Start from :meth:`unknown` or :meth:`rows` and add facts; every method returns a
    new object, and facts about one variable are combined (a set is intersected,
    likelihoods are multiplied).

    Parameters
    ----------
    states
        Weights of the values in each distinct state of a variable.  # per variable (states, values)
    codes
        The state of each row.  # per variable (rows,)
    n_rows
        How many rows there are.

    Examples
    --------
    >>> e = Evidence.unknown([2, 4, 3]).known(0, 1).between(1, 1, 2).among(2, {0, 2})
    >>> [e.weights(v).tolist() for v in range(3)]
    [[[0.0, 1.0]], [[0.0, 1.0, 1.0, 0.0]], [[1.0, 0.0, 1.0]]]
    """

    states: tuple[Floats, ...]  # per variable (states, values)
    codes: tuple[Ints, ...]  # per variable (rows,)
    n_rows: int

    def __post_init__(self) -> None:
        if len(self.states) != len(self.codes):
            raise DomainError(f"states of {len(self.states)} variables, codes of {len(self.codes)}")
        for variable, (table, code) in enumerate(zip(self.states, self.codes, strict=True)):
            if table.ndim != 2 or code.shape != (self.n_rows,):
                raise DomainError(f"evidence on variable {variable} needs a code for every row")
            if not within(code, 0, len(table)):
                raise DomainError(f"a code of variable {variable} names no state")

    @classmethod
    def _of_right_codes(
        cls, states: tuple[Floats, ...], codes: Ints | tuple[Ints, ...], n_rows: int
    ) -> Evidence:
        """Hold codes that are right by their making: for a single row the checks cost most."""
        out = object.__new__(cls)
        for name, value in (("states", states), ("codes", tuple(codes)), ("n_rows", n_rows)):
            object.__setattr__(out, name, value)
        if isinstance(codes, np.ndarray):  # whose rows are the codes: no field, nor in pickles
            object.__setattr__(out, "_table", codes)
        return out

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("states", "codes", "n_rows")}

    @classmethod
    def _of_one_row(cls, row: list[int], cards: list[int]) -> Evidence:
        """Hold a row of codes; what :meth:`rows` does of one, in a few steps for each variable."""
        states, codes = [], []
        for value, card in zip(row, cards, strict=True):
            if card <= FEW_VALUES:
                states.append(every_value(card))
                codes.append(card if value < 0 else value)
            else:
                table = np.full((1, card), 1.0 if value < 0 else 0.0)
                table[0, value] = 1.0
                states.append(table)
                codes.append(0)
        numbers = np.array(codes, np.int32)[:, None]
        return cls._of_right_codes(tuple(states), numbers, 1)

    # -- builders ---------------------------------------------------------------------

    @classmethod
    def unknown(cls, cardinalities: npt.ArrayLike, rows: int = 1) -> Evidence:
        """Return evidence that says nothing about any variable, for some rows.

        Parameters
        ----------
        cardinalities
            How many values each variable has.
        rows
            How many rows.
        """
        cards = np.asarray(cardinalities).tolist()
        code = np.zeros(rows, np.int32)
        return cls(tuple(np.ones((1, c)) for c in cards), (code,) * len(cards), rows)

    @classmethod
    def rows(cls, X: npt.ArrayLike, cardinalities: npt.ArrayLike) -> Evidence:
        """Read rows of values; NaN, None, pd.NA, or -1 among integers, is unknown.

        Parameters
        ----------
        X
            Values, with NaN or -1 for unknown.  # (rows, variables)
        cardinalities
            How many values each variable has.
        """
        cards = np.asarray(cardinalities)
        if type(X) is np.ndarray and len(X) == 1 and X.dtype.kind == "i" and X.ndim == 2:
            row, counts = X[0].tolist(), cards.tolist()
            if len(row) == len(counts) and all(
                -1 <= x < c for x, c in zip(row, counts, strict=True)
            ):
                return cls._of_one_row(row, counts)
        values = _as_codes(X, cards)
        # a state for every value, and a last one for "unknown", where these are few
        numbers = np.ascontiguousarray(np.where(values < 0, cards, values).T, np.int32)
        states = []
        for v, card in enumerate(cards.tolist()):
            if card <= FEW_VALUES:
                states.append(every_value(card))
            else:
                table, numbers[v] = _used_states(values[:, v], card)
                states.append(table)
        return cls._of_right_codes(tuple(states), numbers, len(values))

    def known(self, variable: int, value: int | Sequence[int]) -> Evidence:
        """Fix a variable to a value, or to one value per row.

        Parameters
        ----------
        variable
            The number of the variable.
        value
            Its value: one, or one for each row.

        Returns
        -------
        Evidence
            With this fact added.
        """
        card = self._card(variable)
        values = np.atleast_1d(np.asarray(value))
        if not np.all(_is_value(values, card)) or values.ndim != 1:
            raise DomainError(f"variable {variable} takes the values 0 .. {card - 1}, not {value}")
        used, codes = np.unique(values.astype(np.int64), return_inverse=True)
        table = (used[:, None] == np.arange(card)).astype(np.float64)
        return self._and(variable, table, codes.reshape(-1).astype(np.int32))

    def among(self, variable: int, values: Iterable[int]) -> Evidence:
        """Say that a variable is one of these values, in every row; none is impossible.

        Parameters
        ----------
        variable
            The number of the variable.
        values
            Values that are possible.

        Returns
        -------
        Evidence
            With this fact added.
        """
        card = self._card(variable)
        allowed = list(values)
        if not np.all(_is_value(np.array(allowed or [0]), card)):
            raise DomainError(f"variable {variable} takes the values 0 .. {card - 1}: {allowed}")
        weights = np.zeros(card)
        weights[np.array(allowed, np.int64)] = 1.0
        return self.likelihood(variable, weights)

    def between(self, variable: int, low: int, high: int) -> Evidence:
        """Say that an ordinal variable lies in ``low .. high``, both ends included.

        The ends may lie beyond the values there are.

        Parameters
        ----------
        variable
            The number of the variable.
        low
            The least value that is possible.
        high
            The greatest one.

        Returns
        -------
        Evidence
            With this fact added.
        """
        card = self._card(variable)
        if low > high:
            raise DomainError(f"the interval {low} .. {high} of variable {variable} is empty")
        return self.among(variable, range(max(low, 0), min(high, card - 1) + 1))

    def likelihood(self, variable: int, weights: npt.ArrayLike) -> Evidence:
        """Give each value a weight >= 0: soft evidence.

        ``weights`` has shape (values,) for all rows alike, or (rows, values).

        Parameters
        ----------
        variable
            The number of the variable.
        weights
            A weight per value, for all rows or for each.

        Returns
        -------
        Evidence
            With this fact added.
        """
        card = self._card(variable)
        table = np.asarray(weights, np.float64)
        if table.shape not in ((card,), (self.n_rows, card)):
            raise DomainError(
                f"weights for variable {variable} have shape {table.shape}, "
                f"not ({card},) or ({self.n_rows}, {card})"
            )
        if not np.all(np.isfinite(table) & (table >= 0)):
            raise DomainError(f"weights for variable {variable} must be finite and >= 0")
        if table.ndim == 1:
            return self._and(variable, table[None, :], np.zeros(1, np.int32))
        states, codes = np.unique(table, axis=0, return_inverse=True)
        return self._and(variable, states, codes.reshape(-1).astype(np.int32))

    def both(self, other: Evidence) -> Evidence:
        """Combine two pieces of evidence about the same rows; a single row goes with every row.

        Parameters
        ----------
        other
            Evidence about the same variables and rows.

        Returns
        -------
        Evidence
            What both say.

        Examples
        --------
        >>> first, second = Evidence.rows([[0, -1]], [2, 2]), Evidence.rows([[-1, 1]], [2, 2])
        >>> [first.both(second).weights(v).tolist() for v in range(2)]
        [[[1.0, 0.0]], [[0.0, 1.0]]]
        """
        if not np.array_equal(self.cardinalities, other.cardinalities):
            ours, theirs = shortened(self.cardinalities, 8), shortened(other.cardinalities, 8)
            raise DomainError(
                f"evidence about variables with ({ours}) values does not go with evidence about "
                f"variables with ({theirs})"
            )
        if self.n_rows == 1 and other.n_rows != 1:
            return other.both(self)
        if other.n_rows not in (1, self.n_rows):
            raise DomainError(f"evidence of {self.n_rows} rows and evidence of {other.n_rows}")
        facts = zip(self.states, self.codes, other.states, other.codes, strict=True)
        columns = [
            Evidence((states,), (codes,), self.n_rows)._and(0, further, numbers)
            for states, codes, further, numbers in facts
        ]
        return Evidence(
            tuple(column.states[0] for column in columns),
            tuple(column.codes[0] for column in columns),
            self.n_rows,
        )

    # -- what it says -----------------------------------------------------------------

    @property
    def cardinalities(self) -> Ints:
        """Number of values of each variable."""
        return np.array([table.shape[1] for table in self.states], np.int32)

    def weights(self, variable: int) -> Floats:
        """Return the weight of each value of a variable.  # (rows, values).

        Parameters
        ----------
        variable
            The number of the variable.
        """
        self._card(variable)
        return self.states[variable][self.codes[variable]]

    def __repr__(self) -> str:
        return f"Evidence({self.n_rows} rows, {len(self.states)} variables)"

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, rows: int | slice | Ints | Bools) -> Evidence:
        if isinstance(rows, int | np.integer):
            if not -self.n_rows <= rows < self.n_rows:  # also what ends a loop over rows
                raise IndexError(f"row {rows} of {self.n_rows}")
            rows = np.array([rows])
        table: Ints | None = getattr(self, "_table", None)
        codes = tuple(code[rows] for code in self.codes) if table is None else table[:, rows]
        n = len(codes[0]) if len(codes) else 0
        return Evidence._of_right_codes(self.states, codes, n)

    def _card(self, variable: int) -> int:
        if not 0 <= variable < len(self.states):
            raise DomainError(
                f"there is no variable {variable}: they are 0 .. {len(self.states) - 1}"
            )
        return int(self.states[variable].shape[1])

    def _and(self, variable: int, states: Floats, codes: Ints) -> Evidence:
        """Multiply one variable's weights by further ones."""
        if len(codes) not in (1, self.n_rows):
            raise DomainError(f"{len(codes)} facts for {self.n_rows} rows")
        pair = self.codes[variable].astype(np.int64) * len(states) + codes
        both, code = np.unique(pair, return_inverse=True)
        old, new = np.divmod(both, len(states))
        with np.errstate(over="ignore"):
            table = self.states[variable][old] * states[new]
        possible = (self.states[variable][old] > 0) & (states[new] > 0)
        if not np.all(np.isfinite(table)) or np.any(possible & (table < 2.3e-308)):
            raise DomainError(
                f"the weights for variable {variable} multiply to more or less than a float holds; "
                f"divide them by a constant first"
            )

        def put(items: tuple[Any, ...], item: Any) -> tuple[Any, ...]:
            return (*items[:variable], item, *items[variable + 1 :])

        return Evidence(
            put(self.states, table),
            put(self.codes, code.reshape(-1).astype(np.int32)),
            self.n_rows,
        )


def code_table(evidence: Evidence, variables: slice, rows: slice) -> Ints:
    """Return the codes of some variables and rows as one array.  # (variables, rows)."""
    table: Ints | None = getattr(evidence, "_table", None)
    if table is not None:
        return table[variables, rows]
    return np.stack([code[rows] for code in evidence.codes[variables]])


Rows: TypeAlias = "npt.ArrayLike | Evidence"


def as_evidence(X: Rows, cardinalities: Ints) -> Evidence:
    """Turn rows into evidence for a circuit's variables, or check evidence against them."""
    if not isinstance(X, Evidence):
        return Evidence.rows(X, cardinalities)
    if not np.array_equal(X.cardinalities, cardinalities):
        raise DomainError(
            f"the evidence is about variables with ({shortened(X.cardinalities, 8)}) values, "
            f"the circuit about variables with ({shortened(cardinalities, 8)})"
        )
    return X


def _as_codes(X: npt.ArrayLike, cards: Ints) -> Ints:
    """Read a table of values; unknown becomes -1."""
    try:
        array = np.asarray(X)
    except ValueError:
        raise DomainError("the rows of X differ in length") from None
    except TypeError as problem:  # of CuPy and torch
        raise DomainError(
            f"X cannot be read as a NumPy array ({problem}); expectation, moments, variance, std, "
            "range, support_probability and log_prob take arrays on a card"
        ) from None
    if array.ndim != 2:
        hint = ": for one row pass [row]" if array.ndim == 1 else ""
        raise DomainError(f"X must be a table with two dimensions, not {array.ndim}{hint}")
    if array.shape[1] != len(cards):
        raise DomainError(f"X has {array.shape[1]} columns, the circuit {len(cards)} variables")
    if isinstance(X, np.ma.MaskedArray):  # what is masked is unknown
        array = np.where(np.ma.getmaskarray(X), np.nan, array.astype(np.float64))
    if array.dtype.kind == "O":
        array = _from_objects(array)
    if array.dtype.kind == "f":
        unknown = np.isnan(array)
        values = np.where(unknown, -1.0, array)
        bad = ~unknown & ~((values >= 0) & (values < cards) & (values == np.floor(values)))
    elif array.dtype.kind in "iub":
        values = array.astype(np.int64) if array.dtype.kind != "u" else array
        bad = (values >= cards) | (values < -1 if array.dtype.kind == "i" else False)
    else:
        raise DomainError(
            f"X must hold numbers (values 0, 1, 2, ... of each variable), not {array.dtype}"
        )
    if np.any(bad):
        row, column = (int(i[0]) for i in np.nonzero(bad))
        raise bad_value(row, column, array[row, column], int(cards[column]))
    return values.astype(np.int64)


def bad_value(row: int, variable: int, value: Any, card: int) -> DomainError:
    """Return the error for a cell that holds no value of its variable."""
    hint = "; -1 means unknown only among integers, use NaN" if value == -1 else ""
    return DomainError(
        f"row {row} has {value} for variable {variable}, which takes the values "
        f"0 .. {card - 1}{hint}"
    )


def _is_value(values: npt.NDArray[Any], card: int) -> npt.NDArray[Any] | bool:
    """Whether these are whole numbers that a variable can take."""
    if values.dtype.kind not in "iubf":
        return False
    return (values >= 0) & (values < card) & (values == np.floor(values))


def _used_states(values: Ints, card: int) -> tuple[Floats, Ints]:
    """Return the states that one column has, and each row's state."""
    there = np.bincount(values + 1, minlength=card + 1) > 0  # counted, which is faster than sorted
    used, codes = np.flatnonzero(there) - 1, np.cumsum(there, dtype=np.int32) - 1
    table = (used[:, None] == np.arange(card)) | (used[:, None] < 0)
    return table.astype(np.float64), codes[values + 1]


@lru_cache
def every_value(card: int) -> Floats:
    """Return a state for every value, and a last one for all of them."""
    table = np.vstack([np.eye(card), np.ones(card)])
    table.setflags(write=False)  # it is kept
    return table


def _from_objects(array: npt.NDArray[Any]) -> Floats:
    """Turn Python objects into floats; None and pd.NA are unknown like NaN."""
    out = np.empty(array.shape)
    for index, cell in np.ndenumerate(array):
        unknown = cell is None or type(cell).__name__ in ("NAType", "NaTType")
        if unknown or (isinstance(cell, int | np.integer) and cell == -1):
            out[index] = np.nan
            continue
        try:
            out[index] = float(cell)
        except (TypeError, ValueError):
            raise DomainError(
                f"row {index[0]} has {cell!r} for variable {index[1]}: values are 0, 1, 2, ..."
            ) from None
    return out
