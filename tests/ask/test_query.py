"""Conditions as text and facts: what they mean, and what is said of those that mean nothing."""

from __future__ import annotations

import datetime as dt
import operator
import pickle
import re
import time
from itertools import product

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings

from expecta import (
    ChowLiu,
    CircuitClassifier,
    CircuitRegressor,
    DomainError,
    Encoder,
    Evidence,
    QueryError,
    Vtree,
    random_probabilistic,
)
from expecta.ask.language.column_sets import Intervals
from expecta.ask.language.grammar import parse
from expecta.ask.language.query import MAX_BOXES, Query

DAYS = [dt.date(2024, 1, 1), dt.date(2024, 5, 31), dt.date(2025, 2, 1)]
VALUES = {  # every value has its own bin, so that all is exact
    "region": ["north", 'it\'s \\ "south"', "east"],
    "flag": [False, True],
    "age": [1, 2, 5, 7],
    "bmi": [0.5, 1.25, 3.0],
    "first day": DAYS,
}
ROWS = [dict(zip(VALUES, row, strict=True)) for row in product(*VALUES.values())]
TABLE = {name: [row[name] for row in ROWS] for name in VALUES}
ENCODER = Encoder().fit(TABLE)
CODES = ENCODER.codes(TABLE)
P = random_probabilistic(Vtree.balanced(5), ENCODER.cardinalities_.tolist(), seed=0)
ATOMIC = {
    "age": [0, 1, 2, 3.5, 5, 7, 9],
    "bmi": [-1, 0.5, 1, 1.25, 3, 1e9],
    "first day": [*DAYS, dt.date(2024, 7, 1), dt.date(1999, 1, 1)],
}
OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def written(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.date):
        return f"'{value.isoformat()}'"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return repr(value)


def name_of(column):
    return f"`{column}`" if " " in column else column


@st.composite
def atoms(draw):
    """A comparison as text, and what it means for a row."""
    column = draw(st.sampled_from(sorted(VALUES)))
    form = draw(st.sampled_from(["order", "equal", "in", "chain", "flipped"]))
    known = st.sampled_from(VALUES[column])
    if column not in ATOMIC or form in ("equal", "in"):
        if form == "in":
            values = draw(st.lists(known, min_size=1, max_size=3))
            absent = draw(st.booleans())
            text = f"{name_of(column)} {'not ' * absent}in ({', '.join(map(written, values))})"
            return text, lambda row: (row[column] in values) != absent
        value, sign = draw(known), draw(st.sampled_from(["==", "!="]))
        text = f"{name_of(column)} {sign} {written(value)}"
        return text, lambda row: OPERATORS[sign](row[column], value)
    ends = st.sampled_from(ATOMIC[column])
    sign, low, high = draw(st.sampled_from(["<", "<=", ">", ">="])), draw(ends), draw(ends)
    if form == "chain":
        text = f"{written(low)} {sign} {name_of(column)} {sign} {written(high)}"
        compare = OPERATORS[sign]
        return text, lambda row: compare(low, row[column]) and compare(row[column], high)
    if form == "flipped":
        text = f"{written(low)} {sign} {name_of(column)}"
        return text, lambda row: OPERATORS[sign](low, row[column])
    text = f"{name_of(column)} {sign} {written(low)}"
    return text, lambda row: OPERATORS[sign](row[column], low)


def joined(parts):
    return st.one_of(
        parts.map(lambda p: (f"not ({p[0]})", lambda row: not p[1](row))),
        st.tuples(parts, parts).map(
            lambda p: (
                (f"({p[0][0]}) and {p[1][0]}", lambda row: p[0][1](row) and p[1][1](row))
                if " or " not in p[1][0]
                else (f"({p[0][0]}) AND ({p[1][0]})", lambda row: p[0][1](row) and p[1][1](row))
            )
        ),
        st.tuples(parts, parts).map(
            lambda p: (f"({p[0][0]}) or {p[1][0]}", lambda row: p[0][1](row) or p[1][1](row))
        ),
    )


EXPRESSIONS = st.recursive(atoms(), joined, max_leaves=8)


def inside(evidence):
    """Which cells each row of evidence lets through.  # (rows, cells)."""
    return np.prod([evidence.weights(v)[:, CODES[:, v]] for v in range(CODES.shape[1])], axis=0)


@given(EXPRESSIONS)
@settings(max_examples=200)
def test_an_expression_means_what_python_says(expression):
    text, holds = expression
    query = Query.read(text, ENCODER)
    truth = np.array([bool(holds(row)) for row in ROWS])
    assert query.matches(TABLE).tolist() == truth.tolist()
    parts = query.evidence(ENCODER)
    covered = inside(parts)
    assert set(np.unique(covered)) <= {0.0, 1.0}
    assert covered.sum(axis=0).tolist() == truth.astype(float).tolist()  # disjoint, and all
    by_hand = np.exp(P.log_prob(CODES))[truth].sum()
    assert np.exp(P.log_prob(parts)).sum() == pytest.approx(by_hand, abs=1e-12)
    assert query.approximate == []
    assert str(query) == text


BEYOND = {  # a value in each region that a constant can tell from others
    **VALUES,
    "age": [-1, 0, 0.5, 1, 1.5, 2, 3, 3.5, 4, 5, 6, 7, 8, 9, 10],
    "bmi": [-2, -1, 0, 0.5, 0.7, 1, 1.1, 1.25, 2, 3, 4, 1e9, 1e10],
    "first day": [DAYS[i] + dt.timedelta(k) for i in range(3) for k in (-1, 0, 1)]
    + [dt.date(1998, 1, 1), dt.date(1999, 1, 1), dt.date(2024, 7, 1), dt.date(2024, 7, 2)],
}


@given(EXPRESSIONS, st.integers(0, 2**32 - 1), st.sets(st.sampled_from(sorted(VALUES)), max_size=2))
@settings(max_examples=60)
def test_a_row_with_holes_matches_if_it_does_whatever_they_hold(expression, seed, holes):
    text, holds = expression
    rows = np.random.default_rng(seed).permutation(len(ROWS))[:5]
    table = {
        name: [None if name in holes else ROWS[i][name] for i in rows]
        + [VALUES[name][0]]  # so that no column is empty
        for name in VALUES
    }
    found = Query.read(text, ENCODER).matches(table)
    for place, i in enumerate(rows):
        cases = product(*(BEYOND[n] if n in holes else [ROWS[i][n]] for n in VALUES))
        assert found[place] == all(holds(dict(zip(VALUES, case, strict=True))) for case in cases)


@given(EXPRESSIONS, EXPRESSIONS)
@settings(max_examples=60)
def test_queries_are_equal_if_they_mean_the_same(one, other):
    first, second = (Query.read(text, ENCODER) for text, _ in (one, other))
    assert first == Query.read(f"not (not ({one[0]}))", ENCODER)
    assert Query.read(f"({one[0]}) or ({other[0]})", ENCODER) == Query.read(
        f"not (not ({other[0]}) and not ({one[0]}))", ENCODER
    )
    assert first & second == Query.read(f"({one[0]}) and ({other[0]})", ENCODER)
    if first == second:
        assert first.matches(TABLE).tolist() == second.matches(TABLE).tolist()


WORDS = ["age", "region", "`first day`", "flag", "and", "or", "not", "in", "(", ")", "[", "]", ","]
WORDS += ["==", "!=", "<", ">=", "=", "'north'", '"east"', "5", "-1.5e3", "true", "is", "None", "`"]
WORDS += ["'", "x", "1e999", "9" * 400, "'2024-05-31'", "é", "\t", "\n", "\x00", "\ud800", "--"]


def read(text):
    """Return the query, or the error."""
    try:
        return Query.read(text, ENCODER)
    except QueryError as problem:
        return problem


def check(text):
    found = read(text)
    if isinstance(found, Query):
        assert len(found.boxes) <= MAX_BOXES
        assert found == Query.read(str(found), ENCODER)
        return
    assert found.query == text
    assert 0 <= found.position <= len(text)
    said, shown, caret = str(found).split("\n")
    assert said == found.problem
    assert caret.strip() == "^"
    if found.position < len(text):
        character = text[found.position]
        assert shown[len(caret) - 1] == (character if character.isprintable() else " ")


@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)))
@example("(" * 10_000)
@example("not " * 10_000 + "age == 1")
@example("(" * 49 + "age == 1" + ")" * 49)
@example("age < 1 and " * 3_000 + "age < 1")
@example("age < 5 == flag")
@settings(max_examples=500)
def test_any_text_is_a_query_or_an_error_that_points(text):
    check(text)


@given(EXPRESSIONS, st.data())
@settings(max_examples=200)
def test_a_query_with_a_slip_is_a_query_or_an_error_that_points(expression, data):
    text = expression[0]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 5, len(text))))
    check(text[:start] + data.draw(st.sampled_from([*WORDS, ""])) + text[end:])


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("", 0, "empty"),
        ("agee == 5", 0, "did you mean 'age'"),
        ("age < 5 and region == 'nort'", 22, "did you mean 'north'"),
        ("region < 'north'", 0, "no order"),
        ("flag >= true", 0, "no order"),
        ("region == north", 10, "in quotes"),
        ("age is None", 0, "missing_is_value"),
        ("age == None", 7, "write: age is missing"),
        ("age = 5", 4, "=="),
        ("age == 5 & flag == true", 9, "'and'"),
        ("age between 1 and 3", 4, "low <= column <= high"),
        ("age in (1, 2", 12, "the condition ends"),
        ("age in ()", 8, "empty"),
        ("age == 'old'", 7, "not a number"),
        ("age == true", 7, "true and false"),
        ("`first day` < 5", 14, "'2024-05-31'"),
        ("`first day` < 'May'", 14, "not a date"),
        ("age == 'nan'", 7, "missing"),
        ("5 < 6", 2, "column"),
        ("'north", 0, "no end"),
        ("(age < 5", 8, "closing parenthesis"),
        ("age < 5)", 7, "join two"),
        ("age < 5 flag == true", 8, "join two"),
        ("(" * 51 + "age < 5" + ")" * 51, 50, "parentheses"),
    ],
)
def test_an_error_says_where_and_what_to_do(text, place, said):
    with pytest.raises(QueryError) as caught:
        Query.read(text, ENCODER)
    assert caught.value.position == place
    assert said in caught.value.problem
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_long_query_is_shown_around_the_place():
    text = "age < 5 and " * 50 + "agee < 5 " + "and age < 5 " * 50
    with pytest.raises(QueryError) as caught:
        Query.read(text, ENCODER)
    _, shown, caret = str(caught.value).split("\n")
    assert len(shown) < 120
    assert shown[len(caret) - 1 :].startswith("agee")


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"age": 5}, "age == 5"),
        ({"age": (2, 5), "region": "east"}, "2 <= age <= 5 and region == 'east'"),
        ({"age": (None, 5)}, "age <= 5"),
        ({"age": [1, 7]}, "age in (1, 7)"),
        ({"age": {1, 7}, "bmi": None}, "age in (1, 7)"),
        ({"age": np.array([1, 7]), "bmi": float("nan")}, "age in (1, 7)"),
        ({"region": ("east", "north")}, "region in ('east', 'north')"),
        ({"flag": True}, "flag == true"),
        ({"first day": DAYS[1]}, "`first day` == '2024-05-31'"),
        ({"first day": ("2024-05-31", None)}, "`first day` >= '2024-05-31'"),
        ({"bmi": (1.25, 1.25)}, "bmi == 1.25"),
    ],
)
def test_facts_are_what_the_encoder_takes_and_read_again(facts, text):
    query = Query.read(facts, ENCODER)
    assert query == Query.read(text, ENCODER) == Query.read(str(query), ENCODER)
    where = ENCODER.where(facts)
    for v in range(len(VALUES)):
        assert query.evidence(ENCODER).weights(v).tolist() == where.weights(v).tolist()


@given(st.lists(st.text(), min_size=1, max_size=4, unique=True), st.floats(allow_nan=False))
@example(["a", "b", "c"], float("inf"))
@example(["a", "b", "c"], float("-inf"))
@settings(max_examples=100)
def test_facts_are_written_so_that_they_are_read_again(texts, number):
    encoder = Encoder(categorical=["c"]).fit({"c": texts, "`x y`": [0.5] * len(texts)})
    facts = {"c": texts[: len(texts) // 2 + 1], "`x y`": (number, number + 1)}
    query = Query.read(facts, encoder)
    if query.boxes:
        assert Query.read(str(query), encoder) == query


def test_times_are_written_on_the_columns_clock():
    zone = dt.timezone(dt.timedelta(hours=2))
    times = [dt.datetime(2024, 5, 31, hour, tzinfo=zone) for hour in (1, 5, 9)]
    frame = pd.DataFrame({"t": pd.to_datetime(times)})
    encoder = Encoder().fit(frame)
    query = Query.read({"t": (times[1], None)}, encoder)
    assert query == Query.read(str(query), encoder)
    assert query.matches(frame).tolist() == [False, True, True]


def test_durations_are_asked_and_written_with_their_units():
    frame = pd.DataFrame({"wait": pd.to_timedelta(np.arange(10), unit="D")})
    encoder = Encoder().fit(frame)
    for text in ("4 days", "P4D", "96:00:00", "96 hours", "3 days, 24:00:00", "4d"):
        query = Query.read(f"wait > '{text}'", encoder)
        assert query.matches(frame).sum() == 5
        assert str(Query.read({"wait": (text, None)}, encoder)) == "wait >= '4 days'"
    facts = {"wait": (dt.timedelta(days=-1, seconds=1.5), dt.timedelta(days=4, hours=6))}
    query = Query.read(facts, encoder)
    assert str(query) == "'-23:59:58.5' <= wait <= '4 days 06:00:00'"
    assert query == Query.read(str(query), encoder)
    for asked in ("wait > 4", {"wait": 4}, {"wait": [4.5]}):
        with pytest.raises(QueryError, match="is not a duration; write it with its unit"):
            Query.read(asked, encoder)
    binned = Encoder(bins={"wait": ["0 d", "5 d", "9 d"]}, missing_is_value=["wait"])
    with pytest.raises(QueryError, match="their edges are '5 days'"):
        Query.read("wait > '3 days'", binned.fit(frame))


def test_nothing_said_is_all_rows_and_an_empty_set_is_impossible():
    assert str(Query.read(None, ENCODER)) == str(Query.read({}, ENCODER)) == "all rows"
    assert str(Query.read({"age": (None, None)}, ENCODER)) == "all rows"
    assert Query.read(None, ENCODER).matches(TABLE).all()
    for given_ in ("age < 5 and age > 5", {"age": []}, {"region": []}):
        query = Query.read(given_, ENCODER)
        assert query.boxes == ()
        assert np.exp(P.log_prob(query.evidence(ENCODER))).tolist() == [0.0]
        assert not query.matches(TABLE).any()
    query = Query.read("age < 5", ENCODER)
    assert Query.read(query, ENCODER) is query


@pytest.mark.parametrize(
    "facts",
    [
        {"agee": 5},
        {"region": "nort"},
        {"age": (1, 2, 3)},
        {"age": (5, 2)},
        {"age": [30, None]},
        {"age": "x"},
        5,
    ],
)
def test_facts_that_make_no_sense_are_errors(facts):
    with pytest.raises(QueryError) as caught:
        Query.read(facts, ENCODER)
    assert isinstance(caught.value, DomainError)


SIDES = ["both", "left", "right", "neither"]

# -- bins ---------------------------------------------------------------------------------

RNG = np.random.default_rng(1)
WIDE = {"whole": RNG.integers(0, 40, 300), "real": RNG.random(300), "k": RNG.integers(0, 2, 300)}
BINNED = Encoder(max_bins=4).fit(WIDE)


@pytest.mark.parametrize(
    "text",
    ["whole == 7", "real == 0.3", "whole < 13", "real >= 0.4", "whole in (3, 9, 999)", "real <= 9"],
)
def test_a_condition_and_its_opposite_are_all(text):
    """Also beside another column, where the boxes of one must not count in the other."""
    names = [f"({text}) or k == 1", f"not ({text}) and k == 0"]
    total = sum(
        np.prod([part.weights(v) @ BINNED.columns_[v].counts / 300 for v in range(3)], axis=0).sum()
        for part in (Query.read(name, BINNED).evidence(BINNED) for name in names)
    )
    assert total == pytest.approx(1)


def test_what_is_approximate_is_said():
    assert Query.read("real < 2", BINNED).approximate == []
    assert "share" in Query.read("whole < 13", BINNED).approximate[0]
    assert "stands for its bin" in Query.read("real == 0.3", BINNED).approximate[0]
    query = Query.read("whole < 13", BINNED)
    assert query.evidence(BINNED).weights(0)[0].tolist() == pytest.approx(
        BINNED.columns_[0].between(None, 13, closed="left").tolist()
    )
    assert query.matches(WIDE).tolist() == (WIDE["whole"] < 13).tolist()


def test_a_query_moves_to_finer_bins_and_not_to_other_columns():
    fine = Encoder(max_bins=64).fit(WIDE)
    query = Query.read("whole < 13", BINNED)
    assert (
        query.evidence(fine).weights(0).tolist()
        == Query.read(str(query), fine).evidence(fine).weights(0).tolist()
    )
    with pytest.raises(QueryError, match="differs from that"):
        query.evidence(Encoder().fit({"whole": ["a", "b"]}))


def test_integers_of_arrays_are_asked_as_numbers():
    codes = np.array([[0, 1], [2, 0], [1, 1]])
    encoder = Encoder().fit(codes)
    query = Query.read("x0 >= 1 and x1 == 1", encoder)
    assert query.matches(codes).tolist() == [False, False, True]
    assert query.evidence(encoder).weights(0).tolist() == [[0, 1, 1]]
    with pytest.raises(QueryError, match=r"values 0 \.\. 2"):
        Query.read("x0 == 7", encoder)


def test_boxes_have_a_limit_and_many_columns_do_not_overflow():
    n = 800
    encoder = Encoder().fit(np.array([[0] * n, [1] * n]))
    wide = " and ".join(f"x{i} == 1" for i in range(n))
    assert len(Query.read(wide, encoder).boxes) == 1
    assert len(Query.read(f"not ({wide})", encoder).boxes) == n
    assert len(Query.read({f"x{i}": 1 for i in range(n)}, encoder).boxes) == 1
    pairs = " and ".join(f"(x{i} == 1 or x{i + 20} == 1)" for i in range(20))
    with pytest.raises(QueryError, match="more than 1000"):
        Query.read(pairs, encoder)
    parity = "x0 == 1"
    for i in range(1, 8):
        parity = f"(({parity}) and x{i} == 0 or not ({parity}) and x{i} == 1)"
    assert len(Query.read(parity, encoder).boxes) == 2**7
    evidence = Query.read(parity, encoder).evidence(encoder)
    assert isinstance(evidence, Evidence)
    assert len(evidence) == 2**7
    numbers = Encoder(max_bins=4).fit({"n": list(range(20_000))})
    many = " or ".join(f"n == {2 * i}" for i in range(5_000))
    assert len(Query.read(many, numbers).boxes) == 1


def test_a_condition_that_would_take_long_is_refused_soon():
    encoder = Encoder(max_bins=4).fit({name: list(range(8000)) for name in "abcdefghijkl"})
    lists = [
        f"({x} in ({', '.join(str(k * i) for i in range(1, 800))}) or {y} == {k})"
        for k, (x, y) in enumerate(zip("abcdef" * 4, "ghijkl" * 4, strict=True), start=2)
    ]
    start = time.perf_counter()
    with pytest.raises(QueryError, match="more than 1000"):
        Query.read(" and ".join(lists), encoder)
    assert time.perf_counter() - start < 10


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.sampled_from(SIDES)), max_size=4),
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.sampled_from(SIDES)), max_size=4),
)
def test_unions_of_intervals_are_sets_of_numbers(ours, theirs):
    points = np.concatenate([np.arange(-4, 4.5, 0.5), [-np.inf, np.inf]])

    def both(pieces):
        subset, truth = Intervals(()), np.zeros(len(points), bool)
        for low, high, closed in pieces:
            subset |= Intervals.between(low, high, closed)
            above = points >= low if closed in ("both", "left") else points > low
            truth |= above & (points <= high if closed in ("both", "right") else points < high)
        return subset, truth

    (a, in_a), (b, in_b) = both(ours), both(theirs)
    for subset, truth in ((a, in_a), (a & b, in_a & in_b), (a | b, in_a | in_b), (~a, ~in_a)):
        assert subset.contains(points).tolist() == truth.tolist()
        assert not subset.contains(np.array([np.nan]))[0]
        ends = [cut for piece in subset.pieces for cut in piece]
        assert ends == sorted(set(ends))  # one way to write it


def test_it_is_quick():
    start = time.perf_counter()
    for _ in range(100):
        Query.read("region == 'east' and 1 <= age < 5 or bmi > 1", ENCODER).evidence(ENCODER)
    assert time.perf_counter() - start < 2


# -- numbers that nobody has --------------------------------------------------------------

GAPS = {"k": [0, 0, 1, 3, 5, 9, 9, 12], "same": [7] * 8, "real": [0.5, 0.5, 1.5, 2, 2.5, 3, 8, 9]}


@pytest.mark.parametrize("name", ["k", "same", "real"])
@pytest.mark.parametrize("number", [-3, 0, 2.5, 4, 5, 6.25, 7, 8, 9, 500, 1e300])
def test_a_number_that_nobody_has_is_in_no_bin(name, number):
    encoder = Encoder().fit(GAPS)  # every number has its own bin
    variable, values = encoder.variable(name), encoder.codes(GAPS)[:, encoder.variable(name)]
    seen = [one == number for one in GAPS[name]]
    for text, wanted in [
        (f"{name} == {number}", seen),
        (f"{name} != {number}", [not one for one in seen]),
        (
            f"{name} in ({number}, {GAPS[name][0]})",
            [a or b == GAPS[name][0] for a, b in zip(seen, GAPS[name], strict=True)],
        ),
    ]:
        query = Query.read(text, encoder)
        weights = query.evidence(encoder).weights(variable).sum(axis=0)
        assert weights[values].tolist() == wanted
        assert query.matches(GAPS).tolist() == wanted
        remarked = any("no such value in the training data" in note for note in query.approximate)
        assert remarked == (not any(seen))
    facts = Query.read({name: number}, encoder).evidence(encoder).weights(variable)[0]
    assert facts[values].tolist() == seen


def test_numbers_that_a_bin_of_many_does_not_reach():
    whole, real = BINNED.column("whole"), BINNED.column("real")
    for column in (whole, real):
        wide = int(np.argmax(column.highs - column.lows))
        inside = float(np.ceil(column.lows[wide]) if column.step else column.means[wide])
        beyond = float(column.highs.max()) + 1
        found = Query.read(f"{column.name} == {inside!r}", BINNED).evidence(BINNED)
        assert np.flatnonzero(found.weights(BINNED.variable(column.name))[0]).tolist() == [wide]
        query = Query.read(f"{column.name} == {beyond!r}", BINNED)
        assert not np.any(query.evidence(BINNED).weights(BINNED.variable(column.name)))
        assert "no such value in the training data" in query.approximate[0]
    odd = Query.read("whole == 12.5", BINNED)
    assert not np.any(odd.evidence(BINNED).weights(BINNED.variable("whole")))


def test_parentheses_stand_where_a_condition_is_an_or():
    either = Query.read("age==1 or(flag==true)", ENCODER)
    both = either & Query.read({"bmi": (0, None)}, ENCODER)
    assert str(both) == "(age==1 or(flag==true)) and bmi >= 0"
    assert Query.read(str(both), ENCODER) == both
    text = Query.read("region == 'north' and (age == 1 or flag == true)", ENCODER)
    assert Query.read(str(text & either), ENCODER) == text & either


def test_what_is_missing_can_be_asked_where_it_is_a_value():
    encoder = Encoder(missing_is_value=["c"]).fit({"c": ["a", None, "b"] * 4, "x": [1, 2, 3] * 4})
    for text in ("c is missing", "c is unknown", "c is null", "not c is not missing"):
        query = Query.read(text, encoder)
        assert query.evidence(encoder).weights(0).tolist() == [[0, 0, 1]]
    known = Query.read("c is not missing and x == 1", encoder).evidence(encoder)
    assert known.weights(0).tolist() == [[1, 1, 0]]
    with pytest.raises(QueryError, match=r"missing_is_value=\['x'\]"):
        Query.read("x is missing", encoder)
    with pytest.raises(QueryError, match="write: x is missing"):
        Query.read("x == None", encoder)
    with pytest.raises(QueryError, match="age is missing, age is not missing"):
        Query.read("x is 5", encoder)


@pytest.mark.parametrize(
    ("query", "advice"),
    [("age < 60,5", r"write decimals with a point: 60\.5"), ("body mass (g) > 3", "in backticks")],
)
def test_how_decimals_and_names_are_written(query, advice):
    with pytest.raises(QueryError, match=advice):
        parse(query)


def test_a_condition_on_the_target_says_how_to_ask():
    table = {"x": [1.0, 2.0, 3.0, 4.0] * 10}
    income = pd.Series(["<=50K", ">50K"] * 20, name="income")
    model = CircuitClassifier(density=ChowLiu(), max_splits=0).fit(table, income)
    with pytest.raises(QueryError, match=r"'income' is the target.*of='>50K', or --of '>50K'"):
        model.ask("income == '>50K'")
    with pytest.raises(DomainError, match=r"'income' is the target"):
        model.split("income")
    cost = pd.Series(np.arange(40.0), name="cost")
    number = CircuitRegressor(density=ChowLiu(), max_splits=0).fit(table, cost)
    with pytest.raises(QueryError, match=r"'cost' is the target.*mean, spread and quantiles"):
        number.ask(cost=(5, 7))


@pytest.mark.parametrize(
    ("query", "remark"),
    [
        ("70 <= age <= 80", "no such value in the training data: 70 <= age <= 80; .* 18 to 60"),
        ("32 <= age <= 40", "no such value in the training data: 32 <= age <= 40; .* 18 to 60"),
        ("40 <= age <= 40", "no such value in the training data: age = 40"),
        ("40 <= age <= 20", "The condition contradicts itself"),
        ("age > 40 and age < 20", "The condition contradicts itself"),
    ],
)
def test_a_condition_that_nothing_meets_says_why(query, remark):
    encoder = Encoder().fit({"age": [18.0, 31.0, 54.0, 60.0]})
    (why,) = Query.read(query, encoder).why_empty()
    assert re.search(remark, why)


def test_hints_name_what_was_probably_meant():
    encoder = Encoder().fit({"x == 1": [1, 2, 3], "zip": ["00501", "51601", "00502"]})
    with pytest.raises(QueryError, match="in backticks if it is not one word: `x == 1`"):
        Query.read('"x == 1" == 1', encoder)
    with pytest.raises(QueryError, match="did you mean '00501'"):
        Query.read("zip == 501", encoder)
