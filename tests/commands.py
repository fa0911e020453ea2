"""Commands as a shell would run them, and a small table for them."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
from typer.testing import CliRunner

from expecta.cli.app import app


def run(*words, stdin=None):
    """Run a command as a shell would."""
    return CliRunner().invoke(app, [str(word) for word in words], input=stdin)


def good(*words, stdin=None):
    """Run a command that is to succeed, and return its standard output."""
    found = run(*words, stdin=stdin)
    assert found.exit_code == 0, found.output + found.stderr
    return found.stdout


def parsed(*words, stdin=None):
    """Run a command with --json, and return the document: all of its standard output."""
    return json.loads(good(*words, "--json", stdin=stdin))


def bad(*words, code=1, stdin=None):
    """Run a command that is to fail, and return the line that says why."""
    found = run(*words, stdin=stdin)
    assert found.exit_code == code, (found.exit_code, found.output)
    assert found.stdout == ""
    if code == 1:
        (line,) = found.stderr.splitlines()
        assert line.startswith("error: ")
        assert "Traceback" not in line
        assert "unexpected" not in line
        return line
    return found.stderr


def people(n=120, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 60, n)
    smoker = np.where(rng.random(n) < 0.3, "yes", "no")
    region = rng.choice(["east", "north", "west"], n)
    cost = 100.0 * age + 9000.0 * (smoker == "yes") + 500.0 * rng.standard_normal(n)
    unknown = rng.random(n) < 0.1
    return pa.table(
        {
            "age": pa.array(age, mask=unknown),
            "smoker": pa.array(smoker.tolist()),
            "region": pa.array(region.tolist()),
            "cost": cost.round(2),
        }
    )
