"""Answers as pictures in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from expecta.common.errors import DomainError

__all__ = ["draw"]


def draw(answer: Any, path: Path) -> None:
    """Draw an answer into a file, by the ending of its name."""
    if not hasattr(answer, "plot"):
        raise DomainError(f"a {type(answer).__name__} has no plot; leave --plot out")
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise DomainError("plots need matplotlib: pip install 'expecta[plots]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shown = answer.plot()
    shown.figure_.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(shown.figure_)
