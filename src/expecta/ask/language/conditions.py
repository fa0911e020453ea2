"""Resolve a condition, as text or facts, to sets of values of an encoder's columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, TypeAlias, cast

import numpy as np

from expecta.ask.language.column_sets import Intervals, Subset, ValueSet, within_bin, written
from expecta.ask.language.decision_diagram import Diagram, Diagrams
from expecta.ask.language.grammar import (
    KEYWORDS,
    Among,
    Compare,
    IsMissing,
    Junction,
    Negation,
    Syntax,
)
from expecta.ask.language.grammar import Constant as Written
from expecta.common.errors import DomainError, QueryError
from expecta.common.text import suggestion
from expecta.tables import Encoder
from expecta.tables.category_column import CategoryColumn
from expecta.tables.column import Column, Interval
from expecta.tables.number_column import NumberColumn
from expecta.tables.scalars import TIMES

ORDERS = {"<": "neither", "<=": "right", ">": "neither", ">=": "left"}


@dataclass(frozen=True)
class Fact:
    """A column is in a set, or is not."""

    column: str
    subset: Subset
    negated: bool = False


@dataclass(frozen=True)
class Compound:
    """Several conditions, of which all ("and") or any ("or") hold."""

    word: str
    parts: tuple[Condition, ...]


Condition: TypeAlias = Fact | Compound


def facts_of(condition: Condition) -> list[Fact]:
    """Return all facts in a condition."""
    if isinstance(condition, Fact):
        return [condition]
    return [fact for part in condition.parts for fact in facts_of(part)]


def diagram(
    condition: Condition,
    order: Mapping[str, int],
    columns: Mapping[str, Column] | None,
    to: Diagrams,
) -> Diagram:
    """Return the diagram of a condition; with columns, of what their bins make of it.

    Facts about one column are joined before all else, two by two: a long list stays cheap.
    """
    if isinstance(condition, Fact):
        return to.fact(order[condition.column], _subset(condition, columns))
    facts: dict[str, list[Subset]] = {}
    parts: list[Diagram] = [condition.word == "and"]
    for part in condition.parts:
        if isinstance(part, Fact):
            facts.setdefault(part.column, []).append(_subset(part, columns))
        else:
            parts.append(diagram(part, order, columns, to))
    for name, subsets in facts.items():
        parts.append(to.fact(order[name], _combine(subsets, condition.word)))
    return to.join(condition.word, parts)


def _subset(fact: Fact, columns: Mapping[str, Column] | None) -> Subset:
    subset = fact.subset if columns is None else fact.subset.binned(columns[fact.column])
    return ~subset if fact.negated else subset


def _combine(subsets: list[Any], word: str) -> Subset:
    while len(subsets) > 1:
        pairs = [subsets[i : i + 2] for i in range(0, len(subsets), 2)]
        subsets = [
            pair[0] if len(pair) == 1 else pair[0] | pair[1] if word == "or" else pair[0] & pair[1]
            for pair in pairs
        ]
    return cast(Subset, subsets[0])


# -- from text ----------------------------------------------------------------------------


def from_syntax(
    syntax: Syntax, query: str, encoder: Encoder, *, negated: bool = False
) -> Condition:
    """Find the columns and values of a parsed text; "not" moves down to single facts."""
    if isinstance(syntax, Negation):
        return from_syntax(syntax.part, query, encoder, negated=not negated)
    if isinstance(syntax, Junction):
        word = {"and": "or", "or": "and"}[syntax.word] if negated else syntax.word
        parts = (from_syntax(part, query, encoder, negated=negated) for part in syntax.parts)
        return Compound(word, tuple(parts))
    with _located(query, syntax.column.position):
        column = encoder.column(syntax.column.text)
    if isinstance(syntax, IsMissing):
        with _located(query, syntax.column.position):
            return Fact(column.name, _missing(column), negated)
    if isinstance(syntax, Among):
        subset = _union([_point(column, value, query) for value in syntax.values])
        return Fact(column.name, subset, negated)
    if syntax.operator in ORDERS:
        return Fact(column.name, _beyond(column, syntax, query), negated)
    unlike = syntax.operator == "!="
    return Fact(column.name, _point(column, syntax.value, query), negated != unlike)


@contextmanager
def _located(query: str | None, position: int = 0) -> Iterator[None]:
    """Say where in a query an error is."""
    try:
        yield
    except DomainError as problem:
        raise QueryError(str(problem), query, position) from None


def _point(column: Column, value: Written, query: str) -> Subset:
    """Return the set of one written value."""
    with _located(query, value.position):
        _check(column, value.value)
        return _value(column, value.value)


def _missing(column: Column) -> Subset:
    """Return the set of the missing cell, where that is a value."""
    if column.plain is column:
        raise DomainError(
            f"this model averages over missing values of column {column.name!r}, so it cannot be "
            f"asked about them; to do so, fit with Encoder(missing_is_value=[{column.name!r}]), "
            f"or --missing-is-value {column.name}"
        )
    return ValueSet(frozenset([column.plain.cardinality]), column.cardinality)


def _beyond(column: Column, syntax: Compare, query: str) -> Subset:
    """Return the values on one side of a number."""
    value = syntax.value.value
    with _located(query, syntax.column.position):
        if not column.ordered:
            raise DomainError(
                f"column {column.name!r} has categories, which have no order; use == or in: "
                + suggestion(value, column.labels, "it takes")
            )
    with _located(query, syntax.value.position):
        _check(column, value)
        end = column.to_number(value)
        low, high = (end, None) if syntax.operator in (">", ">=") else (None, end)
        return _between(column, low, high, ORDERS[syntax.operator])


def _check(column: Column, value: object) -> None:
    """Refuse a written value that is not a value of its column, though it could be read as one."""
    if value == column.labels[-1] and column.plain is not column:
        return  # that it is missing
    if column.kind in ("date", "datetime") and not isinstance(value, str):
        raise DomainError(
            f"column {column.name!r} has {column.kind}s, written as quoted texts: '2024-05-31'"
        )
    if isinstance(value, bool) and column.ordered:
        raise DomainError(f"column {column.name!r} has {column.kind}s, not true and false")


# -- from facts ---------------------------------------------------------------------------


def from_facts(facts: Mapping[str, Any], encoder: Encoder) -> Compound:
    """Read facts by `Column.parse_fact`, as `Encoder.where` does."""
    with _located(None):
        parsed = [_fact(encoder.column(name), fact) for name, fact in facts.items()]
    return Compound("and", tuple(fact for fact in parsed if fact is not None))


def _fact(column: Column, fact: Any) -> Fact | None:
    parsed = column.parse_fact(fact)
    if parsed is None:
        return None
    if isinstance(parsed, Interval):
        return Fact(column.name, _between(column, *parsed, "both"))
    return Fact(column.name, _union([_value(column, value) for value in parsed] or [_none(column)]))


def _none(column: Column) -> Subset:
    """Return the empty set of a column's values."""
    numbers = isinstance(column, NumberColumn)
    return Intervals(()) if numbers else ValueSet(frozenset(), column.cardinality)


def _union(subsets: list[Subset]) -> Subset:
    """Return all values of several sets; of single numbers without joining them one by one."""
    numbers = [subset for subset in subsets if isinstance(subset, Intervals)]
    if numbers and all(numbers):
        return Intervals.points(low for subset in numbers for (low, _), _ in subset.pieces)
    return cast(Subset, reduce(or_, cast(Iterable[Any], subsets)))


def _value(column: Column, value: Any) -> Subset:
    """Return the set of one value."""
    if isinstance(column, NumberColumn):
        return Intervals.points([column.to_number(value)])
    code = column.code(value)
    if not isinstance(column.plain, NumberColumn) or code == column.plain.cardinality:
        shared = isinstance(column.plain, CategoryColumn) and column.plain.is_grouped(value)
        rare = (str(value),) if shared else ()
        return ValueSet(frozenset([code]), column.cardinality, rare=rare)
    number = column.to_number(value)
    if not within_bin(column, number):
        return ValueSet(frozenset(), column.cardinality, (written(number, column),))
    if column.lows[code] != column.highs[code]:
        raise _cuts(column)
    return ValueSet(frozenset([code]), column.cardinality)


def _between(column: Column, low: float | None, high: float | None, closed: str) -> Subset:
    if isinstance(column, NumberColumn):
        return Intervals.between(low, high, closed)
    weights = column.between(low, high, closed=closed)
    if np.any((weights > 0) & (weights < 1)):
        raise _cuts(column)
    return ValueSet(frozenset(np.flatnonzero(weights).tolist()), len(weights))


def _cuts(column: Column) -> DomainError:
    """Return the error of a set that cuts a bin, where "missing" is a value."""
    times = column.kind in TIMES
    edges = ", ".join(
        written(edge, column) if times else f"{edge:.6g}" for edge in column.edges.tolist()
    )
    return DomainError(
        f'"missing" is a value of column {column.name!r}, so conditions on it must be whole bins; '
        f"their edges are {edges}"
    )


def quoted(name: str) -> str:
    """Write a column's name so that it can be read again."""
    plain = name.isidentifier() and name.lower() not in KEYWORDS
    return name if plain else f"`{name.replace('`', '``')}`"
