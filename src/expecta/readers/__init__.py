"""Readers of fitted models: one file per library."""

from __future__ import annotations

__all__ = ["Unreadable"]


class Unreadable(Exception):  # noqa: N818 -- an answer, caught by who asked
    """A model whose inside cannot be written as trees or as a linear model; says why."""
