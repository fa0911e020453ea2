"""docs/claims.md: what is claimed of part B, each claim with its figure and interval."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from . import figures
from .claim_figures import HALVES, MISSING, SPLITS, TRAINED
from .methods import RETRAINED, TARGET
from .part_b import SETTINGS
from .tables import count_tables, table

FILE = "evaluation/claims.parquet"
METHODS = """
## What was done

Rows of each table are divided 70 to 30 by a seed; at most 4,000 are learned from and 500 are
predicted. **i** trains on complete rows and predicts rows with missing values: MCAR 20% and 50%
hide each cell with that probability, MAR 50% hides half of the columns of half of the rows
(`pyampute`), by what stays known. **ii** has 30% of the cells missing at random in training and
test rows. **iii** trains with 10% missing at random, and predicts rows in which being missing
depends on the value (MNAR 50%). **real**: tables with missing values of their own, trained and
tested as they are.

Models have their libraries' defaults: histogram boosting and linear or logistic regression of
scikit-learn, LightGBM, a random forest (50 trees, leaves of five rows). Ways to predict:

- `expected`: `ExpectedPredictor` with a latent tree. Where training rows have missing values, the
  mean of five, each of a model fitted to one completion of these rows, drawn by the density given
  their known cells and their target.
- `native`: NaN as the model takes it. `mean`, `neighbours`, `chained` (scikit-learn's
  `IterativeImputer`), `forest` (the same with extremely randomised trees): filled in by what was
  learned from the training rows. `multiple`: the mean over ten draws of chained equations; where
  training rows have missing values, five models, each fitted to such a draw. `multiple, target`:
  the draws of training rows see their target, as those of `expected` do.
- To save time some other ways have less here than in earlier evaluations, which helps `expected`:
  `multiple` had twenty draws, and twenty models, and `forest` five rounds where it has three. What
  the smaller numbers cost them was not measured.
- `retrained`: the model fitted anew to the training rows and a copy with missing values *as the
  test rows have them*, which the other ways do not know. It does not leave the model as it is,
  and is not ranked; [losses](losses.md) has it.

A loss is the RMSE or the log-loss. Ranks are among the ways of the same table, seed, setting and
model, averaged over these within a table, then over tables; intervals are a bootstrap over tables.
*More loss* is the median over tables, as a share of the loss of `expected`. Won, level and lost
compare row by row over the test rows of a table, all its settings and models together: level is
within two standard errors. Circuits are `CircuitRegressor` and `CircuitClassifier`. Defaults of the
library were chosen on the odd lines of the list of tables and on the nine, so the even lines carry
the claims.

Everything is in `benchmarks/results/evaluation/B.parquet` (`pandas.read_parquet`), the figures of
this page in `claims.parquet` beside it; [results](results.md#b-tables-with-missing-values) says
when and where they were made. To run it again, after `make .venv/.bench`:

- `python -m benchmarks.evaluation B --tables Carseats --seeds 1`: one table, its losses printed;
- `python -m benchmarks.evaluation B --tables even --jobs 2`: the even lines; a run that was stopped
  goes on where it was;
- `python -m benchmarks.evaluation page`: these pages.
"""


def claims(figures_: pd.DataFrame, seeds: pd.Series, folder: Path) -> str:
    """docs/claims.md: what is claimed, each with its figure and interval.

    ``seeds`` has the number of seeds of each table.
    """
    told = figures_.set_index(["set", "method", "setting", "metric"])["value"].sort_index()
    text = (
        "# Claims\n\nWritten by `python -m benchmarks.evaluation page` from "
        "benchmarks/results/evaluation; not to be edited. Claims are about the even lines of the "
        "list of fifty public tables; the odd lines, on which defaults were chosen, and the nine "
        "tables of earlier evaluations stand beside them. So far "
        f"{count_tables(len(seeds))} were evaluated, divided into training and test rows by "
        f"{_between(seeds.min(), seeds.max())} each. Where others are better: "
        "[losses](losses.md).\n"
    )
    for training, title in (
        (TRAINED, "A model as it was trained, asked with missing values"),
        (MISSING, "Missing values in training too"),
    ):
        text += f"\n## {title}\n\n" + _rank_table(told, training, folder)
    text += "\n## By kind of table\n\n" + _split_table(told)
    text += "\n## Circuits against other models\n\n" + _circuit_table(told)
    text += "\n## Answers about groups\n\n" + _group_table(told)
    text += "\n## Uncertainty\n\n" + _uncertainty_table(told)
    text += "\n## Probabilities\n\n" + _probability_table(told)
    return text + METHODS


def _between(least: int, most: int) -> str:
    if least < most:
        return f"{least} to {most} seeds"
    return "1 seed" if most == 1 else f"{most} seeds"


def _measured(where: str, text: str) -> str:
    return f"<!-- measured: {FILE} {where} -->\n{text}<!-- end -->\n"


def _halves(told: pd.Series, **asked: str) -> list[str]:
    names = pd.MultiIndex.from_frame(told.index.to_frame(index=False))
    keep = np.ones(len(names), bool)
    for level, value in asked.items():
        keep &= names.get_level_values(level) == value
    return [half for half in HALVES if half in set(names[keep].get_level_values("set"))]


def _rank_table(told: pd.Series, training: str, folder: Path) -> str:
    halves = _halves(told, setting=training)
    if not halves:
        return "Not run.\n"
    text = ""
    for half in halves:
        here = told[half].xs(training, level="setting")
        second = here[here.index.get_level_values("metric") == "behind, middle"]
        rival = second.index[0][0]
        lead = [here[rival, f"behind, {metric}"] for metric in ("middle", "low", "high")]
        text += (
            f"\n{HALVES[half].capitalize()}, {count_tables(here['all', 'tables'])}: `expected` "
            f"against `{rival}`, the best of the others: {lead[0]:.2f} ranks ahead (interval "
            f"{lead[1]:.2f} to {lead[2]:.2f}; below zero is behind).\n\n"
        )
        text += _ways(here)
    name = "ranks-trained" if training == TRAINED else "ranks-missing"
    figures.critical_difference(
        {HALVES[half]: told[half].xs(training, level="setting") for half in halves},
        folder / f"{name}.svg",
    )
    return f"![ranks]({folder.name}/{name}.svg)\n\n" + _measured(f'setting="{training}"', text)


def _ways(here: pd.Series) -> str:
    """A line for each way, from figures by way and metric."""
    lines = []
    for way in here.xs("middle", level="metric").sort_values().index:
        told = here[way]
        line = [f"`{way}`", f"{told['middle']:.2f}", f"{told['low']:.2f} to {told['high']:.2f}"]
        if way != "expected":
            line += [
                f"{told['more, middle']:.1%}",
                f"{told['more, low']:.1%} to {told['more, high']:.1%}",
                " / ".join(f"{told[what]:.0f}" for what in ("wins", "ties", "losses")),
            ]
        lines.append(line + [""] * (6 - len(line)))
    names = ["way", "mean rank", "interval", "more loss", "interval ", "won / level / lost"]
    return table(pd.DataFrame(lines, columns=names))


def in_readme(figures_: pd.DataFrame, text: str) -> str:
    """The README with the ways on the even lines, in the passage that is marked so."""
    start = f'<!-- measured: {FILE} set=even setting="{TRAINED}" -->\n'
    told = figures_.set_index(["set", "method", "setting", "metric"])["value"].sort_index()
    if start not in text or "even" not in _halves(told, setting=TRAINED):
        return text
    before, rest = text.split(start)
    return (
        before
        + start
        + _ways(told["even"].xs(TRAINED, level="setting"))
        + ("<!-- end -->" + rest.split("<!-- end -->", 1)[1])
    )


def _circuit_table(told: pd.Series) -> str:
    rivals = ("boosting + expected", "lightgbm + expected", "random forest + expected")
    rivals += ("linear + expected", "boosting + native", "boosting + multiple")
    rivals += (f"boosting + {RETRAINED}", f"boosting + {TARGET}")
    halves, lines = _halves(told), []
    for setting in SETTINGS:
        for rival in rivals:
            cells = []
            for half in halves:
                key = (half, rival, f"circuit, {setting}")
                if (*key, "middle") in told.index:
                    value, low, high = (
                        told[(*key, metric)] for metric in ("middle", "low", "high")
                    )
                    n = told[(*key, "tables")]
                    cells.append(f"{value:.1%} ({low:.1%} to {high:.1%}), {count_tables(n)}")
                else:
                    cells.append("")
            if any(cells):
                lines.append((f"{setting}, {rival}", *cells))
    if not lines:
        return "Not run.\n"
    names = ["setting, rival", *(HALVES[half] for half in halves)]
    return (
        "Loss of circuits, more or less (−) than that of another method, median over tables "
        "with its interval. `i/none` are complete rows, where a way makes no difference.\n\n"
        + _measured("", table(pd.DataFrame(lines, columns=names)))
    )


def _split_table(told: pd.Series) -> str:
    halves, lines = _halves(told), []
    for half in halves:
        for split in [one for pair in SPLITS.values() for one in pair]:
            key = (half, "expected", f"{TRAINED}, {split}")
            if (*key, "middle") not in told.index:
                continue
            here = told[half].xs(key[2], level="setting")
            ranks = here.xs("middle", level="metric").drop("expected").sort_values()
            own = f"{here['expected', 'middle']:.2f}"
            best = f"`{ranks.index[0]}` {ranks.iloc[0]:.2f}"
            n = f"{here['all', 'tables']:.0f}"
            lines.append((f"{split}, {HALVES[half]}", n, own, best))
    if not lines:
        return "Not run.\n"
    names = ["tables with", "tables", "mean rank of `expected`", "best other way"]
    return "Models as they were trained.\n\n" + _measured(
        "", table(pd.DataFrame(lines, columns=names))
    )


def _group_table(told: pd.Series) -> str:
    halves = _halves(told, setting="groups")
    if not halves:
        return "Not run.\n"
    what = {
        "both": "`ask`",
        "rows": "the model over training rows",
        "density": "the density alone",
        "averages": "averages of the training target",
    }
    lines = []
    for half in halves:
        for source, words in what.items():
            here = told[half, source, "groups"]
            signs = f"{here['right signs']:.1%}" if "right signs" in here else ""
            lines.append(
                (
                    f"{words}, {HALVES[half]}",
                    f"{here['tables']:.0f}",
                    f"{here['groups']:,.0f}",
                    f"{here['median error']:.2f}",
                    f"{here['beyond three']:.1%}",
                    signs,
                )
            )
    names = ["answer", "tables", "groups", "median error", "beyond three", "right signs"]
    return (
        "Groups by one and by two columns with 30 rows or more in the training part and in the "
        "held-out part. The error is against the mean of the target over the held-out rows, in "
        "standard errors of that mean alone, so that even the average of an equally large sample "
        "would be off by 0.95 in the median. Right signs: whether a group by one column lies above "
        "or below all rows, where held-out rows say so by two standard errors.\n\n"
        + _measured("setting=groups", table(pd.DataFrame(lines, columns=names)))
    )


def _uncertainty_table(told: pd.Series) -> str:
    lines = []
    for half in _halves(told):
        for setting in ("uncertainty/none", "uncertainty/MCAR 50%"):
            if (half, "circuit", setting, "tables") not in told.index:
                continue
            own, other = told[half, "circuit", setting], told[half, "conformal", setting]
            low, high = own["CRPS, low"], own["CRPS, high"]
            lines.append(
                (
                    f"{setting.removeprefix('uncertainty/')}, {HALVES[half]}",
                    f"{own['tables']:.0f}",
                    f"{own['CRPS, middle']:.1%}",
                    f"{low:.1%} to {high:.1%}",
                    f"{own['CRPS, better']:.0f}",
                    *(
                        f"{own[name]:.1%} / {other[name]:.1%}"
                        for name in ("coverage", "below", "above", "least coverage of a decile")
                    ),
                    f"{own['log score']:.3f} / {other['log score']:.3f}",
                )
            )
    if not lines:
        return "Not run.\n"
    names = ["missing, tables", "tables", "CRPS", "interval", "better on", "coverage"]
    names += ["below", "above", "least coverage of a decile", "log score"]
    return (
        "Distributions of the target by circuits against conformalised quantile regression: "
        "LightGBM, a model for each of 19 levels, each moved by what a quarter of the rows with as "
        "many missing values says. CRPS of circuits, more or less (−), median over tables. Then "
        "circuit / LightGBM: coverage of intervals that should hold 90%, shares of targets below "
        "and above them, their coverage in the worst tenth of the test rows by width (of few rows, "
        "so chance makes it low), and minus the log-probability of the target's tenth.\n\n"
        + _measured("", table(pd.DataFrame(lines, columns=names)))
    )


def _probability_table(told: pd.Series) -> str:
    lines = []
    methods = ("circuit", "boosting + expected", "boosting + native", "boosting + multiple")
    methods += ("boosting + retrained", "linear + expected", "linear + multiple")
    for half in _halves(told):
        for setting in ("i/none", "i/MCAR 20%", "i/MCAR 50%"):
            for method in methods:
                if (half, method, f"probabilities, {setting}", "tables") in told.index:
                    here = told[half, method, f"probabilities, {setting}"]
                    metrics = ("log-loss", "Brier", "AUC", "calibration error")
                    values = [f"{here[metric]:.3f}" for metric in metrics]
                    where = f"{setting}, {HALVES[half]}, {method}"
                    lines.append((where, f"{here['tables']:.0f}", *values))
    if not lines:
        return "Not run.\n"
    names = ["setting, tables, method", "tables", "log-loss", "Brier", "AUC", "calibration error"]
    return (
        "Means over tables of classes. The calibration error is the mean gap between probability "
        "and share over ten bins of as many test rows; chance alone makes it some 0.03.\n\n"
        + _measured("", table(pd.DataFrame(lines, columns=names)))
    )
