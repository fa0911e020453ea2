"""Write a page about a model: what it has learned, and what it predicts for whom."""

from expecta.report.write import write_report

__all__ = ["write_report"]
