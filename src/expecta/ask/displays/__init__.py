"""Draw answers, in scikit-learn's manner; needs matplotlib (``expecta[plots]``)."""

from expecta.ask.displays.calibration_display import CalibrationDisplay
from expecta.ask.displays.check_displays import (
    DensityCheckDisplay,
    GroupCheckDisplay,
    PairCheckDisplay,
)
from expecta.ask.displays.column_displays import (
    DependenceDisplay,
    NextQuestionDisplay,
    SplitDisplay,
)
from expecta.ask.displays.display import Display
from expecta.ask.displays.group_displays import ComparisonDisplay, GroupDisplay
from expecta.ask.displays.row_displays import (
    DisparitiesDisplay,
    OutliersDisplay,
    ShapleyDisplay,
    StabilityDisplay,
)

__all__ = [
    "CalibrationDisplay",
    "ComparisonDisplay",
    "DensityCheckDisplay",
    "DependenceDisplay",
    "DisparitiesDisplay",
    "Display",
    "GroupCheckDisplay",
    "GroupDisplay",
    "NextQuestionDisplay",
    "OutliersDisplay",
    "PairCheckDisplay",
    "ShapleyDisplay",
    "SplitDisplay",
    "StabilityDisplay",
]
