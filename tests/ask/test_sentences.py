"""Render every answer in every combination of sign, count and kind, to be read by a person.

The text is written to build/sentences.txt. What is known to read badly is refused here.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.neighbors import KNeighborsRegressor

from expecta import ChowLiu, CircuitClassifier, CircuitRegressor, Encoder, ExpectedPredictor
from expecta.tables.column_notes import _SENTENCES, ColumnNotes

ROOT = Path(__file__).parents[2]
N = 160
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"age": RNG.integers(20, 70, N), "size": RNG.normal(size=N).round(2)})
FRAME["sex"] = np.where(RNG.random(N) < 0.5, "female", "male")
FRAME["group"] = RNG.choice(["a", "b", "c"], N)
COST = pd.Series(FRAME["age"] + 20 * (FRAME["sex"] == "male") + FRAME["size"], name="cost")
RISK = pd.Series(np.where(COST.median() < COST, "high", "low"), name="risk")
QUICK = {"density": ChowLiu(), "max_splits": 1}
NUMBERS = FRAME[["age", "size"]]
BAD = {
    r"-[\d.,]+ (more|above|higher)": "a negative amount is not more",
    r"\bnan\b|\bNone\b|\binf\b": "what is not known is not printed",
    r"\b1 (rows|columns|groups|categories|pairs|values|cells)\b": "one is singular",
    r"where all rows": "all rows need no condition",
    r"(?<=\S)  +(?=[a-z]+ [a-z]+ [a-z]+)": "two spaces in a sentence",
    r"(?<!\.)\.\.(?!\.)": "two full stops",
    r"\bholes?\b|seen rows|law of|lies about|one of which|so many": "words that are not used",
    r"\((-?[\d.,]+)\) and the training rows \(\1\)": "equal numbers do not disagree",
}


def models():
    yield "regressor", CircuitRegressor(**QUICK).fit(FRAME, COST), None
    yield "classifier", CircuitClassifier(**QUICK).fit(FRAME, RISK), None
    three = np.where(FRAME["age"] < 30, "young", np.where(FRAME["age"] < 50, "middle", "old"))
    yield "three classes", CircuitClassifier(**QUICK).fit(FRAME, three), "young"
    marked = FRAME.mask(RNG.random(FRAME.shape) < 0.1)
    encoder = Encoder(missing_is_value=["group"])
    missing = CircuitRegressor(density=ChowLiu(encoder=encoder), max_splits=1).fit(marked, COST)
    yield "regressor with missing values", missing, None
    trees = GradientBoostingRegressor(n_estimators=3, max_depth=2).fit(NUMBERS, COST)
    yield "wrapped trees", ExpectedPredictor(trees, ChowLiu()).fit(NUMBERS, COST), None
    near = KNeighborsRegressor().fit(NUMBERS, COST)
    yield "sampled", ExpectedPredictor(near, ChowLiu(), max_samples=200).fit(NUMBERS, COST), None


def answers(model, of):
    inputs = list(model.density_.columns)
    mixed = "sex" in inputs
    groups = ["age < 40", "age >= 40", "age == 33", "age < 21 and size > 2", None]
    groups += ["sex == 'male'", "group in ('a', 'b') and not age < 30"] * mixed
    for group in groups:
        yield f"ask {group}", model.ask(group, of=of)
    for source in ("rows", "density"):
        yield f"ask by {source}", model.ask("age < 40", of=of, population=source)
    yield "compare", model.compare("age < 40", "age >= 40", of=of)
    yield "compare, turned", model.compare("age >= 40", "age < 40", of=of)
    yield "compare, overlapping", model.compare("age < 50", None, of=of)
    for given in (None, "size > 0"):
        yield f"split, {given}", model.split("age", given=given, of=of)
        yield f"split in one, {given}", model.split("age", given=given, of=of, bins=1)
        yield f"dependence, {given}", model.dependence("age", given=given, grid=4, of=of)
        yield f"next, {given}", model.next_question(given, of=of)
        if mixed:
            yield f"split twice, {given}", model.split("sex", "group", given=given, of=of)
            yield (
                f"dependence of a category, {given}",
                model.dependence("group", given=given, of=of),
            )
            yield f"disparities, {given}", model.disparities(["sex"], given=given, of=of)
            yield f"wide, {given}", model.disparities(["sex"], given=given, of=of, delta=1e9)
    yield "next, all known", model.next_question(FRAME.iloc[[0]], of=of)
    yield "next, with costs", model.next_question("age < 40", of=of, cost={"size": 2.0})
    for rows in (FRAME.iloc[:1], FRAME.iloc[:3].assign(age=None)):
        yield f"stability of {len(rows)}", model.stability(rows, 0.5, of=of)
        yield f"shapley of {len(rows)}", model.shapley(rows, of=of)
        yield f"outliers of {len(rows)}", model.outliers(rows)
    for threshold in (-1e6, 0.5, 1e6):
        yield f"sufficient {threshold}", model.sufficient(FRAME.iloc[[0]], threshold, of=of)
    yield "check", model.check_density()
    yield "pairs", model.check_density().pairs
    yield "groups", model.check_density().groups


def column_notes():
    """Every note about columns, for one column and for several."""
    details = {"many": "300, 255", "dates": "%d/%m/%Y", "declared": "a, b"}
    for topic in _SENTENCES:
        for names in (["size"], ["size", "age"], [f"column {i}" for i in range(12)]):
            notes = ColumnNotes()
            for name in names:
                notes.add(topic, name, details.get(topic, "'?'"))
            yield topic, notes.sentences()[0]


def test_every_sentence_reads_well():
    pages, problems = [], []
    for topic, sentence in column_notes():
        pages.append(f"--- note, {topic}\n{sentence}")
        problems += [why for pattern, why in BAD.items() if re.search(pattern, sentence)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, model, of in models():
            pages.append(f"===== {kind} =====\n{getattr(model, 'density_', '')}")
            if hasattr(model, "explain_exactness"):
                pages.append(model.explain_exactness())
            for title, answer in answers(model, of):
                text = str(answer)
                pages.append(f"--- {kind}: {title}\n{text}")
                sentences = "\n".join([*answer.head(), *answer._last()])
                problems += [
                    f"{why}: {match.group(0)!r} in {kind}, {title}: {sentences[:300]}"
                    for pattern, why in BAD.items()
                    for match in re.finditer(pattern, sentences)
                ]
                assert len(answer._last()[-1]) < 200
    with contextlib.suppress(OSError):  # a source tree that cannot be written to
        (ROOT / "build").mkdir(exist_ok=True)
        (ROOT / "build" / "sentences.txt").write_text("\n\n".join(pages), encoding="utf-8")
    assert not problems, "\n".join(problems)
