"""A page about a model: what it has learned, and what it says of whom."""

from expecta.report.writing import write_report

__all__ = ["write_report"]
