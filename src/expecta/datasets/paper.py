"""Load the six data sets of the paper, split and encoded as its authors did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expecta.common import data_frames
from expecta.common.arrays import Ints
from expecta.common.file_input import read_bytes
from expecta.datasets import data_files
from expecta.datasets.insurance import insurance_columns
from expecta.datasets.openml import fetch_images, fetch_table
from expecta.tables.boolean_encoder import BooleanEncoder

_SEED = 1337  # the authors' seed
_TARGETS = {
    "insurance": "charges",
    "abalone": "Rings",
    "delta-ailerons": "Sa",
    "elevators": "Goal",
}
_DISCRETE = {"insurance": ("children", "smoker", "region", "sex")}
_IMAGES = ("mnist", "fmnist")
PAPER_NAMES = (*_TARGETS, *_IMAGES)


class PaperSplit(NamedTuple):
    """Indices of the rows to train on, to stop by, and to test on."""

    train: Ints
    valid: Ints
    test: Ints


@dataclass(frozen=True, eq=False)
class PaperData:
    """One of the paper's data sets in three parts.

    ``X_...`` are Booleans (or tables, with ``encoded=False``), ``y_...`` the targets,
    ``rows`` the rows of the whole table in each part, ``feature_names`` what each column
    of X says, and ``groups`` which column of the table each Boolean is about.

    Parameters
    ----------
    name
        Which set.
    X_train, X_valid, X_test
        Booleans, or tables with ``encoded=False``.
    y_train, y_valid, y_test
        The targets.
    rows
        Rows of the whole table in each part.
    feature_names
        What each column of X says.
    groups
        Which column of the table each Boolean is about.

    Examples
    --------
    >>> data = load_paper("insurance")
    >>> len(data.rows.train), data.feature_names[6]
    (936, 'smoker = no')
    """

    name: str
    X_train: Any
    X_valid: Any
    X_test: Any
    y_train: npt.NDArray[Any]
    y_valid: npt.NDArray[Any]
    y_test: npt.NDArray[Any]
    rows: PaperSplit
    feature_names: tuple[str, ...]
    groups: Ints


def paper_split(n_rows: int) -> PaperSplit:
    """Return the authors' split of a table: 70 % to train, 14 % to stop by, the rest to test.

    Parameters
    ----------
    n_rows
        Rows of the table.

    Examples
    --------
    >>> [len(part) for part in paper_split(1338)]
    [936, 187, 215]
    """
    order = np.random.RandomState(_SEED).permutation(n_rows)
    ends = [n_rows * 70 // 100, n_rows * 70 // 100 + n_rows * 14 // 100]
    return PaperSplit(*np.split(order, ends))


def load_paper(name: str, *, encoded: bool = True, as_frame: str | None = None) -> PaperData:
    """Return a data set of the paper: insurance, abalone, delta-ailerons, elevators, mnist, fmnist.

    It is read from the folder that the environment variable EXPECTA_DATA names, if it
    names one (``tables/NAME.csv``, or ``splits/NAME.npz`` for images). Otherwise the
    insurance table is that of the package, and the others are fetched from OpenML by
    scikit-learn, which keeps a copy.

    Parameters
    ----------
    name
        Which data set.
    encoded
        Whether X is the paper's Booleans (see `expecta.tables.BooleanEncoder`) or the
        table's own columns. Images are always Booleans: a pixel is 1 where it is brighter
        than its mean by more than a twentieth of its standard deviation, over the 60,000
        training or the 10,000 test images.
    as_frame
        What tables are, with ``encoded=False``: "pandas", "polars" or "dict"; by default the
        first of these that is installed.

    Examples
    --------
    >>> data = load_paper("insurance")
    >>> data.X_train.shape, data.feature_names[6]
    ((936, 36), 'smoker = no')
    """
    data_files.check_name(name, PAPER_NAMES)
    if name in _IMAGES:
        return _images(name)
    columns = _table(name)
    target = columns.pop(_TARGETS[name])
    split = paper_split(len(target))
    parts = [{key: values[rows] for key, values in columns.items()} for rows in split]
    if encoded:
        encoder = BooleanEncoder(discrete=_DISCRETE.get(name)).fit(parts[0])
        X = [encoder.transform(part) for part in parts]
        names, groups = tuple(encoder.get_feature_names_out()), encoder.groups_
    else:
        X = [data_frames.as_frame(part, as_frame) for part in parts]
        names, groups = tuple(columns), np.arange(len(columns))
    y = [target[rows] for rows in split]
    return PaperData(name, X[0], X[1], X[2], y[0], y[1], y[2], split, names, groups)


def _table(name: str) -> data_frames.Columns:
    """Return the whole table as columns: from the folder, the package or OpenML."""
    root = data_files.folder()
    if root is None:
        return insurance_columns() if name == "insurance" else fetch_table(name)
    path = data_files.existing(root / "tables" / f"{name}.csv")
    return data_files.read_csv(read_bytes(path).decode("utf-8").splitlines())


def _images(name: str) -> PaperData:
    root = data_files.folder()
    if root is not None:
        arrays = data_files.load_arrays(root / "splits" / f"{name}.npz")
        parts = ("train", "valid", "test")
        X = [arrays[f"x_{part}"] for part in parts]
        y = [arrays[f"y_{part}"] for part in parts]
        split = PaperSplit(*(arrays[f"row_{part}"] for part in parts))
    else:
        pixels, labels = fetch_images(name)
        order = np.random.RandomState(_SEED).permutation(60_000)
        split = PaperSplit(order[12_000:], order[:12_000], np.arange(10_000))
        first, last = _bright(pixels[:60_000]), _bright(pixels[60_000:])
        X = [first[split.train], first[split.valid], last]
        y = [labels[:60_000][split.train], labels[:60_000][split.valid], labels[60_000:]]
    names = tuple(f"row {i // 28}, column {i % 28}" for i in range(784))
    return PaperData(name, X[0], X[1], X[2], y[0], y[1], y[2], split, names, np.arange(784))


def _bright(pixels: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    limit = pixels.mean(axis=0) + 0.05 * pixels.std(axis=0)
    return (pixels > limit).astype(np.uint8)
