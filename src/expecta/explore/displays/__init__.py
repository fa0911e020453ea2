"""Pictures of answers, in scikit-learn's manner; they need matplotlib (``expecta[plots]``)."""

from expecta.explore.displays.axes import Display
from expecta.explore.displays.calibration import CalibrationDisplay
from expecta.explore.displays.columns import DependenceDisplay, NextQuestionDisplay, SplitDisplay
from expecta.explore.displays.groups import ComparisonDisplay, GroupDisplay
from expecta.explore.displays.rows import (
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
