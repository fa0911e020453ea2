"""Pictures of answers, in scikit-learn's manner; they need matplotlib (``expecta[plots]``)."""

from expecta.ask.displays.axes import Display
from expecta.ask.displays.calibration_plot import CalibrationDisplay
from expecta.ask.displays.column_plots import DependenceDisplay, NextQuestionDisplay, SplitDisplay
from expecta.ask.displays.group_plots import ComparisonDisplay, GroupDisplay
from expecta.ask.displays.row_plots import (
    DisparitiesDisplay,
    OutliersDisplay,
    ShapleyDisplay,
    StabilityDisplay,
)

__all__ = [
    "CalibrationDisplay",
    "ComparisonDisplay",
    "DependenceDisplay",
    "DisparitiesDisplay",
    "Display",
    "GroupDisplay",
    "NextQuestionDisplay",
    "OutliersDisplay",
    "ShapleyDisplay",
    "SplitDisplay",
    "StabilityDisplay",
]
