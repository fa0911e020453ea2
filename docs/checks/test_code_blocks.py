"""Run every block of code of the pages, and every command that they show; `make docs` does.

The Python blocks of a page run one after the other, in an empty folder. What a page does not show
but needs stands in a comment, ``<!-- run: ... -->``; a block that other tests run, or that needs a
machine of its own, stands below ``<!-- not run: where it is tested, or why not -->``.
"""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from typer.testing import CliRunner

from expecta.datasets import load_insurance

DOCS = Path(__file__).parents[1]
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "```python" in page.read_text("utf-8")]
PIECE = re.compile(
    r"<!-- run:\n(?P<hidden>.*?)-->|"
    r"(?P<left><!-- not run: [^>]*-->\n\n?)?```python\n(?P<code>.*?)```",
    re.DOTALL,
)
# Started elsewhere: they do not end, take minutes, or need files that only the reader has.
ELSEWHERE = {"serve", "warm-up", "demo", "bench", "wrap"}


def pieces(page):
    """Yield the code of a page that is to run."""
    text = page.read_text(encoding="utf-8")
    assert text.count("<!-- run:") + text.count("```python") == len(PIECE.findall(text)), page
    for match in PIECE.finditer(text):
        if not match["left"]:
            yield match["hidden"] or match["code"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_code_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "__main__"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for code in pieces(page):
            exec(compile(code, str(page), "exec"), names)
    plt.close("all")


def test_most_blocks_run():
    left = sum(
        bool(match["left"]) for page in PAGES for match in PIECE.finditer(page.read_text("utf-8"))
    )
    run = sum(len(list(pieces(page))) for page in PAGES)
    assert left <= 3
    assert run > 40


def commands():
    for page in sorted(DOCS.rglob("*.md")):
        for block in re.findall(r"```sh\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            for line in block.splitlines():
                words = shlex.split(line, comments=True)
                if words[:1] == ["expecta"] and words[1] not in ELSEWHERE:
                    yield tuple(words[1:])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the tables that the commands name."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import csv, parquet

    place = tmp_path_factory.mktemp("commands")
    table = pa.Table.from_pandas(load_insurance(), preserve_index=False)
    csv.write_csv(table, place / "people.csv")
    rows = table.drop_columns("charges").slice(0, 20)
    csv.write_csv(rows, place / "new.csv")
    parquet.write_table(rows, place / "claims.parquet")
    for part in ("claims", "predicted"):
        (place / part).mkdir()
    parquet.write_table(rows, place / "claims" / "one.parquet")
    return place


def test_commands_run(folder, monkeypatch):
    from expecta.cli.app import app

    monkeypatch.chdir(folder)
    asked = sorted(set(commands()), key=lambda words: words[0] != "fit")
    assert len(asked) > 8
    done = set()
    for words in asked:
        if words[0] == "fit" and "fit" in done:
            continue
        result = CliRunner().invoke(app, list(words))
        assert result.exit_code == 0, (words, result.output)
        done.add(words[0])
