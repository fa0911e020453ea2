"""Circuits from anywhere, asked in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from expecta.ask.asking import Asking
from expecta.ask.language.column_sets import Chosen
from expecta.ask.language.conditions import Condition, Fact, Joined
from expecta.common.errors import DomainError, QueryError
from expecta.expected.about import About, Sampling
from expecta.expected.expected_output import ExpectedOutput
from expecta.expected.pair_output import PairOutput, one_output
from expecta.queries.pair import Pair
from expecta.tables import BooleanEncoder, Encoder
from expecta.tables.category_column import CategoryColumn
from expecta.tables.column import CodeColumn, Column
from expecta.tables.number_column import NumberColumn
from expecta.tables.table import read_table

__all__ = ["BitEncoder", "CircuitModel"]


class CircuitModel(Asking):
    """A pair of circuits with names for its variables, to be asked about groups.

    For circuits that were learned elsewhere, such as those of the paper's authors. With the
    paper's one-hot bits (`BooleanEncoder`) ``ask`` and ``compare`` take the columns' own words:
    a column has a value if its bit is set and its others are not. All else is then asked of
    bits, by their names. There are no training rows to count.

    Parameters
    ----------
    pair
        The circuits p and g.
    encoder
        A fitted `Encoder` or `BooleanEncoder` whose variables are those of the circuits.
    name
        What g is.

    Examples
    --------
    >>> from expecta import Pair, Vtree
    >>> from expecta.circuits import independent, linear
    >>> encoder = BooleanEncoder().fit({"smoker": ["no", "yes", "no"]})
    >>> vtree = Vtree.balanced(2)
    >>> p = independent(vtree, [[0.3, 0.7], [0.8, 0.2]])
    >>> pair = Pair(p, linear(vtree, [[0.0, 1.0], [0.0, 10.0]]))
    >>> model = CircuitModel(pair, encoder, "cost")
    >>> model.ask(smoker="yes").mean
    10.0
    """

    def __init__(self, pair: Pair, encoder: Encoder | BooleanEncoder, name: str = "g") -> None:
        if isinstance(encoder, BooleanEncoder):
            encoder = BitEncoder.of(encoder)
        ours, theirs = encoder.cardinalities_.tolist(), pair.p.cardinalities.tolist()
        if ours != theirs:
            raise DomainError(
                f"the encoder has {len(ours)} variables with {sum(ours)} values, and the circuits "
                f"{len(theirs)} with {sum(theirs)}; pass the encoder that they were learned with"
            )
        self.pair, self.encoder, self.name = pair, encoder, name

    def _learned(self) -> object:
        return self.pair

    def _make_output(self, of: Any) -> ExpectedOutput:
        place = 0 if of is None else int(of)
        if not 0 <= place < self.pair.g.n_outputs:
            raise DomainError(f"of is the place of an output, 0 .. {self.pair.g.n_outputs - 1}")
        how = "Mean, spread and share: exact for the circuits. Quantiles: within their errors."
        pair = one_output(self.pair, place)
        about = About(
            self.name, None, self.encoder, pair.p, None, read_table, Sampling(scale=0.1), how
        )
        return PairOutput(about, pair, "identity", 1e-9)


class BitEncoder(Encoder):
    """An encoder of one-hot bits that also knows the columns they come from.

    Conditions on these columns are read by ``view``, and :meth:`in_bits` says them of bits.
    """

    view: Encoder
    bit: dict[str, dict[int, str]]  # of each value of a column

    @classmethod
    def of(cls, encoder: BooleanEncoder) -> BitEncoder:
        """Take the bits of an encoder that has learned."""
        names = encoder.get_feature_names_out().tolist()
        made = cls()
        made._set("codes", [CodeColumn(name, "code", "int8", 2, np.zeros(2)) for name in names], [])
        made.view = Encoder()
        made.bit = {}
        columns = []
        for group, name in enumerate(encoder.features_):
            levels, used, own = encoder.bits_[group]
            numeric = isinstance(levels, np.ndarray)
            columns.append(_bins(name, levels) if numeric else _categories(name, levels, used))
            values = used - 1 if numeric else range(len(used))
            made.bit[name] = dict(zip(map(int, values), own, strict=True))
        made.view._set("dict", columns, [])
        return made

    def in_bits(self, condition: Condition) -> Condition:
        """Say a condition on columns of their bits."""
        if isinstance(condition, Joined):
            return Joined(condition.word, tuple(self.in_bits(part) for part in condition.parts))
        column = self.view.column(condition.column)
        weights = condition.subset.binned(column).weights(column)
        if np.any((weights > 0) & (weights < 1)):
            raise QueryError(
                f"the bits of column {column.name!r} are whole bins, and the condition cuts one; "
                f"their edges are {', '.join(f'{edge:.6g}' for edge in column.edges.tolist())}"
            )
        bits = self.bit[column.name]
        values = np.flatnonzero((weights == 0) if condition.negated else (weights > 0))
        return Joined("or", tuple(_one_hot(bits, int(value)) for value in values))


def _one_hot(bits: dict[int, str], value: int) -> Condition:
    """Say that the bit of a value is set, and the others of its column are not."""
    return Joined(
        "and",
        tuple(Fact(bit, Chosen(frozenset([int(own == value)]), 2)) for own, bit in bits.items()),
    )


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
