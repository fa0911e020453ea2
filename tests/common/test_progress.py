"""Long calls say where they are, where someone looks, and nothing elsewhere."""

import re
import time

import numpy as np
import pytest

from expecta import ChowLiu, CircuitRegressor, config_context
from expecta.common import progress
from expecta.common.progress import Progress, Stages, begin_stage, in_stages, record_stages


class Worker:
    """Works in three stages, and calls itself within the second."""

    @in_stages({"first": 1, "second": 2, "third": 1})
    def fit(self, depth: int = 1) -> str:
        time.sleep(0.01)
        begin_stage("second")
        if depth:
            self.fit(depth - 1)
        begin_stage("nothing of the kind")
        begin_stage("third")
        begin_stage("first")  # is past
        return "done"


def lines(capsys) -> list[str]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_stages_are_recorded_once_each_and_in_order():
    with record_stages() as seconds:
        assert Worker().fit() == "done"
    assert list(seconds) == ["first", "second", "third"]
    assert seconds["first"].wall >= 0.01
    assert seconds["second"].wall >= 0.01  # the call within it


def test_nothing_is_printed_into_pipes(capsys, monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.0)
    Worker().fit()
    assert lines(capsys) == []


def test_stages_are_printed_with_an_estimate_if_asked(capsys, monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.0)
    with config_context(progress=True):
        Worker().fit()
    printed = lines(capsys)
    assert [re.findall(r"Worker: (\w+) \((\d) of 3\)", line) for line in printed] == [
        [("first", "1")],
        [("second", "2")],
        [("third", "3")],
    ]
    assert "left" not in printed[0]
    assert all("about 0 s left" in line for line in printed[1:])


def test_the_estimate_follows_from_the_shares(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    with config_context(progress=True), Stages("call", {"a": 1, "b": 2, "c": 1}) as stages:
        stages.begin("a")
        now[0] = 10.0
        stages.begin("b")
        now[0] = 28.0
        stages.begin("c")
    assert lines(capsys) == [
        "call: b (2 of 3), 10 s so far, about 30 s left",
        "call: c (3 of 3), 28 s so far, about 9 s left",
    ]


def test_a_notebook_is_someone_who_looks(capsys, monkeypatch):
    class ZMQInteractiveShell:
        pass

    class Shell:
        get_ipython = staticmethod(ZMQInteractiveShell)

    monkeypatch.setitem(progress.sys.modules, "IPython", Shell)
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.0)
    Worker().fit(0)
    assert len(lines(capsys)) == 3
    with config_context(progress=False):
        Worker().fit(0)
    assert lines(capsys) == []


def test_bars_within_stages_are_details_of_them(capsys, monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.0)
    with config_context(progress=True), Stages("call", {"a": 1}) as stages:
        stages.begin("a")
        with Progress("rows", 10) as bar:
            bar.advance(5)
            assert bar._bar is None
    assert lines(capsys) == ["call: a (1 of 1), 0 s so far"]


def test_an_error_ends_the_stages():
    with pytest.raises(ZeroDivisionError), Stages("call", {"a": 1}):
        raise ZeroDivisionError
    with record_stages() as seconds:
        Worker().fit(0)
    assert list(seconds) == ["first", "second", "third"]


def test_fit_has_stages():
    x = np.arange(60.0)
    with record_stages() as seconds:
        CircuitRegressor(density=ChowLiu(), calibration_rows=10).fit(x[:, None] % 7, x)
    assert list(seconds) == [
        "reading",
        "density",
        "finer bins",
        "completions",
        "circuit",
        "calibration",
    ]
