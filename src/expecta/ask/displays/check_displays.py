"""Draw how a density agrees with rows: dependence of pairs, and means of groups."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from expecta.ask.checks.density_check import DensityCheck
from expecta.ask.checks.group_check import LARGE, GroupCheck
from expecta.ask.checks.pair_check import PairCheck
from expecta.ask.displays.display import ACCENT, BLUE, GREY, Display, shorten
from expecta.common.arrays import Floats, Ints

MAX_COLUMNS = 24  # of the map of pairs
NUMBERED_COLUMNS = 8  # up to which the dependence is written
MAX_NAME_LETTERS = 18
MAX_POINTS = 1500  # of the means within chance, and of those beyond it
MAX_ALPHA = 0.85  # of the strongest dependence


class PairCheckDisplay(Display[PairCheck]):
    """The dependence of pairs of columns: in the rows below the diagonal, in the density above.

    Blue is positive or without a sign, orange negative; pairs that differ beyond chance have a
    frame. Of more than 24 columns those of the worst pairs are shown.

    Parameters
    ----------
    answer
        What is shown.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from expecta import CircuitRegressor, Independent
    >>> rows = {"age": [20, 30, 40, 50] * 10, "sex": ["f", "m"] * 20}
    >>> model = CircuitRegressor(density=Independent(), calibration_rows=0)
    >>> model = model.fit(rows, [1.0, 2.0, 3.0, 4.0] * 10)
    >>> display = PairCheckDisplay.from_estimator(model, rows, ax=Figure().subplots())
    >>> type(display.answer).__name__
    'PairCheck'
    """

    @classmethod
    def from_estimator(cls, estimator: Any, *args: Any, ax: Any = None, **more: Any) -> Self:
        """Check an estimator's density, with all that its method takes, and draw the pairs.

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
        return cls.from_answer(estimator.check_density(*args, **more).pairs, ax=ax)

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        side = 2.4 + 0.24 * min(len(self.answer.columns), MAX_COLUMNS)
        return max(side, 4.8), max(side, 4.8)

    def shown(self) -> Ints:
        """Return the columns that are drawn, in their order."""
        pairs = np.stack([self.answer.first, self.answer.second], axis=1).ravel()
        found = list(dict.fromkeys([*pairs.tolist(), *range(len(self.answer.columns))]))
        return np.sort(np.array(found[:MAX_COLUMNS], np.int64))

    def draw(self, ax: Any) -> None:
        """Draw a square for each pair and side of the diagonal."""
        from matplotlib.patches import Rectangle

        pairs, shown = self.answer, self.shown()
        place = {column: i for i, column in enumerate(shown.tolist())}
        n, written = len(shown), len(shown) <= NUMBERED_COLUMNS
        for k in range(len(pairs.apart)):
            i, j = place.get(int(pairs.first[k])), place.get(int(pairs.second[k]))
            if i is None or j is None or np.isnan(pairs.apart[k]):
                continue
            low, high = sorted((i, j))
            for x, y, value in ((low, high, pairs.rows[k]), (high, low, pairs.density[k])):
                colour, alpha = BLUE if value >= 0 else ACCENT, MAX_ALPHA * min(abs(value), 1.0)
                square = (x - 0.46, y - 0.46), 0.92, 0.92
                ax.add_patch(Rectangle(*square, facecolor=colour, alpha=alpha, lw=0))
                if pairs.beyond[k]:
                    ax.add_patch(Rectangle(*square, facecolor="none", edgecolor=GREY, lw=1.6))
                if written:
                    text = f"{round(float(value), 2) + 0.0:.2f}"
                    ax.text(x, y, text, ha="center", va="center", fontsize="small")
        names = [shorten(pairs.columns[column], MAX_NAME_LETTERS) for column in shown.tolist()]
        ax.set_xticks(np.arange(n), names, rotation=90 if n > 4 else 0)
        ax.set_yticks(np.arange(n), names)
        ax.tick_params(length=0)
        ax.set(xlim=(-0.5, max(n, 1) - 0.5), ylim=(max(n, 1) - 0.5, -0.5), aspect="equal")
        for side in ("left", "bottom"):
            ax.spines[side].set_visible(False)
        self.title(ax, "Dependence of pairs of columns")
        ax.set_xlabel("rows below the diagonal, density above;\nframed: beyond chance")


class GroupCheckDisplay(Display[GroupCheck]):
    """Means and shares over groups: in the rows against those under the density.

    In standard deviations of each column about its mean under the density. The band is what
    counts as little; of more than 1,500 points of a kind some are shown.

    Parameters
    ----------
    answer
        What is shown.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from expecta import CircuitRegressor, Independent
    >>> rows = {"age": [20, 30, 40, 50] * 10, "sex": ["f", "m"] * 20}
    >>> model = CircuitRegressor(density=Independent(), calibration_rows=0)
    >>> model = model.fit(rows, [1.0, 2.0, 3.0, 4.0] * 10)
    >>> display = GroupCheckDisplay.from_estimator(model, rows, ax=Figure().subplots())
    >>> type(display.answer).__name__
    'GroupCheck'
    """

    @classmethod
    def from_estimator(cls, estimator: Any, *args: Any, ax: Any = None, **more: Any) -> Self:
        """Check an estimator's density, with all that its method takes, and draw the groups.

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
        return cls.from_answer(estimator.check_density(*args, **more).groups, ax=ax)

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return 4.8, 5.2

    def points(self) -> tuple[Floats, Floats]:
        """Return the means under the density and in the rows, in standard deviations."""
        groups = self.answer
        unit, center = groups.unit[groups.mean], groups.center[groups.mean]
        return (groups.density - center) / unit, (groups.rows - center) / unit

    def draw(self, ax: Any) -> None:
        """Draw a point for each mean or share."""
        x, y = self.points()
        every = np.concatenate([x, y, [-1.0, 1.0]])
        ends = np.array([every.min() - 0.1, every.max() + 0.1])
        ax.fill_between(ends, ends - LARGE, ends + LARGE, color=GREY, alpha=0.15, lw=0)
        ax.plot(ends, ends, color=GREY, ls=":", label="rows as the density")
        within = BLUE, 3, "within chance"
        for beyond, (colour, size, label) in enumerate((within, (ACCENT, 5, "beyond chance"))):
            chosen = np.flatnonzero(self.answer.beyond == beyond)
            chosen = chosen[:: max(1, -(-len(chosen) // MAX_POINTS))]
            if len(chosen):
                ax.plot(x[chosen], y[chosen], ".", color=colour, ms=size, alpha=0.6, label=label)
        ax.set(xlim=ends, ylim=ends, aspect="equal")
        ax.set_xlabel("density, standard deviations")
        ax.set_ylabel("rows")
        self.title(ax, f"Means and shares over {len(self.answer.groups):,} groups")
        self.legend(ax)


class DensityCheckDisplay(Display[DensityCheck]):
    """How a density agrees with rows: the map of pairs, and the means over groups.

    Parameters
    ----------
    answer
        What is shown.

    Attributes
    ----------
    axes_
        Those of the two pictures; ``ax_`` are those of the pairs, or yours around both.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from expecta import CircuitRegressor, Independent
    >>> rows = {"age": [20, 30, 40, 50] * 10, "sex": ["f", "m"] * 20}
    >>> model = CircuitRegressor(density=Independent(), calibration_rows=0)
    >>> model = model.fit(rows, [1.0, 2.0, 3.0, 4.0] * 10)
    >>> display = DensityCheckDisplay.from_estimator(model, rows, ax=Figure().subplots())
    >>> type(display.answer).__name__
    'DensityCheck'
    """

    question = "check_density"

    def size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        pairs = PairCheckDisplay(self.answer.pairs).size()[0]
        return pairs + 5.0, max(pairs, 5.2)

    def plot_figure(self, figure: Any) -> Self:
        """Draw on an empty figure."""
        self._has_figure = True
        self.axes_ = tuple(figure.subplots(1, 2))
        self.ax_, self.figure_ = self.axes_[0], figure
        self._draw_both()
        self.title(self.ax_, f"Density against {self.answer.n_rows:,} rows")
        return self

    def draw(self, ax: Any) -> None:
        """Draw both pictures within axes of yours."""
        ax.set_axis_off()
        self.axes_ = tuple(ax.inset_axes((left, 0.0, 0.42, 1.0)) for left in (0.08, 0.58))
        self._draw_both()

    def _draw_both(self) -> None:
        PairCheckDisplay(self.answer.pairs).plot(self.axes_[0])
        GroupCheckDisplay(self.answer.groups).plot(self.axes_[1])
