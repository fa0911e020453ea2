"""Commands load no module that they do not use, and what is deferred is whole when it is used."""

import subprocess
import sys
import threading

import pytest

from expecta import CircuitRegressor
from expecta.cli.deferred_modules import DeferredModule, defer


def in_new_process(code: str, *words: str) -> str:
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_commands_load_neither_pandas_nor_statistics(tmp_path):
    path = tmp_path / "model.expecta"
    table = {"age": list(range(40)), "smoker": ["yes", "no"] * 20}
    model = CircuitRegressor(random_state=0, max_splits=1).fit(table, [float(i) for i in range(40)])
    model.save(path)
    code = (
        "import sys; from expecta.cli import main\n"
        "try:\n    main()\n"
        "finally:\n"
        "    for name in ('scipy.stats._stats_py', 'pandas.core', 'sklearn.metrics'):\n"
        "        assert name not in sys.modules, name\n"
    )
    answer = in_new_process(code, "ask", str(path), "smoker == 'yes'")
    assert answer.strip() == str(model.ask("smoker == 'yes'")).strip()
    (tmp_path / "rows.csv").write_text("age,smoker\n,yes\n30,\n")
    with_frames = code.replace("'pandas.core', ", "")  # a table may be one of pandas
    predicted = in_new_process(with_frames, "predict", str(path), str(tmp_path / "rows.csv"))
    rows = {"age": [None, 30], "smoker": ["yes", None]}
    found = [float(line.rpartition(",")[2]) for line in predicted.splitlines()[1:]]
    assert found == model.predict(rows).tolist()
    assert "age" in in_new_process(code, "inspect", str(path))


@pytest.mark.parametrize(
    "use",
    [
        "import scipy.stats; print(round(scipy.stats.norm.cdf(0), 9))",
        "from scipy.stats import norm; print(round(norm.cdf(0), 9))",
        "import scipy; print(round(scipy.stats.norm.cdf(0), 9))",
        "from scipy.stats._continuous_distns import norm; print(round(norm.cdf(0), 9))",
        "from scipy.stats.qmc import Sobol; print(Sobol(1, scramble=False).random(2)[1, 0])",
        "import pandas as pd; print(pd.DataFrame({'a': [0.25, 0.75]})['a'].mean())",
    ],
)
def test_a_deferred_module_is_whole_when_it_is_used(use):
    before = (
        "from expecta.cli.deferred_modules import defer; defer('scipy.stats', 'pandas')\n"
        "import sys, sklearn.base\n"
        "assert 'scipy.stats._stats_py' not in sys.modules and 'pandas.core' not in sys.modules\n"
    )
    assert float(in_new_process(before + use)) == 0.5


def test_threads_wait_until_the_module_has_run(tmp_path, monkeypatch):
    (tmp_path / "late_module.py").write_text("import time\ntime.sleep(0.2)\nvalue = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    defer("late_module")
    import late_module

    try:
        assert type(late_module) is DeferredModule
        values = []
        threads = [
            threading.Thread(target=lambda: values.append(late_module.value)) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert values == [3] * 4
        with pytest.raises(AttributeError, match="no attribute 'other'"):
            late_module.other  # noqa: B018
    finally:
        del sys.modules["late_module"]


def test_what_is_not_installed_or_is_loaded_stays_as_it_is():
    defer("no_such_module", "threading")
    assert "no_such_module" not in sys.modules
    assert sys.modules["threading"] is threading
