"""What the README and the docs show must run, and say what they say."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CIRCUITS = (ROOT / "docs" / "circuits.md").read_text(encoding="utf-8")


def test_code_in_the_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # what it saves
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 2
    names: dict = {}
    for block in blocks:
        exec(block, names)
    assert (tmp_path / "charges.expecta").exists()


def test_one_screen_before_the_first_heading():
    """What it is, a picture, some lines of code, how to install it, where to go."""
    first = README[: README.index("\n## ")]
    assert len(first.splitlines()) < 40
    assert all(part in first for part in ("![", "```python", "pip install", "](docs/start/"))


def test_code_of_circuits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", CIRCUITS, re.DOTALL)
    assert len(blocks) == 4
    names: dict = {}
    checked = 0
    for block in blocks:
        exec(block, names)
        for line in block.splitlines():
            claim = re.match(r"(pair\.\S.*?)\s+# (\(?[-\d.]+[^:]*):", line)
            if claim:
                found = np.ravel(eval(claim[1], names))
                said = np.ravel(eval(claim[2]))
                assert found == pytest.approx(said)
                checked += 1
    assert checked == 3


def test_links_in_the_docs():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\(([^)#:]+\.\w+)\)", page.read_text(encoding="utf-8")):
            path = page.parent / target
            if path.parent.name == "gallery":  # a page that is made of an example
                path = ROOT / "examples" / "gallery" / f"{path.stem}.py"
            assert path.exists(), f"{page.name} links to {target}"


def test_calls_in_the_table_exist():
    import expecta

    for owner, name in re.findall(r"`(pair|p)\.(\w+)\(?", CIRCUITS):
        assert hasattr({"pair": expecta.Pair, "p": expecta.ProbabilisticCircuit}[owner], name)


def test_code_of_models(capsys):
    (block,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "models.md").read_text(), re.DOTALL
    )
    names: dict = {}
    exec(block, names)
    for line in block.splitlines():
        claim = re.match(r"(\w+\.predict\(.*?\))\s+# ([\d.]+):", line)
        if claim:
            found = eval(claim[1], names)
            assert found[0] == pytest.approx(float(claim[2]), rel=0.02, abs=0.02)
    assert names["expected"].predict(names["unknown"])[0] == pytest.approx(
        np.mean(names["x"] ** 2), rel=0.02
    )
    assert "Mean of the margin: exact" in capsys.readouterr().out


def test_code_of_questions(capsys):
    page = (ROOT / "docs" / "questions.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 4
    names: dict = {}
    for block in blocks:
        exec(block, names)
    shown = capsys.readouterr().out
    assert "training rows" in shown
    assert "charges by smoker and age where region != 'northwest'" in shown
