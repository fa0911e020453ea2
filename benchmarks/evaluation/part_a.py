"""Part A: the paper as published, with its authors' circuits and with circuits learned here.

Settings are figure2/CIRCUITS/PERCENT, figure3/CIRCUITS/PERCENT, table1, table2/CIRCUITS,
section5.2/CIRCUITS and refit; CIRCUITS is "authors" (where these are published) or "learned".
"""

from __future__ import annotations

import csv
import json
import time
from functools import cache, cached_property, partial
from types import SimpleNamespace

import numpy as np

from expecta import BooleanEncoder, CircuitModel, CircuitRegressor, Pair, fit_parameters

from . import circuits, data
from .cells import Cells, Key
from .holes import hide_bits
from .metrics import rmse

REPEATS = 10
IMAGE_REPEATS = 3  # as the authors
PERCENTS = range(0, 101, 10)
SPECTRAL = 50  # images for the spectral method, which takes long
STATES = 8


class Bits:
    """One of the four tables in bits, with its pairs."""

    def __init__(self, name: str, cells: Cells, quick: bool) -> None:
        self.name, self.folder, self.quick = name, cells.cache, quick

    @cached_property
    def data(self):
        return data.bits(self.name)

    @cache  # noqa: B019  (one object for each set)
    def pair(self, whose: str) -> Pair:
        if whose == "authors":
            found = data.authors_pair(self.name)
        else:
            found = circuits.best_pair(
                self.data, self.folder, ["bottom-up"] if self.quick else None
            )
        circuits.check(found, self.data.test[0])
        return found

    @cache  # noqa: B019
    def ways(self, whose: str):
        return circuits.ways(self.pair(whose), self.data.test[0])

    def filled(self, percent: int, seed: int) -> np.ndarray:
        """MICE's rows, which both pairs share: they take long."""
        file = self.folder / f"{self.name}-mice-{percent}-{seed}.npz"
        if not file.exists():
            rows = circuits.mice(self.masked(percent, seed), seed)
            np.savez_compressed(file, rows=rows)
        return np.load(file)["rows"]

    def masked(self, percent: int, seed: int) -> np.ndarray:
        return hide_bits(self.data.test[0], self.data.bits[percent], percent, seed)

    def figure2(self, whose: str, method: str, percent: int, seed: int) -> dict[str, float]:
        pair, (_, y) = self.pair(whose), self.data.test
        if method == "mice":
            told = pair.g(self.filled(percent, seed))
        elif method == "monte-carlo":
            told = circuits.monte_carlo(pair, self.masked(percent, seed), seed)
        else:
            told = self.ways(whose)[method](self.masked(percent, seed))
        return {"RMSE": rmse(told, y)}

    def table1(self) -> dict[str, float]:
        parts = {part: len(getattr(self.data, part)[0]) for part in ("train", "valid", "test")}
        return parts | {"features": self.data.test[0].shape[1]}

    def table2(self, method: str) -> dict[str, float]:
        """Seconds: learning one density, or predicting the test rows with half of bits hidden."""
        if method == "learning":
            few = SimpleNamespace(**vars(self.data))
            few.train = few.valid = tuple(z[:200] for z in self.data.train)
            list(circuits.candidates(few, ["bottom-up"]))  # compiles
            (one,) = circuits.candidates(self.data, ["bottom-up"])
            return {"seconds": one.seconds[0], "seconds of g": one.seconds[1]}
        rows = hide_bits(self.data.test[0], self.data.test[0].shape[1] // 2, 50, 0)
        pair = self.pair("learned")
        do = {
            "prediction": lambda: pair.expectation(rows),
            "mice": lambda: pair.g(circuits.mice(rows, 0)),
            "monte-carlo": lambda: circuits.monte_carlo(pair, rows, 0),
        }[method]
        if method == "mice":
            circuits.chained_equations()  # imports
        elif method == "prediction":
            do()  # machine code is cached; what is timed is the work
        start = time.perf_counter()
        do()
        return {"seconds": time.perf_counter() - start}


class Images:
    """One of the two sets of images."""

    def __init__(self, name: str, cells: Cells, quick: bool) -> None:
        self.name, self.folder, self.quick = name, cells.cache, quick

    @cached_property
    def split(self):
        return np.load(data.path("splits", f"{self.name}.npz"))

    @cached_property
    def test(self):
        n = 200 if self.quick else None
        return self.split["x_test"][:n], self.split["y_test"][:n]

    @cache  # noqa: B019
    def pair(self, whose: str) -> Pair:
        found = data.authors_pair(self.name) if whose == "authors" else self._learned()
        circuits.check_images(found, self.test[0])
        return found

    def _learned(self) -> Pair:
        file = self.folder / f"{self.name}.expecta"
        if not file.exists():
            n = 1200 if self.quick else None
            train, valid = (
                (self.split[f"x_{part}"][:n], self.split[f"y_{part}"][:n])
                for part in ("train", "valid")
            )
            splits, states = (4, 2) if self.quick else (circuits.MAX_SPLITS, STATES)
            start = time.perf_counter()
            pair, tried = circuits.image_pair(train, valid, states=states, max_splits=splits)
            seconds = time.perf_counter() - start
            pair.save(file)
            recipe = {"seconds": seconds, "tried": tried}
            file.with_suffix(".json").write_text(json.dumps(recipe, indent=1))
        return Pair.load(file)

    @cache  # noqa: B019
    def ways(self, whose: str):
        pair = self.pair(whose)
        found = circuits.ways(pair, self.split["x_test"])
        # of first order Taylor's formula is the link at the expectation: the same largest class
        found["taylor1"] = found.pop("expected")
        found["spectral"] = lambda rows: pair.expected(rows, "logistic", tol=1e-6).value
        return found

    def figure3(self, whose: str, method: str, percent: int, seed: int) -> dict[str, float]:
        x, y = self.test
        few = SPECTRAL // (10 if self.quick else 1)
        n = few if method == "spectral" else len(x)
        rows = hide_bits(x, int(percent * 7.84), percent, seed)[:n]  # rounded down as theirs
        told = self.ways(whose)[method](rows).argmax(axis=1)
        found = {"accuracy": float(np.mean(told == y[:n])), "images": n}
        if method == "taylor1":
            found["accuracy on the spectral images"] = float(np.mean(told[:few] == y[:few]))
        return found

    def table1(self) -> dict[str, float]:
        parts = {part: len(self.split[f"y_{part}"]) for part in ("train", "valid", "test")}
        return parts | {"features": self.split["x_test"].shape[1]}

    def learning(self) -> dict[str, float]:
        self.pair("learned")
        recipe = json.loads((self.folder / f"{self.name}.json").read_text())
        chosen = recipe["tried"][0]
        return {"seconds": recipe["seconds"]} | {
            f"recipe: {name}": float(value) for name, value in chosen.items()
        }


# -- Section 5.2 ----------------------------------------------------------------------


@cache
def insurance_models():
    """The authors' circuits, and a model learned here from the same 936 rows."""
    X, y, _, _ = data.load("insurance")
    encoder = BooleanEncoder(discrete=["children", "smoker", "region", "sex"]).fit(X)
    theirs = CircuitModel(data.authors_pair("insurance"), encoder, "charges")
    return theirs, CircuitRegressor(random_state=0).fit(X, y)


def queries() -> list[dict[str, str]]:
    """The questions of Section 5.2 and the answers of the authors' code."""
    with data.path("reference", "insurance_queries.csv").open() as file:
        return list(csv.DictReader(file))


def facts_of(query: str) -> dict[str, object]:
    facts: dict[str, object] = dict(
        word.split("=") for word in query.split() if query != "everyone"
    )
    if "children" in facts:
        facts["children"] = int(facts["children"])
    return facts


def answers(line: dict[str, str]):
    """Both models' answers; the authors' circuits must say what their code says."""
    theirs, ours = insurance_models()
    facts = facts_of(line["query"])
    one, two = theirs.ask(facts), ours.ask(facts, population="density")
    for name, true in (("mean", one.mean), ("std", one.std), ("probability", one.share)):
        assert np.isclose(true, float(line[name]), rtol=1e-9), (line["query"], name)
    return one, two


def section52(line: dict[str, str], whose: str) -> dict[str, float]:
    one, two = answers(line)
    if whose == "authors":
        return {"mean": one.mean, "std": one.std, "share": one.share}
    found = {"mean": two.mean, "std": two.std, "share": two.share, "rows": two.rows}
    if two.rows_mean is not None:
        found["mean of rows"] = two.rows_mean.mean
    return found


# -- new parameters -------------------------------------------------------------------

PENALTIES = {"insurance": (0.1, 1.0, 10.0, 100.0), "abalone": (0.1, 1.0, 10.0, 100.0)}
PENALTIES["mnist"] = (30.0, 300.0, 3000.0)


def refit(name: str, towards: str) -> dict[str, float]:
    """The authors' g with new parameters; the penalty is the best on the validation rows.

    Errors are root mean squares, or shares of images whose largest output is another class.
    """
    g = data.authors_pair(name).g
    with np.load(data.path("splits", f"{name}.npz")) as file:
        rows = {part: (file[f"x_{part}"], file[f"y_{part}"]) for part in ("train", "valid", "test")}
    start = time.perf_counter()
    if towards != "theirs":
        g = fit_parameters(
            g, *rows["train"], valid=rows["valid"], penalties=PENALTIES[name], towards=towards
        )
    found = {"seconds": time.perf_counter() - start}
    for part, (x, y) in rows.items():
        told = g(x)
        found[part] = np.mean(told.argmax(axis=1) != y) if told.ndim > 1 else rmse(told, y)
    return found


# -- all of it ------------------------------------------------------------------------


def work(cells: Cells, quick: bool, only: list[str]):
    """Yield every cell and how to compute it; MICE comes last, as it takes hours."""
    late = []
    for name in data.TARGETS if not quick else ["insurance"]:
        if only and name not in only:
            continue
        one = Bits(name, cells, quick)
        yield Key("A", name, "data", "table1", 0), one.table1
        for method in ("learning", "prediction", "monte-carlo"):
            yield Key("A", name, method, "table2/learned", 0), partial(one.table2, method)
        late.append((Key("A", name, "mice", "table2/learned", 0), partial(one.table2, "mice")))
        percents = (0, 50, 100) if quick else PERCENTS
        for whose in ("authors", "learned") if name in ("insurance", "abalone") else ("learned",):
            for seed in range(2 if quick else REPEATS):
                for percent in percents:
                    if percent in (0, 100) and seed:
                        continue  # nothing is drawn
                    setting = f"figure2/{whose}/{percent}"
                    for method in ("expected", "mean", "median", "mpe", "monte-carlo", "mice"):
                        key = Key("A", name, method, setting, seed)
                        do = partial(one.figure2, whose, method, percent, seed)
                        if method != "mice":
                            yield key, do
                        elif 0 < percent < (100 if name != "elevators" else 31):
                            late.append((key, do))
    if not only or "insurance" in only:
        yield from _section52()
    for name in PENALTIES if not quick else ["insurance"]:
        for towards in ("theirs", "given") if name == "mnist" else ("theirs", "zero", "given"):
            if not only or name in only:
                yield Key("A", name, towards, "refit", 0), partial(refit, name, towards)
    yield from _images(cells, quick, only)
    yield from sorted(late, key=lambda item: _when(item[0]))


def _when(key: Key) -> tuple[bool, bool, int]:
    """Times first, then what takes least."""
    return key.setting != "table2/learned", key.set != "insurance", key.seed


def _section52():
    try:
        lines = queries()
    except data.AbsentError:
        return
    for line in lines:
        for whose in ("authors", "learned"):
            key = Key("A", "insurance", line["query"], f"section5.2/{whose}", 0)
            yield key, partial(section52, line, whose)


def _images(cells: Cells, quick: bool, only: list[str]):
    for name in data.IMAGES if not quick else ["mnist"]:
        if only and name not in only:
            continue
        one = Images(name, cells, quick)
        yield Key("A", name, "data", "table1", 0), one.table1
        yield Key("A", name, "learning", "table2/learned", 0), one.learning
        for whose in ("authors", "learned") if name == "mnist" else ("learned",):
            for seed in range(1 if quick else IMAGE_REPEATS):
                for percent in (0, 50) if quick else range(0, 100, 10):
                    if percent == 0 and seed:
                        continue
                    for method in ("taylor1", "mean", "median", "mpe", "spectral"):
                        if method == "spectral" and seed:
                            continue
                        key = Key("A", name, method, f"figure3/{whose}/{percent}", seed)
                        yield key, partial(one.figure3, whose, method, percent, seed)
