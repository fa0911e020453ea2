"""Read a condition on rows, and turn it into disjoint evidence that a circuit can be asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from expecta.ask.language.bit_encoder import BitEncoder
from expecta.ask.language.column_sets import Intervals, Subset, ValueSet, written
from expecta.ask.language.conditions import (
    Compound,
    Condition,
    Fact,
    diagram,
    facts_of,
    from_facts,
    from_syntax,
    quoted,
)
from expecta.ask.language.decision_diagram import (
    Box,
    Diagrams,
    TooManyCasesError,
    boxes,
    certain,
)
from expecta.ask.language.grammar import parse
from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Bools, Floats
from expecta.common.errors import DomainError, QueryError
from expecta.common.text import shortened
from expecta.tables import Encoder
from expecta.tables.column import Column
from expecta.tables.estimator_inputs import read_rows
from expecta.tables.number_column import NumberColumn
from expecta.tables.row_reader import check_one_row, row_facts
from expecta.tables.scalars import TIMES
from expecta.tables.table import Table
from expecta.tables.training_rows import TrainingRows

MAX_BOXES = 1000  # disjoint ones of a condition
MAX_SHOWN = 5  # bins or values that a remark names
ALL_ROWS = "all rows"


@dataclass(frozen=True, eq=False)
class Query:
    """A condition on the columns of a table, made by :meth:`read`.

    Two queries are equal if the same rows meet them.

    Attributes
    ----------
    boxes
        Disjoint boxes that together are the condition: for each column that matters, by
        number, the set of its values.
    approximate
        What of it is approximate: bins that an interval cuts, which count by their share,
        and bins that stand for a number.

    Examples
    --------
    >>> encoder = Encoder().fit({"age": [31, 54, 60, 18], "smoker": ["no", "yes", "no", "yes"]})
    >>> query = Query.read("smoker == 'yes' or 30 <= age < 55", encoder)
    >>> query.matches({"age": [31, None, 60], "smoker": ["no", "yes", "no"]}).tolist()
    [True, True, False]
    >>> query.evidence(encoder).weights(0).tolist()
    [[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]]
    """

    encoder: Encoder
    condition: Condition
    written: str
    boxes: tuple[Box, ...] = field(repr=False)
    approximate: list[str] = field(repr=False)

    @classmethod
    def read(cls, given: Any, encoder: Encoder) -> Query:
        """Read a condition: a text, facts, one row of a table, None for all rows, a query.

        Text compares columns with values, ``smoker == 'yes' and 30 <= age < 40 and region in
        ('southeast', 'southwest')``, by == != < <= > >= in, joined by and, or, not and
        parentheses. Dates are quoted ISO texts, durations texts such as '4 days' or
        '06:30:00', and names that are not one word are in backticks. Facts are those of
        :meth:`Encoder.where`: a value, a list, an interval ``(low, high)`` with both ends, None
        for unknown.

        A number given by == or ``in`` stands for its bin, unless it is a whole number
        among whole ones (a share of its bin) or the bin's only one. A number that is in the
        range of no bin is no such value in the training data: its probability is zero.

        More than 1,000 disjoint boxes, an unknown column or category, and what cannot be
        read is a `QueryError` that says where and what to do. Cost: milliseconds.
        """
        if isinstance(given, Query):
            if given.encoder is encoder:
                return given
            given._check(encoder)
            return cls._make(given.condition, given.written, encoder, None)
        if isinstance(encoder, BitEncoder):  # its variables are not the columns that users name
            query = cls.read(given, encoder.column_encoder)
            return cls._make(encoder.in_bits(query.condition), query.written, encoder, None)
        if isinstance(given, str):
            condition = from_syntax(parse(given), given, encoder)
            return cls._make(condition, given.strip(), encoder, given)
        if given is None or isinstance(given, Mapping):
            facts = from_facts(given or {}, encoder)
            return cls._make(facts, _text(facts, encoder), encoder, None)
        try:
            table = check_one_row(read_rows(given, encoder))
        except DomainError as problem:
            raise QueryError(
                f"a group is a text, a mapping from columns to values, one row or None: {problem}"
            ) from None
        return cls.read(row_facts(table, encoder), encoder)

    @classmethod
    def _make(
        cls, condition: Condition, written: str, encoder: Encoder, query: str | None
    ) -> Query:
        columns = {column.name: column for column in encoder.columns_}
        order = {name: variable for variable, name in enumerate(columns)}
        with _refusing(query):
            disjoint = boxes(diagram(condition, order, columns, Diagrams()), MAX_BOXES)
        notes = _approximate(condition, disjoint, encoder)
        return cls(encoder, condition, written, tuple(disjoint), notes)

    def evidence(self, encoder: Encoder) -> Evidence:
        """Return one row of evidence for each box; their probabilities add up to the query's.

        A bin that an interval cuts has its share as a weight. No box is an impossible row.
        """
        if encoder is not self.encoder:
            return Query.read(self, encoder).evidence(encoder)
        rows = [
            [(variable, subset.weights(encoder.columns_[variable])) for variable, subset in box]
            for box in self.boxes
        ]
        nothing = [(0, np.zeros(encoder.columns_[0].cardinality))]
        return build_evidence(encoder.cardinalities_.tolist(), rows or [nothing])

    def why_empty(self) -> list[str]:
        """Say why no row can meet it, where the columns one by one tell."""
        if not self.boxes:
            return ["The condition contradicts itself: no row can meet it."]
        notes: dict[str, None] = {}
        for box in self.boxes:
            for variable, subset in box:
                column = self.encoder.columns_[variable]
                if isinstance(subset, Intervals) and not np.any(subset.weights(column)):
                    notes[_nothing_there(subset, column)] = None
        return list(notes)[:MAX_SHOWN]

    def matches(self, rows: Any) -> Bools:
        """Whether each row of a table, or training row, meets the condition by its own values.

        Exact, whatever the bins. A row with missing values meets it if it does so whatever
        they are.
        """
        table = (
            rows.to_table(self.encoder)
            if isinstance(rows, TrainingRows)
            else self.encoder.read(rows)
        )
        names = sorted({fact.column for fact in facts_of(self.condition)})
        order = {name: variable for variable, name in enumerate(names)}
        with _refusing(None):
            exact = diagram(self.condition, order, None, Diagrams())
        numbers = {order[name]: _numbers(table, self.encoder, name) for name in names}
        return certain(exact, numbers, table.n_rows)

    def numbers(self, rows: TrainingRows, variable: int) -> Floats:
        """Return what :meth:`matches` compares of training rows in a column; NaN if unknown."""
        name = self.encoder.columns_[variable].name
        return _numbers(rows.to_table(self.encoder), self.encoder, name)

    @property
    def known_numbers(self) -> dict[str, float]:
        """The columns of numbers that the condition leaves a single one of."""
        parts: list[Condition] = [self.condition]
        known = {}
        for part in parts:
            if isinstance(part, Compound):
                parts += part.parts if part.word == "and" else ()
            elif not part.negated and isinstance(part.subset, Intervals):
                ends = {value for piece in part.subset.pieces for value, _ in piece}
                if len(ends) == 1 and self.encoder.column(part.column).kind not in TIMES:
                    (known[part.column],) = ends
        return known

    def __and__(self, other: Query) -> Query:
        """Return that both hold."""
        other._check(self.encoder)
        known = [str(query) for query in (self, other) if query.written != ALL_ROWS]
        if len(known) > 1:
            known = [query._beside() for query in (self, other)]
        condition = Compound("and", (self.condition, other.condition))
        return Query._make(condition, " and ".join(known) or ALL_ROWS, self.encoder, None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Query):
            return NotImplemented
        both = (self.condition, other.condition)
        names = sorted({fact.column for condition in both for fact in facts_of(condition)})
        order, shared = {name: variable for variable, name in enumerate(names)}, Diagrams()
        with _refusing(None):
            ours, theirs = (diagram(condition, order, None, shared) for condition in both)
        return ours is theirs

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.written

    def _beside(self) -> str:
        """Write it so that "and" may follow."""
        either = isinstance(self.condition, Compound) and self.condition.word == "or"
        return f"({self.written})" if either else self.written

    def _check(self, encoder: Encoder) -> None:
        """Refuse an encoder whose columns are others."""
        if encoder is self.encoder:
            return
        for fact in facts_of(self.condition):
            ours, theirs = self.encoder.column(fact.column), encoder.column(fact.column)
            alike = isinstance(ours, NumberColumn) or ours.labels == theirs.labels
            if ours.kind != theirs.kind or not alike:
                raise QueryError(
                    f"column {fact.column!r} differs from that of the model that the condition "
                    f"was made for; pass the condition as text"
                )


def where(condition: str) -> str:
    """Write what a sentence is about.

    >>> where("age < 40"), where(ALL_ROWS)
    (' where age < 40', ' over all rows')
    """
    return f" over {ALL_ROWS}" if condition == ALL_ROWS else f" where {condition}"


def row_text(table: Table, encoder: Encoder) -> str:
    """Write one row as a condition."""
    facts = []
    for column, code in zip(encoder.columns_, encoder.codes(table)[0].tolist(), strict=True):
        subset: Subset = ValueSet(frozenset([code]), column.cardinality)
        if isinstance(column, NumberColumn):
            subset = Intervals.points(_numbers(table, encoder, column.name).tolist())
        if code >= 0:
            facts.append(Fact(column.name, subset))
    return _text(Compound("and", tuple(facts)), encoder)


def build_evidence(
    cardinalities: Sequence[int], rows: Sequence[Sequence[tuple[int, Floats]]]
) -> Evidence:
    """Return rows of evidence, each from variables and the weights of their values."""
    known: list[dict[bytes, int]] = [{} for _ in cardinalities]
    states: list[list[Floats]] = [[np.ones(card)] for card in cardinalities]
    codes = np.zeros((len(cardinalities), len(rows)), np.int32)
    for row, facts in enumerate(rows):
        for variable, weights in facts:
            state = known[variable].setdefault(weights.tobytes(), len(states[variable]))
            if state == len(states[variable]):
                states[variable].append(weights)
            codes[variable, row] = state
    return Evidence(tuple(map(np.array, states)), tuple(codes), len(rows))


@contextmanager
def _refusing(query: str | None) -> Iterator[None]:
    """Turn too many cases into an error that says what to do."""
    try:
        yield
    except TooManyCasesError:
        raise QueryError(
            f"the condition falls into more than {MAX_BOXES} disjoint boxes; name fewer columns, "
            f"join fewer conditions by 'or', or ask about its parts one by one",
            query,
        ) from None


def _numbers(table: Table, encoder: Encoder, name: str) -> Floats:
    """Return a column's own numbers, or the codes of its categories; NaN where missing."""
    column = encoder.column(name)
    position = encoder.variable(name)
    if table.named:
        if name not in table.names:
            return np.full(table.n_rows, np.nan)
        position = table.names.index(name)
    cells = table.column(position)
    if isinstance(column, NumberColumn):
        return cells.as_numbers(column.kind, column.zone)
    codes = column.encode(cells)
    return np.where(codes < 0, np.nan, codes)


def _text(facts: Compound, encoder: Encoder) -> str:
    """Write facts as a condition."""
    texts = []
    telling = [fact for fact in facts_of(facts) if not fact.subset.full]
    for fact in telling:
        text = fact.subset.text(quoted(fact.column), encoder.column(fact.column))
        bare = " or " in text and not text.startswith("(")
        texts.append(f"({text})" if bare and len(telling) > 1 else text)
    return " and ".join(texts) or ALL_ROWS


def no_such_value(column: str, values: list[str]) -> str:
    """Write that numbers of a column are in the range of no bin."""
    more = ", ..." if len(values) > MAX_SHOWN else ""
    shown = ", ".join(values[:MAX_SHOWN]) + more
    return f"no such value in the training data: {quoted(column)} = {shown}"


def _approximate(condition: Condition, disjoint: list[Box], encoder: Encoder) -> list[str]:
    """Write which bins stand for a number, and which are cut."""
    notes: dict[str, None] = {}
    for fact in facts_of(condition):
        column: Column = encoder.column(fact.column)
        if fact.subset.binned(column) != fact.subset:
            notes[f"a number of {fact.column!r} stands for its bin"] = None
        if absent := fact.subset.absent(column):
            notes[no_such_value(fact.column, absent)] = None
        if isinstance(fact.subset, ValueSet) and fact.subset.rare:
            shown = shortened(tuple(map(repr, fact.subset.rare)), MAX_SHOWN)
            notes[
                f"{shown} of {fact.column!r} shares the value {column.plain.labels[-1]!r} with the "
                f"{len(column.plain.grouped):,} rarest categories, and the answer is about all of "
                f"them; to tell them apart, fit with max_categories (--max-categories)"
            ] = None
    by_variable: dict[int, set[Subset]] = {}
    for box in disjoint:
        for variable, subset in box:
            by_variable.setdefault(variable, set()).add(subset)
    for variable, subsets in sorted(by_variable.items(), key=lambda item: item[0]):
        column = encoder.columns_[variable]
        cut: set[int] = set()
        for subset in subsets:
            weights = subset.weights(column)
            cut.update(np.flatnonzero((weights > 0) & (weights < 1)).tolist())
        if cut:
            bins = ", ".join(column.labels[i] for i in sorted(cut)[:MAX_SHOWN])
            more = ", ..." if len(cut) > MAX_SHOWN else ""
            how = "count by their share, with the output of the whole bin"
            notes[f"bins of {column.name!r} {how}: {bins}{more}"] = None
    return list(notes)


def _nothing_there(subset: Intervals, column: Column) -> str:
    """Write that the training data has no number in a set."""
    if absent := subset.absent(column):
        return no_such_value(column.name, absent)
    text = subset.text(quoted(column.name), column)
    low, high = (written(float(end), column) for end in (column.lows.min(), column.highs.max()))
    return f"no such value in the training data: {text}; it has values from {low} to {high}"
