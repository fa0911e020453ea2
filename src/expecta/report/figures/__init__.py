"""Small pictures as SVG, coloured by the page they stand in."""

from expecta.report.figures.bars import Bar, Dot, bars, dots
from expecta.report.figures.curves import curves, histogram, reliability

__all__ = ["Bar", "Dot", "bars", "curves", "dots", "histogram", "reliability"]
