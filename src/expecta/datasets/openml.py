"""Fetch data sets from OpenML, and check that they are what they should be."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.common.data_frames import Columns, installed
from expecta.datasets.data_files import VARIABLE


class _Source(NamedTuple):
    """What to fetch, and the number of rows and the names that it must have."""

    query: dict[str, Any]
    rows: int
    names: tuple[str, ...]  # ours, in the order of the file; the last is the target


_ELEVATORS = (
    "climbRate Sgz p q curRoll absRoll diffClb diffRollRate diffDiffClb SaTime1 SaTime2 SaTime3 "
    "SaTime4 diffSaTime1 diffSaTime2 diffSaTime3 diffSaTime4 Sa Goal"
)
_ABALONE = (
    "Sex,Length,Diameter,Height,Whole weight,Shucked weight,Viscera weight,Shell weight,Rings"
)
_SOURCES = {
    "abalone": _Source({"name": "abalone", "version": 1}, 4177, tuple(_ABALONE.split(","))),
    "delta-ailerons": _Source(
        {"name": "delta_ailerons", "version": "active"},
        7129,
        ("RollRate", "PitchRate", "currPitch", "currRoll", "diffRollRate", "Sa"),
    ),
    "elevators": _Source({"data_id": 216}, 16599, tuple(_ELEVATORS.split())),
}
_IMAGES = {"mnist": "mnist_784", "fmnist": "Fashion-MNIST"}


def fetch_table(name: str) -> Columns:
    """Return a table's columns under the names that the paper's authors use."""
    source = _SOURCES[name]
    bunch = _fetch(name, source.query)
    wrong = f"OpenML's {name!r} is not the paper's table"
    data = np.asarray(bunch.data)
    if data.shape != (source.rows, len(source.names) - 1):
        raise _unusable(f"{wrong}: it has the shape {data.shape}")
    if [*map(_letters, bunch.feature_names)] != [*map(_letters, source.names[:-1])]:
        raise _unusable(f"{wrong}: its columns are {', '.join(bunch.feature_names)}")
    categories = getattr(bunch, "categories", None) or {}
    columns: Columns = {}
    for i, (ours, theirs) in enumerate(zip(source.names, bunch.feature_names, strict=False)):
        if theirs in categories:
            texts = np.array(categories[theirs], object)
            columns[ours] = texts[data[:, i].astype(np.int64)]
        else:
            columns[ours] = data[:, i].astype(np.float64)
    try:
        target = np.asarray(bunch.target).astype(np.float64)
    except ValueError:
        raise _unusable(f"{wrong}: its target is not a number") from None
    whole = np.all(target == np.floor(target))
    columns[source.names[-1]] = target.astype(np.int64) if whole else target
    return columns


def fetch_images(name: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the 70,000 images, training first, and what they show."""
    bunch = _fetch(name, {"name": _IMAGES[name], "version": 1})
    pixels = np.asarray(bunch.data)
    if pixels.shape != (70_000, 784):
        raise _unusable(f"OpenML's {name!r} is not the paper's: it has the shape {pixels.shape}")
    return pixels.astype(np.uint8), np.asarray(bunch.target).astype(np.uint8)


def _fetch(name: str, query: dict[str, Any]) -> Any:
    from sklearn.datasets import fetch_openml  # imports much that the table here has no use for

    parser = "auto" if installed("pandas") else "liac-arff"
    try:
        return fetch_openml(**query, as_frame=False, parser=parser, n_retries=0)
    except (OSError, ValueError) as error:
        raise _unusable(f"the data set {name!r} cannot be fetched from OpenML ({error})") from None


def _unusable(problem: str) -> OSError:
    return OSError(f"{problem}; set the environment variable {VARIABLE} to a folder that holds it")


def _letters(name: str) -> str:
    """Return a name without what libraries change about names."""
    return "".join(letter for letter in name.lower() if letter.isalnum())
