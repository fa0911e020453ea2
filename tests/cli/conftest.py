"""A small table, and a model of each kind that the command line learned from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import csv

from commands import good, people


@pytest.fixture(scope="session")
def place(tmp_path_factory) -> Path:
    """A folder with a table, rows with holes, a regressor and a classifier."""
    folder = tmp_path_factory.mktemp("cli")
    csv.write_csv(people(), folder / "people.csv")
    rows = "id,age,smoker,region\n7,40,,east\n8,,,\n9,33,yes,west\n10,50,no,\n"
    (folder / "rows.csv").write_text(rows)
    options = ["--density", "chow-liu", "--max-bins", 8, "--quiet"]
    table = folder / "people.csv"
    assert good("fit", table, "-t", "cost", "-o", folder / "cost.expecta", *options) == ""
    assert good("fit", table, "-t", "region", "-o", folder / "region.expecta", *options) == ""
    return folder
