"""Hold what all pictures share: matplotlib where it is needed, colours, labels and axes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Self, TypeVar

import numpy as np

from expecta.common.arrays import Floats
from expecta.common.text import printable
from expecta.tables.column_notes import is_code

# Okabe and Ito's colours, which those who are colour-blind tell apart
BLUE, ACCENT, GREY, GRID = "#0072B2", "#D55E00", "#707070", "#dddddd"
MAX_LABEL_LETTERS = 44
MAX_TITLE_LETTERS = 64
LABEL_LETTERS_PER_INCH = 6.5  # of the figure's width
ROW_INCHES = 0.34  # for a row with a label

Answer = TypeVar("Answer")


class Display(ABC, Generic[Answer]):
    """A picture of an answer, in scikit-learn's manner.

    Parameters
    ----------
    answer
        What is shown.

    Attributes
    ----------
    ax_, figure_
        Matplotlib's, once it is drawn.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from expecta.ask.displays import GroupDisplay
    >>> from expecta import CircuitRegressor, Independent
    >>> rows = {"age": [20, 30, 40, 50] * 10, "sex": ["f", "m"] * 20}
    >>> model = CircuitRegressor(density=Independent(), calibration_rows=0)
    >>> model = model.fit(rows, [1.0, 2.0, 3.0, 4.0] * 10)
    >>> display = GroupDisplay.from_answer(model.ask(sex="f"), ax=Figure().subplots())
    >>> display.figure_ is display.ax_.figure
    True
    """

    question = ""  # the method of an estimator that is asked

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    @classmethod
    def from_answer(cls, answer: Answer, *, ax: Any = None) -> Self:
        """Draw an answer, on axes of yours or on new ones.

        Parameters
        ----------
        answer
            What is shown.
        ax
            Matplotlib's axes; None makes a new figure.
        """
        return cls(answer).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *args: Any, ax: Any = None, **more: Any) -> Self:
        """Ask an estimator, with all that its method takes, and draw the answer.

        Parameters
        ----------
        estimator
            A model that has learned.
        *args
            What the model's method takes.
        ax
            Matplotlib's axes; None makes a new figure.
        **more
            What the model's method takes by name.
        """
        return cls.from_answer(getattr(estimator, cls.question)(*args, **more), ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on axes of yours, or on new ones; needs matplotlib.

        Parameters
        ----------
        ax
            Matplotlib's axes; None makes a new figure.

        Returns
        -------
        Display
            It, with ``ax_`` and ``figure_``.
        """
        if ax is None:
            return self.plot_figure(_pyplot().figure(figsize=self.size(), layout="constrained"))
        self._has_figure = False
        return self._plot(ax)

    def plot_figure(self, figure: Any) -> Self:
        """Draw on an empty figure, with the title across it and the legend below the axes."""
        self._has_figure = True
        return self._plot(figure.subplots())

    def _plot(self, ax: Any) -> Self:
        self.ax_, self.figure_ = ax, ax.figure
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        self.draw(ax)
        return self

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return 6.4, 4.0

    @abstractmethod
    def draw(self, ax: Any) -> None:
        """Draw the answer."""

    def title(self, ax: Any, text: str) -> None:
        """Write a title across a new figure, where there is room; else above the axes."""
        if self._has_figure:
            ax.figure.suptitle(shorten(text, MAX_TITLE_LETTERS), x=0.01, ha="left")
        else:
            ax.set_title(shorten(text, MAX_TITLE_LETTERS), loc="left")

    def legend(self, ax: Any) -> None:
        """Set the legend below a new figure, where it hides nothing; else within the axes."""
        if self._has_figure:
            handles, labels = ax.get_legend_handles_labels()
            letters = (72 * ax.figure.get_figwidth() - 36 * len(labels)) / 5  # beside their handles
            columns = 3 if sum(map(len, labels)) < letters else 1
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


def plain_text(text: str) -> str:
    """Return a text that matplotlib does not read as a formula."""
    return printable(text).replace("$", r"\$")


def shorten(text: str, letters: int = MAX_LABEL_LETTERS) -> str:
    """Return a text that is not a formula, cut where it is long."""
    return plain_text(text if len(text) <= letters else text[: letters - 1].rstrip() + "…")


def output_axis(axis: Any, is_probability: bool) -> None:
    """Make an axis of a model's output: nothing lies beyond 0 and 1 if it is a probability."""
    thousands_axis(axis)
    if is_probability:
        low, high = axis.get_view_interval()
        axis.axes.set(**{f"{axis.axis_name}lim": (max(low, -0.02), min(high, 1.02))})


def thousands_axis(axis: Any) -> None:
    """Separate thousands on an axis of numbers."""
    from matplotlib.ticker import FuncFormatter

    _set_ticks(axis, [1, 2, 5, 10])
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.6g}" if abs(x) < 1e9 else f"{x:g}"))


def number_axis(axis: Any, name: str, numbers: Floats) -> None:
    """Write an axis of a column's numbers: thousands are set apart, but not of years and codes."""
    thousands_axis(axis)
    if is_code(name, float(np.min(numbers)), float(np.max(numbers))):
        axis.set_major_formatter("{x:.0f}")


def spread_ends(mean: Floats, half: Floats, is_probability: bool) -> tuple[Floats, Floats]:
    """Return the ends so far below and above a mean; of probabilities from 0 to 1."""
    ends = mean - half, mean + half
    return (np.maximum(ends[0], 0.0), np.minimum(ends[1], 1.0)) if is_probability else ends


def percent_axis(axis: Any) -> None:
    """Write an axis of shares in percent."""
    from matplotlib.ticker import PercentFormatter

    _set_ticks(axis, [1, 2, 2.5, 5, 10])
    axis.set_major_formatter(PercentFormatter(1.0))


def _set_ticks(axis: Any, steps: list[float]) -> None:
    """Set ticks at multiples of these numbers, as many as there is room for."""
    from matplotlib.ticker import MaxNLocator

    inches = int(axis.axes.figure.get_figwidth())
    axis.set_major_locator(MaxNLocator(6 if axis.axis_name == "y" else min(6, inches), steps=steps))


def label_rows(ax: Any, labels: Sequence[str]) -> None:
    """Write labels down the left, the first on top, and lines across from the ticks below."""
    letters = min(MAX_LABEL_LETTERS, int(LABEL_LETTERS_PER_INCH * ax.figure.get_figwidth()))
    shown = ["\n".join(shorten(line, letters) for line in label.split("\n")) for label in labels]
    ax.set_yticks(np.arange(len(labels)), shown)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x", color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)


def rows_size(rows: int) -> tuple[float, float]:
    """Return the size of a figure with so many labelled rows, in inches."""
    return 6.8, 1.3 + ROW_INCHES * max(rows, 2)
