"""Every public name says what it answers, takes and returns, with an example that runs."""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate

ROOT = Path(__file__).parents[1]
# Names of the reference: what stands below "autosummary" of a module.
MODULE = re.compile(r"^\.\. currentmodule:: (\S+)$")
NAME = re.compile(r"^   (\w+)$")
# No docstring, or one without a summary; parameters that are not told, or told and not there, or in
# another order; no word on what is returned or yielded.
CODES = {"GL08", "SS01", "PR01", "PR02", "PR03", "RT01", "YD01"}
HOOKS = tomllib.loads((ROOT / "docs" / "hooks.toml").read_text(encoding="utf-8"))["hooks"]


def listed():
    """Names of the pages of the reference."""
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        module = None
        for line in page.read_text(encoding="utf-8").splitlines():
            if found := MODULE.match(line):
                module = found[1]
            elif module and (found := NAME.match(line)):
                yield f"{module}.{found[1]}"


NAMES = sorted(set(listed()))


def resolve(name):
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def ours(name):
    """Return a name and, of a class, its public methods that Expecta defines."""
    yield name, resolve(name)
    if inspect.isclass(resolve(name)):
        for member, value in inspect.getmembers(resolve(name)):
            value = inspect.unwrap(value) if callable(value) else value
            module = getattr(value, "__module__", "") or ""
            if (
                not member.startswith("_")
                and member not in HOOKS
                and inspect.isroutine(value)
                and module.startswith("expecta")
            ):
                yield f"{name}.{member}", value


def told(name, value):
    """Return the faults of a docstring.

    A summary that begins with "Return" needs no section on what is returned, and what is given to
    a class whose instances keep it may stand among its attributes.
    """
    errors = {code: text for code, text in validate(name)["errors"] if code in CODES}
    doc = NumpyDocString(inspect.getdoc(value) or "")
    if doc["Summary"] and doc["Summary"][0].split()[0] in ("Return", "Whether"):
        errors.pop("RT01", None)
    if inspect.isclass(value) and "PR01" in errors:
        kept = {one.strip() for entry in doc["Attributes"] for one in entry.name.split(",")}
        if set(re.findall(r"'([*\w]+)'", errors["PR01"])) <= kept:
            errors.pop("PR01")
    return errors


def faults(name):
    return [
        f"{one}: {code} {text}"
        for one, value in ours(name)
        for code, text in told(one, value).items()
    ]


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_are_complete(name):
    if name.startswith("expecta.dask"):
        pytest.importorskip("dask.dataframe")
    assert faults(name) == []
    text = inspect.getdoc(resolve(name)) or ""
    assert NumpyDocString(text)["Examples"], f"{name} has no example"


def test_every_public_name_is_in_the_reference():
    import expecta

    in_reference = {name.rpartition(".")[2] for name in NAMES}
    assert set(expecta.__all__) - {"datasets"} <= in_reference


def test_a_fault_is_found():
    """A function that tells nothing of what it takes."""
    assert len(NAMES) > 60
    assert {code for code, _ in validate("re.compile")["errors"]} >= {"PR01", "RT01"}
