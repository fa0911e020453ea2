"""What all pictures share: matplotlib where it is needed, colours, labels and axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Self, TypeVar

import numpy as np

__all__ = [
    "ACCENT",
    "BLUE",
    "GREY",
    "Display",
    "even",
    "line_up",
    "outputs",
    "short",
    "thousands",
    "words",
]

# Okabe and Ito's colours, which those who are colour-blind tell apart
BLUE, ACCENT, GREY = "#0072B2", "#D55E00", "#707070"
MOST_LETTERS = 44  # of a label
MOST_OF_TITLE = 64
LINE = 0.34  # inches for a line of labels

Answer = TypeVar("Answer")


class Display(Generic[Answer]):
    """A picture of an answer, in scikit-learn's manner.

    Parameters
    ----------
    answer
        What is shown.

    Attributes
    ----------
    ax_, figure_
        Matplotlib's, once it is drawn.
    """

    question = ""  # the method of an estimator that is asked

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    @classmethod
    def from_answer(cls, answer: Answer, *, ax: Any = None) -> Self:
        """Draw an answer, on axes of yours or on new ones."""
        return cls(answer).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *args: Any, ax: Any = None, **more: Any) -> Self:
        """Ask an estimator, with all that its method takes, and draw the answer."""
        return cls.from_answer(getattr(estimator, cls.question)(*args, **more), ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on axes of yours, or on new ones; needs matplotlib."""
        self._own = ax is None
        if ax is None:
            ax = _pyplot().subplots(figsize=self.size(), layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.figure
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        self.draw(ax)
        return self

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return 6.4, 4.0

    def draw(self, ax: Any) -> None:
        """Draw the answer."""
        raise NotImplementedError

    def title(self, ax: Any, text: str) -> None:
        """Write a title across a figure of our own, where there is room; else above the axes."""
        if self._own:
            ax.figure.suptitle(short(text, MOST_OF_TITLE), x=0.01, ha="left")
        else:
            ax.set_title(short(text, MOST_OF_TITLE), loc="left")

    def legend(self, ax: Any) -> None:
        """Set the legend below a figure of our own, where it hides nothing; else within axes."""
        if self._own:
            handles, labels = ax.get_legend_handles_labels()
            columns = 3 if sum(map(len, labels)) < MOST_OF_TITLE else 1
            where = "outside lower center"
            ax.figure.legend(handles, labels, loc=where, ncols=columns, frameon=False)
        else:
            ax.legend(frameon=False, fontsize="small")


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            "pictures need matplotlib; install it by: pip install expecta[plots]"
        ) from None
    return pyplot


def words(text: str) -> str:
    """Return a text that is no formula to matplotlib."""
    return text.replace("$", r"\$")


def short(text: str, most: int = MOST_LETTERS) -> str:
    """Return a text that is no formula, cut where it is long."""
    return words(text if len(text) <= most else text[: most - 1].rstrip() + "…")


def outputs(axis: Any, name: str) -> None:
    """Make an axis of a model's output: nothing lies beyond 0 and 1 if it is a probability."""
    thousands(axis)
    if name.startswith("P("):
        low, high = axis.get_view_interval()
        axis.axes.set(**{f"{axis.axis_name}lim": (max(low, -0.02), min(high, 1.02))})


def thousands(axis: Any) -> None:
    """Separate thousands on an axis of numbers."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(6))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.6g}" if abs(x) < 1e9 else f"{x:g}"))


def line_up(ax: Any, labels: Sequence[str], *, grid: bool = True) -> None:
    """Write labels down the left, the first on top."""
    ax.set_yticks(np.arange(len(labels)), [short(label) for label in labels])
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    if grid:
        ax.grid(axis="x", color="#dddddd", linewidth=0.6)
        ax.set_axisbelow(True)


def even(lines: int) -> tuple[float, float]:
    """Return the size of a figure with so many lines of labels."""
    return 6.8, 1.3 + LINE * max(lines, 2)
