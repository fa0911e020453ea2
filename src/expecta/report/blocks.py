"""Describe the tables and figures of a page, which the templates write as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class HtmlTable(NamedTuple):
    """A table; cells from column ``text_columns`` on are numbers, set to the right."""

    label: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int = 1


class FigureCard(NamedTuple):
    """A figure with its title, notes below it, and its numbers."""

    title: str
    svg: str
    table: HtmlTable
    notes: Sequence[str] = ()


def columns_to_rows(*columns: Iterable[str]) -> list[list[str]]:
    """Return the rows of a table that is given by columns of one length."""
    return [list(row) for row in zip(*columns, strict=True)]
