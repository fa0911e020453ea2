"""Write docs/results.md and its pictures from the files of results, and from nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from . import data, figures
from .cells import LAST, read
from .metrics import ranks

OURS = ("circuit", "expected")
NEITHER = ("monte carlo",)  # our density, not our way
LEAST = 0.005  # a loss is told where it is more than this share
TABLE1 = {  # of the paper
    "abalone": (2923, 584, 670, 71),
    "delta-ailerons": (4990, 998, 1141, 55),
    "elevators": (11619, 2323, 2657, 182),
    "insurance": (936, 187, 215, 36),
    "mnist": (48000, 12000, 10000, 784),
    "fmnist": (48000, 12000, 10000, 784),
}
TABLE2 = {  # of the paper: learning, prediction, MICE, Monte Carlo
    "abalone": (82, 20, 43, 117),
    "delta-ailerons": (53, 24, 27, 126),
    "insurance": (40, 13, 11, 20),
    "elevators": (2105, 31, 364, 994),
}
SCENARIOS = {
    "i": "trained on complete rows, tested with holes",
    "ii": "the same holes in training and test rows",
    "iii": "shift: 10% of the training cells at random, other holes in the test rows",
}
WEAKNESSES = """\
Weaknesses of the protocol, which is followed to the letter:

- *Bits* are hidden, not features: with nine of ten bits of a feature known, the tenth is known too.
- Mean and median are those of the *test* rows.
- MICE is a single pass over the test rows; the training rows take no part. At a high share some
  column may have no known value, and MICE no answer.
- Monte Carlo of the authors' code draws dependent samples. Here draws are independent.
- Pixels are thresholded by statistics of the test images where these are the test images.
"""
METHODS = """
A method is a model (scikit-learn's histogram boosting, XGBoost, LightGBM, ridge or logistic
regression, with their defaults) and what it does about holes. Cells are hidden, not bits.

- `circuit`: `CircuitRegressor` or `CircuitClassifier`, which need nothing else.
- `expected`: `ExpectedPredictor` with a latent tree. Where training rows have holes, the mean of
  five, each of a model fitted to one completion of these rows, drawn given their known cells and
  their target.
- `monte carlo`: the same model averaged over draws from the same density, for the same time.
- `native`: NaN as the model takes it. `mean`, `median`, `neighbours`, `chained` (scikit-learn's
  `IterativeImputer`), `forest` (the same with extremely randomised trees): filled in, fitted on the
  training rows. `multiple`: the mean over 20 draws of chained equations.
- `indicator`: means and marks for holes; where training rows are complete the model is fitted to
  them and to a copy with holes *as the test rows have them*, which the others do not see.

Rows are dealt 70 to 30 by each seed. Rows of the source that have holes of their own are left out.
"""


def load(folder: Path, part: str) -> pd.DataFrame:
    """A part's results, one line for each metric of each cell."""
    lines = read(folder / f"{part}.csv")
    frame = pd.DataFrame(
        lines, columns=["part", "set", "method", "setting", "seed", "metric", "value", "run"]
    )
    return frame.astype({"seed": int, "value": float})


def wide(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds, a column for each metric."""
    means = frame.groupby(["set", "method", "setting", "metric"], sort=False)["value"].mean()
    return means.unstack("metric").reset_index()


def table(frame: pd.DataFrame, digits: int = 4) -> str:
    """Markdown; numbers with so many digits."""

    def cell(value: object) -> str:
        if isinstance(value, float | np.floating):
            return "" if np.isnan(value) else number(float(value), digits)
        return str(value)

    lines = ["| " + " | ".join(map(str, frame.columns)) + " |"]
    lines.append("|" + " --- |" * len(frame.columns))
    lines += ["| " + " | ".join(map(cell, line)) + " |" for line in frame.itertuples(index=False)]
    return "\n".join(lines) + "\n"


def number(value: float, digits: int = 4) -> str:
    """Significant digits, thousands with commas."""
    if value and abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


# -- part A ---------------------------------------------------------------------------


def split_setting(frame: pd.DataFrame, start: str) -> pd.DataFrame:
    """Cells of a figure, its setting as columns."""
    here = frame[frame["setting"].str.startswith(start + "/")].copy()
    parts = here["setting"].str.split("/")
    here["circuits"] = parts.str[1]
    here["percent"] = parts.str[2].fillna(0).astype(int)
    return here


def over_seeds(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    here = frame[frame["metric"] == metric]
    keys = ["set", "circuits", "method", "percent"]
    found = here.groupby(keys, sort=False)["value"].agg(["mean", "std", "count"])
    return found.reset_index()


def published() -> pd.DataFrame:
    try:
        frame = pd.DataFrame(data.published())
    except data.AbsentError:
        frame = pd.DataFrame(columns=["dataset", "method", "percent", "mean", "std", "repeats"])
    return frame.astype({"percent": int, "mean": float, "std": float, "repeats": int})


def agreement(found: pd.DataFrame, true: pd.DataFrame) -> pd.DataFrame:
    """Beside what was published: the ratio, and how many standard errors lie between."""
    both = found.merge(
        true.rename(columns={"dataset": "set", "mean": "published", "std": "their std"}),
        on=["set", "method", "percent"],
    )
    noise = np.hypot(
        both["std"].fillna(both["their std"]) / np.sqrt(both["count"]),
        both["their std"] / np.sqrt(both["repeats"]),
    )
    both["ratio"] = both["mean"] / both["published"]
    both["errors apart"] = (both["mean"] - both["published"]) / np.maximum(
        noise, 1e-6 * both["published"].abs()
    )
    return both


def figure(frame: pd.DataFrame, which: str, metric: str, folder: Path, less: bool) -> str:
    found = over_seeds(split_setting(frame, which), metric)
    if not len(found):
        return "Not run.\n"
    true = published()
    figures.curves(found, folder / f"{which}.svg", metric=metric, published=true)
    text = f"![{which}]({folder.name}/{which}.svg)\n\n"
    text += "Bands: one standard deviation over masks. Crosses: published.\n\n"
    shown = found.assign(what=found["set"] + ", " + found["circuits"])
    grid = shown.pivot_table(index=["what", "percent"], columns="method", values="mean", sort=False)
    text += table(grid.reset_index().rename(columns={"what": "set, circuits", "percent": "%"}))
    asked = frame[frame["metric"] == "images"]
    if len(asked) and asked["value"].max() < TABLE1["mnist"][2]:
        return text + "\nOn a part of the test images: not to be compared with the published.\n"
    both = agreement(found, true)
    for whose, here in both.groupby("circuits"):
        if whose == "authors":
            near = here["errors apart"].abs() <= 2
            text += (
                f"\nThe authors' circuits: {near.sum()} of {len(here)} points lie within two "
                "standard errors of the published ones (for normal noise 95% would).\n"
            )
            far = here[here["errors apart"].abs() > 4]
            if len(far):
                columns = ["set", "method", "percent", "mean", "published", "errors apart"]
                text += "\nFurther than four:\n\n" + table(far[columns])
        else:
            main = here[here["method"].isin(["expected", "taylor1"])]
            won = main["ratio"] <= 1 if less else main["ratio"] >= 1
            text += (
                f"\nCircuits learned here: no worse than published at {won.sum()} of {len(main)} "
                f"points; ratios {main['ratio'].min():.3f} to {main['ratio'].max():.3f}.\n"
            )
    return text


def part_a(frame: pd.DataFrame, folder: Path) -> str:
    text = WEAKNESSES + "\n### Figure 2: regression with missing bits\n\n"
    text += figure(frame, "figure2", "RMSE", folder, less=True)
    text += "\n### Figure 3: images with missing pixels\n\n"
    text += figure(frame, "figure3", "accuracy", folder, less=False)
    text += spectral(frame)
    text += "\n### Table 1: data\n\n" + table1(frame)
    text += "\n### Table 2: seconds\n\n" + table2(frame)
    return text + "\n### Section 5.2: questions\n\n" + section52(frame)


def spectral(frame: pd.DataFrame) -> str:
    """The spectral method is asked about a few images; Taylor's formula about the same."""
    here = split_setting(frame, "figure3")
    same = here[(here["metric"] == "accuracy on the spectral images") & (here["seed"] == 0)]
    told = here[(here["metric"] == "accuracy") & (here["method"] == "spectral")]
    keys = ["set", "circuits", "percent"]
    both = told[[*keys, "value"]].merge(same[[*keys, "value"]], on=keys, suffixes=("", " same"))
    if not len(both):
        return ""
    names = {"value": "spectral", "value same": "taylor1"}
    return (
        "\nThe spectral method, which takes long, is asked about the first images of one mask "
        f"only ({int(here[here['metric'] == 'images']['value'].min())}); Taylor's formula on the "
        "same:\n\n" + table(both.rename(columns=names))
    )


def table1(frame: pd.DataFrame) -> str:
    here = wide(frame[(frame["setting"] == "table1") & (frame["metric"] != LAST)])
    lines = []
    for line in here.to_dict("records"):
        found = tuple(int(line[key]) for key in ("train", "valid", "test", "features"))
        same = "same" if found == TABLE1[line["set"]] else "differs"
        words = " / ".join(map(str, found)), " / ".join(map(str, TABLE1[line["set"]]))
        lines.append((line["set"], *words, same))
    names = ["set", "here: train / valid / test / features", "paper", ""]
    return table(pd.DataFrame(lines, columns=names))


def table2(frame: pd.DataFrame) -> str:
    here = frame[(frame["setting"] == "table2/learned") & (frame["metric"] == "seconds")]
    grid = here.pivot_table(index="set", columns="method", values="value", sort=False)
    lines = []
    for name, line in grid.iterrows():
        row = {"set": name}
        for k, method in enumerate(("learning", "prediction", "mice", "monte-carlo")):
            theirs = f" ({TABLE2[name][k]})" if name in TABLE2 else ""
            value = line.get(method, np.nan)
            row[method] = "" if np.isnan(value) else number(value, 3) + theirs
        lines.append(row)
    return (
        table(pd.DataFrame(lines))
        + "\nLearning is of one generative circuit, prediction of all test rows with half of the "
        "bits hidden, Monte Carlo with 100 draws a row; in brackets the paper's, on a laptop with "
        "6 cores.\n"
    )


def section52(frame: pd.DataFrame) -> str:
    here = split_setting(frame, "section5.2")
    if not len(here):
        return "Not run.\n"
    grid = here[here["metric"] != LAST].pivot_table(
        index="method", columns=["circuits", "metric"], values="value", sort=False
    )
    grid.columns = [f"{whose}: {metric}" for whose, metric in grid.columns]
    return (
        "The authors' circuits answer as their code does (checked to 1e-9); the paper's text "
        "swaps female and male, and its SW is northwest.\n\n"
        + table(grid.reset_index().rename(columns={"method": "question"}))
    )


# -- part B ---------------------------------------------------------------------------


def main_metric(cells: pd.DataFrame) -> pd.DataFrame:
    """One number for each cell, less is better: RMSE or log-loss."""
    both = cells.reindex(columns=["RMSE", "log-loss"])
    return cells.assign(loss=both["RMSE"].fillna(both["log-loss"]))


def part_b(frame: pd.DataFrame, folder: Path) -> str:
    cells = main_metric(wide(frame))
    cells["scenario"] = cells["setting"].str.split("/").str[0]
    text = "".join(f"- **{key}**: {what}.\n" for key, what in SCENARIOS.items())
    text += METHODS
    text += "\n### Ranks\n\n" + rank_tables(cells, folder)
    text += "\n### Where we lose\n\n" + losses(cells)
    text += "\n### Intervals\n\n" + interval_tables(frame, folder)
    text += "\n### Every figure\n"
    skip = [c for c in cells if "@" in str(c)] + [LAST, "loss", "scenario", "exact form", "draws"]
    shown = cells.drop(columns=[c for c in skip if c in cells])
    for (name, setting), here in shown.groupby(["set", "setting"], sort=False):
        here = here.dropna(axis=1, how="all").drop(columns=["set", "setting"])
        key = "RMSE" if "RMSE" in here else "log-loss"
        text += f"\n<details><summary>{name}, {setting}</summary>\n\n"
        text += table(here.sort_values(key)) + "\n</details>\n"
    return text


def rank_tables(cells: pd.DataFrame, folder: Path) -> str:
    found, text = {}, ""
    for scenario, here in cells.groupby("scenario"):
        grid = here.pivot_table(index=["set", "setting"], columns="method", values="loss")
        ranked = grid.rank(axis=1).groupby("set").mean()  # a data set counts once
        complete = ranked.dropna(axis=1)
        left = sorted(set(grid.columns) - set(complete.columns))
        found[f"scenario {scenario}, data sets: {len(complete)}"] = ranks(complete)
        if left:
            text += f"Not ranked in {scenario}, as some set has no figure: {', '.join(left)}.\n\n"
    figures.ranks(found, folder / "ranks.svg", OURS)
    text += f"![ranks]({folder.name}/ranks.svg)\n\n"
    text += (
        "By RMSE or log-loss, mean over settings within a set, then over sets; 95% intervals are a "
        "bootstrap over sets, and say little where sets are few.\n"
    )
    for title, ranked in found.items():
        shown = ranked.reset_index(names="method").round(2)
        shown["95%"] = [f"{a:g} to {b:g}" for a, b in zip(shown["low"], shown["high"], strict=True)]
        text += f"\n{title}\n\n" + table(shown[["method", "rank", "95%"]])
    return text


def losses(cells: pd.DataFrame) -> str:
    """Plainly: the best of ours against the best of the others, and model by model."""
    lines = []
    for (name, setting), here in cells.groupby(["set", "setting"], sort=False):
        loss = here.set_index("method")["loss"].dropna()
        for what, group in groups(loss):
            own = group[[method.split(" + ")[-1] in OURS for method in group.index]]
            other = group[
                [method.split(" + ")[-1] not in (*OURS, *NEITHER) for method in group.index]
            ]
            if len(own) and len(other) and own.min() > other.min() * (1 + LEAST):
                ours, theirs = (f"{one.idxmin()} {number(one.min())}" for one in (own, other))
                lines.append((name, setting, what, ours, theirs, own.min() / other.min() - 1))
    names = ["set", "setting", "among", "ours", "better", "we lose by"]
    found = pd.DataFrame(lines, columns=names).sort_values("we lose by", ascending=False)
    total = cells.groupby(["set", "setting"]).ngroups
    best = found[found["among"] == "all"]
    text = (
        f"Among all methods another is better than the best of ours in {len(best)} of {total} "
        f"settings of a set, by more than {LEAST:.1%} of RMSE or log-loss. Model by model:\n\n"
    )
    found["we lose by"] = [f"{share:.1%}" for share in found["we lose by"]]
    return text + (table(found) if len(found) else "Nowhere.\n")


def groups(loss: pd.Series):
    """All methods; then for each model what can be done about its holes."""
    yield "all", loss
    for name in dict.fromkeys(m.split(" + ")[0] for m in loss.index if " + " in m):
        yield name, loss[[m.startswith(f"{name} + ") for m in loss.index]]


def interval_tables(frame: pd.DataFrame, folder: Path) -> str:
    here = frame[frame["metric"].isin(["CRPS", "coverage", "width"])]
    if not len(here):
        return "Not run.\n"
    by = frame[frame["metric"].str.contains("@")].copy()
    parts = by["metric"].str.split("@", expand=True)
    by["what"], by["holes"] = parts[0], parts[1].astype(int)
    grid = by.pivot_table(
        index=["set", "method", "setting", "seed", "holes"], columns="what", values="value"
    ).reset_index()
    for what in ("coverage", "width"):
        grid[what] *= grid["rows"]
    pooled = grid.groupby(["set", "method", "holes"])[["coverage", "width", "rows"]].sum()
    for what in ("coverage", "width"):
        pooled[what] /= pooled["rows"]
    pooled = pooled.reset_index()
    figures.coverage(pooled[pooled["rows"] >= 20], folder / "coverage.svg")
    text = f"![coverage]({folder.name}/coverage.svg)\n\n"
    text += (
        "All scenarios together, by the number of holes in a row (at least 20 rows). Circuits and "
        "expected predictions have intervals of their own; for the others they are residuals of "
        "rows that were held out, with holes like those of the test rows, which is generous.\n\n"
    )
    return text + table(wide(here).drop(columns=[LAST], errors="ignore"))


# -- parts C and D --------------------------------------------------------------------


def part_c(frame: pd.DataFrame, folder: Path) -> str:
    from .part_c import SETS, TABLES

    text = ""
    grid = frame[frame["metric"] == "test"].pivot_table(
        index="set", columns="method", values="value", sort=False
    )
    spent = frame[frame["metric"] == "seconds"].pivot_table(
        index="set", columns="method", values="value", sort=False
    )
    for marks, heads in ((TABLES, ["mark", "authors"]), (SETS, ["Strudel", "4 hidden trees"])):
        lines = []
        for name in [name for name in marks if name in grid.index]:
            line = dict(zip(["set", *heads], [name, *marks[name]], strict=True))
            for method in grid.columns:
                score, seconds = grid.loc[name, method], spent.loc[name, method]
                line[method] = "" if np.isnan(score) else f"{score:.2f} ({seconds:.0f} s)"
            lines.append(line)
        if lines:
            text += table(pd.DataFrame(lines)) + "\n"
    return "Mean log-likelihood of test rows in nats, and seconds to learn.\n\n" + text


def part_d(frame: pd.DataFrame, folder: Path) -> str:
    text, panels = "", {}
    cells = wide(frame[frame["metric"] != LAST])
    for setting, here in cells.groupby("setting", sort=False):
        here = here.drop(columns="setting").dropna(axis=1, how="all")
        text += f"\n### {setting}\n\n" + table(here, 3)
        axes = {
            "rows": ("rows", "CPU seconds"),
            "sizes": ("joins", "CPU seconds"),
            "orders": ("order", "CPU seconds"),
        }.get(setting)
        if axes and set(axes) <= set(here.columns) and len(here) > 1:
            panels[f"cost against {axes[0]}"] = here[list(axes)]
    if panels:
        figures.scaling(panels, folder / "scaling.svg")
        text = f"![scaling]({folder.name}/scaling.svg)\n" + text
    return text


# -- the page -------------------------------------------------------------------------

PARTS = {
    "A": ("The paper as published", part_a),
    "B": ("Tables with holes", part_b),
    "C": ("Densities", part_c),
    "D": ("Speed", part_d),
}


def provenance(folder: Path, part: str, frame: pd.DataFrame) -> str:
    """When, where and how a part was made, and what was skipped in its last run."""
    runs = json.loads((folder / f"{part}.json").read_text("utf-8"))["runs"]
    used = sorted({int(run) for run in frame["run"]})
    seeds = sorted(set(frame["seed"]))
    cells = frame[frame["metric"] == LAST]
    text = (
        f"{len(cells)} cells, {number(cells['value'].sum() / 60, 3)} minutes; seeds "
        f"{', '.join(map(str, seeds))}.\n"
    )
    for run in [runs[k] for k in used if k < len(runs)]:
        versions = ", ".join(f"{name} {which}" for name, which in run["versions"].items())
        text += (
            f"\n- `{run['command']}`, {run['since']} to {run.get('until', 'a stop')}; "
            f"{run['machine']}; Python {run['python']}; {versions}."
        )
    skipped = runs[-1].get("skipped", {}) if runs else {}
    if skipped:
        text += "\n\nSkipped in the last run:\n"
        text += "".join(f"\n- {why} ({count} cells)" for why, count in skipped.items())
    return text + "\n"


def write(results: Path, docs: Path) -> Path:
    """Write docs/results.md and docs/results/*.svg; returns the page."""
    folder = docs / "results"
    text = (
        "# Results\n\nWritten by `python -m benchmarks.evaluation page` from the files in "
        "benchmarks/results/evaluation; not to be edited. `make paper` makes all of it anew or "
        "goes on where it stopped.\n"
    )
    for part, (title, tell) in PARTS.items():
        frame = load(results, part)
        text += f"\n## {part}. {title}\n\n"
        if not len(frame):
            text += "Not run.\n"
            continue
        text += provenance(results, part, frame) + "\n" + tell(frame, folder)
    docs.mkdir(parents=True, exist_ok=True)
    page = docs / "results.md"
    page.write_text(text, "utf-8")
    return page
