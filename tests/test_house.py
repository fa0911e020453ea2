"""The rules of the house: one name is one thing, and the map of the code is true."""

from __future__ import annotations

import ast
import importlib.util
import re
import tomllib
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from expecta import config_context

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "expecta"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAP = ROOT / "docs" / "architecture.md"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
SHARED_NAMES = {"__init__.py", "__main__.py"}  # that Python gives to a file
CODE = re.compile(r"`([^`\n]+)`")
# A folder, or a file in a folder; from the root, from src or from src/expecta.
PATH = re.compile(
    r"(?<![\w/.])((?:[\w.-]+/)+(?:[\w-]+\.(?:py|md|toml|csv|parquet|svg))?)(?![\w/*.<-])"
)


def repeated(names):
    """Names that stand for more than one thing, with the files that have them."""
    paths = defaultdict(list)
    for name, path in names:
        paths[name].append(path)
    return {name: paths[name] for name in paths if len(paths[name]) > 1}


def classes():
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield node.name, str(path.relative_to(PACKAGE))


def exists(path):
    return any((base / path).exists() for base in (ROOT, ROOT / "src", PACKAGE))


def test_no_class_name_is_defined_twice():
    assert repeated(classes()) == {}


def test_no_file_name_is_used_twice():
    modules = [path for path in MODULES if path.name not in SHARED_NAMES]
    assert repeated((path.name, str(path.relative_to(PACKAGE))) for path in modules) == {}


def test_every_folder_is_a_layer_and_is_on_the_map():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert set(layers) == folders
    table = re.findall(r"^\| `(\w+)/` \|", MAP.read_text(encoding="utf-8"), re.MULTILINE)
    assert table == layers  # in their order


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_a_page_names_exists(page):
    text = page.read_text(encoding="utf-8")
    paths = {
        path
        for code in CODE.findall(text)
        for path in PATH.findall(code)
        if not path.startswith(("build/", "../"))
    }
    assert [path for path in sorted(paths) if not exists(path)] == []


def test_every_path_of_the_map_exists():
    text = MAP.read_text(encoding="utf-8")
    paths = set(re.findall(r"(?:[\w-]+/)+[\w-]+\.(?:py|md|toml|csv)", text))
    assert len(paths) > 80
    assert [path for path in sorted(paths) if not exists(path)] == []


def test_every_function_that_the_map_names_is_in_its_file():
    """A step of a walk is written as a file, a colon, and names of that file."""
    steps = re.findall(r"`([\w/]+\.py)`: ((?:`[\w.]+`(?:, )?)+)", MAP.read_text(encoding="utf-8"))
    assert len(steps) > 30
    missing = []
    for path, names in steps:
        code = (PACKAGE / path).read_text(encoding="utf-8")
        for name in re.findall(r"`([\w.]+)`", names):
            for part in name.split("."):
                if not re.search(rf"^ *(?:def|class) {part}\b|^{part}\b.*=", code, re.MULTILINE):
                    missing.append((path, name))
    assert missing == []


def test_what_a_test_leaves_behind_is_seen(monkeypatch, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    path = ROOT / "conftest.py"
    spec = importlib.util.spec_from_file_location("root_conftest", path)
    conftest = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conftest)
    before = conftest.process_state()
    assert conftest.process_state() == before
    monkeypatch.setenv("EXPECTA_DATA", "elsewhere")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    figure = pyplot.figure()
    with config_context(threads=1), np.errstate(all="raise"), np.printoptions(precision=3):
        after = conftest.process_state()
    pyplot.close(figure)
    assert {name for name in before if before[name] != after[name]} == {
        "the environment",
        "the current folder",
        "sys.path",
        "expecta's settings",
        "NumPy's error handling",
        "NumPy's print options",
        "open figures",
    }


def test_every_public_name_is_listed_and_there():
    import expecta

    assert set(expecta.__all__) <= set(dir(expecta))
    assert "Any" not in dir(expecta)
    for name in dir(expecta):
        assert getattr(expecta, name) is not None


def test_the_citation_names_the_version():
    import expecta

    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {expecta.__version__}\n" in citation
    page = (ROOT / "docs" / "reference" / "citing.md").read_text(encoding="utf-8")
    assert f"version = {{{expecta.__version__}}}" in page
