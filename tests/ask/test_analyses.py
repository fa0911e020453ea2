"""Analyses against their definitions, by loops over all rows that there can be."""

from __future__ import annotations

import json
from itertools import combinations, permutations, product
from math import factorial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from expecta import (
    ChowLiu,
    CircuitClassifier,
    CircuitRegressor,
    DomainError,
    ExpectedPredictor,
    ImpossibleEvidenceError,
    Independent,
    LatentTree,
    QueryError,
)
from expecta.ask import shapley as shapley_module
from expecta.ask.decisions import stability, sufficient
from expecta.ask.disparities import disparities
from expecta.ask.language.query import Query
from expecta.ask.next_question import _variance, next_question
from expecta.ask.outliers import outliers
from expecta.ask.populations import Population
from expecta.ask.shapley import shapley, shapley_of_facts

RNG = np.random.default_rng(0)
COLUMNS = ["a", "b", "n", "r"]


def table(rows=300):
    a = RNG.choice(["x", "y", "z"], rows, p=[0.5, 0.3, 0.2])
    b = RNG.random(rows) < np.where(a == "x", 0.7, 0.3)
    n = RNG.integers(0, 4, rows) // (1 + b)
    r = RNG.choice([0.5, 1.5, 4.0], rows)
    return pd.DataFrame({"a": a, "b": b, "n": n, "r": r})


X = table()
Y = 2.0 * X["b"] * X["n"] + X["r"] - 1.5 * (X["a"] == "z") + 0.3 * RNG.normal(size=len(X))
NUMBERS = X.assign(a=X["a"].map({"x": 0.0, "y": 1.0, "z": 2.0}), b=1.0 * X["b"], n=1.0 * X["n"])


class Truth:
    """A model and its density as a list of all rows, with their probabilities and outputs."""

    def __init__(self, model, predict):
        self.model, self.subject = model, model.expected_output()
        encoder = self.subject.encoder
        self.codes = np.array(list(product(*map(range, encoder.cardinalities_.tolist()))), np.int32)
        self.table = encoder.inverse_transform(self.codes)
        self.p = np.exp(self.subject.circuit.log_prob(self.codes))
        self.f = predict(model, self.table)
        self.parts = self.codes.copy()  # a bin without data is part of the one before
        for variable, column in enumerate(encoder.columns_):
            if len(column.edges):
                filled = np.maximum.accumulate(
                    np.where(column.counts > 0, np.arange(column.cardinality), 0)
                )
                self.parts[:, variable] = filled[self.codes[:, variable]]
        self.tidy = encoder.inverse_transform(self.parts)

    def where(self, codes):
        """Which rows agree with what is known (-1 is unknown)."""
        codes = np.asarray(codes)
        return np.all((codes < 0) | (self.codes == codes), axis=1)

    def within(self, codes):
        """Which rows are in the same parts of columns."""
        return np.all((np.asarray(codes) < 0) | (self.parts == codes), axis=1)

    def values(self, variable):
        """The first value of each part of a column."""
        return np.unique(self.parts[:, variable]).tolist()

    def mean(self, rows):
        return self.p[rows] @ self.f[rows] / self.p[rows].sum()

    def variance(self, rows):
        return self.p[rows] @ (self.f[rows] - self.mean(rows)) ** 2 / self.p[rows].sum()

    def above(self, rows, threshold):
        return self.p[rows] @ (self.f[rows] >= threshold) / self.p[rows].sum()


def regression(density):
    model = CircuitRegressor(density=density, max_splits=4, random_state=0).fit(X, Y)
    return Truth(model, lambda m, rows: m.predict(rows))


def classification():
    model = CircuitClassifier(density=ChowLiu(), max_splits=3, random_state=0).fit(X, Y > 3)
    return Truth(model, lambda m, rows: m.predict_proba(rows)[:, 1])


def tree():
    inner = DecisionTreeRegressor(max_depth=4, random_state=0).fit(NUMBERS, Y)
    model = ExpectedPredictor(inner, density=ChowLiu()).fit(NUMBERS)
    return Truth(model, lambda m, rows: m.predict(rows))


MAKE = {
    "regressor": lambda: regression(LatentTree(states=3, random_state=0)),
    "classifier": classification,
    "tree": tree,
}
MADE: dict[str, Truth] = {}


@pytest.fixture(params=list(MAKE))
def truth(request):
    if request.param not in MADE:
        MADE[request.param] = MAKE[request.param]()
    return MADE[request.param]


def row_of(truth, codes):
    """A row of the table with holes, as a mapping; codes -1 are left out."""
    full = truth.subject.encoder.inverse_transform(np.maximum([codes], 0)).iloc[0]
    return {name: full[name] for name, code in zip(COLUMNS, codes, strict=True) if code >= 0}


def holes(truth, rows=6, seed=0):
    """Random rows with holes: a table, and its codes."""
    rng = np.random.default_rng(seed)
    codes = truth.codes[rng.choice(len(truth.codes), rows)].copy()
    codes[rng.random(codes.shape) < 0.4] = -1
    frame = truth.subject.encoder.inverse_transform(np.maximum(codes, 0)).astype(object)
    frame = frame.mask(codes < 0, None)
    assert truth.subject.encoder.codes(frame).tolist() == codes.tolist()
    return frame, codes


def shown(answer):
    """An answer shows itself, and its parts are what JSON holds."""
    text = str(answer)
    assert all(line == line.rstrip() for line in text.split("\n"))
    json.dumps(answer.to_dict(), allow_nan=False)
    frame = answer.to_frame()
    assert isinstance(frame, pd.DataFrame)
    html = answer._repr_html_()
    assert html.count("<tr>") == (1 + min(len(frame), 30) if len(frame) else 0)
    return frame


# -- the next question --------------------------------------------------------------------


def settles(truth, rows, variable):
    """Variance of the conditional means over a column's values, by hand."""
    total, mean, out = truth.p[rows].sum(), truth.mean(rows), 0.0
    for value in np.unique(truth.codes[rows, variable]):
        some = rows & (truth.codes[:, variable] == value)
        out += truth.p[some].sum() / total * (truth.mean(some) - mean) ** 2
    return out


@pytest.mark.parametrize("codes", [[-1, -1, -1, -1], [1, -1, -1, 0], [-1, 1, 0, -1], [0, 0, 1, 1]])
def test_the_next_question_is_the_one_that_settles_most(truth, codes):
    found = next_question(truth.subject, row_of(truth, codes))
    rows = truth.where(codes)
    unknown = [i for i, code in enumerate(codes) if code < 0]
    by_hand = {COLUMNS[i]: settles(truth, rows, i) for i in unknown}
    assert set(found.columns) == set(by_hand)
    assert found.reduction.tolist() == pytest.approx([by_hand[c] for c in found.columns], abs=1e-7)
    assert np.all(np.diff(found.reduction) <= 1e-12)
    variance = truth.variance(rows)
    assert found.value == pytest.approx(truth.mean(rows), abs=1e-7)
    assert found.std == pytest.approx(np.sqrt(variance), abs=1e-5)
    if unknown:
        assert found.best == max(by_hand, key=by_hand.get)
        assert found.share.tolist() == pytest.approx(
            (found.reduction / variance).tolist(), abs=1e-5
        )
        left = variance - found.reduction
        assert (found.remaining**2).tolist() == pytest.approx(left.tolist(), abs=1e-6)
    else:
        assert found.best is None
    assert len(shown(found)) == len(unknown)


@pytest.mark.parametrize("text", ["n <= 1 and not (r == 1.5)", "b == 1 or n == 0 or r > 1"])
def test_the_next_question_given_a_condition(truth, text):
    encoder = truth.subject.encoder
    found = next_question(truth.subject, text)
    rows = Query.read(text, encoder).matches(truth.table)
    by_hand = {COLUMNS[i]: settles(truth, rows, i) for i in range(4)}
    assert found.reduction.tolist() == pytest.approx([by_hand[c] for c in found.columns], abs=1e-7)
    assert found.std == pytest.approx(np.sqrt(truth.variance(rows)), abs=1e-5)
    assert found.given == text


def test_the_next_question_by_cost_and_of_a_frame(truth):
    cost = {"n": 1000.0, "r": 0.001}
    found = next_question(truth.subject, X.head(0).reindex([0]), cost=cost)
    plain = next_question(truth.subject)
    assert found.columns[0] == "r"
    assert found.columns[-1] == "n"
    price = np.array([cost.get(name, 1.0) for name in found.columns])
    assert found.gain.tolist() == pytest.approx((found.reduction / price).tolist())
    assert dict(zip(found.columns, found.reduction, strict=True)) == pytest.approx(
        dict(zip(plain.columns, plain.reduction, strict=True))
    )
    assert "cost" in str(found)
    with pytest.raises(DomainError, match="above zero"):
        next_question(truth.subject, cost={"n": 0})
    with pytest.raises(DomainError, match="no column"):
        next_question(truth.subject, cost={"m": 1})
    with pytest.raises(QueryError):
        next_question(truth.subject, "m == 1")
    with pytest.raises(ImpossibleEvidenceError):
        next_question(truth.subject, "n > 99")
    with pytest.raises(DomainError, match="one row"):
        next_question(truth.subject, X.head(2))


def test_means_that_are_sampled_do_not_look_like_knowledge():
    """A model that is sampled: what its columns tell is near the truth, within the errors."""

    class Odd(RegressorMixin, BaseEstimator):
        def fit(self, X, y=None):
            self.fitted_ = True
            return self

        def predict(self, rows):
            return np.asarray(rows["r"], float) ** 2

    found = next_question(
        ExpectedPredictor(Odd().fit(X), density=ChowLiu()).fit(NUMBERS).expected_output()
    )
    reduction = dict(zip(found.columns, found.reduction, strict=True))
    error = dict(zip(found.columns, found.error, strict=True))
    truth = float((NUMBERS["r"] ** 2).var(ddof=0))
    assert reduction["r"] == pytest.approx(truth, rel=0.05)
    for name in ("a", "b", "n"):
        assert reduction[name] <= 0.02 * truth + 3 * error[name]


def test_the_spread_of_sampled_means_is_not_biased():
    rng = np.random.default_rng(8)
    part, mean = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.0, 1.0, 3.0, 2.0])
    error = np.array([0.9, 0.5, 0.2, 0.4])
    truth = part @ (mean - part @ mean) ** 2
    found = [_variance(part, rng.normal(mean, error), error, True) for _ in range(20_000)]
    value, loose = np.mean(found, axis=0)
    spread = np.std([one for one, _ in found])
    assert abs(value - truth) < 5 * spread / np.sqrt(20_000)
    assert loose == pytest.approx(spread, rel=0.3)


# -- decisions ----------------------------------------------------------------------------


def thresholds(truth):
    """Thresholds that are no output."""
    values = np.unique(truth.f)
    middle = (values[1:] + values[:-1]) / 2
    return middle[[len(middle) // 4, len(middle) // 2, 3 * len(middle) // 4]]


def test_a_decision_stands_with_the_probability_that_all_rows_say(truth):
    frame, codes = holes(truth)
    for threshold in thresholds(truth):
        found = stability(truth.subject, frame, threshold)
        for i, known in enumerate(codes):
            rows = truth.where(known)
            assert found.value[i] == pytest.approx(truth.mean(rows), abs=1e-7)
            assert found.decision[i] == (truth.mean(rows) >= threshold)
            above = truth.above(rows, threshold)
            by_hand = above if found.decision[i] else 1 - above
            assert abs(found.probability[i] - by_hand) <= found.error[i] + 1e-6
        assert len(shown(found)) == len(frame)
    one = stability(truth.subject, row_of(truth, codes[0]), threshold)
    assert one.probability[0] == pytest.approx(found.probability[0])


@pytest.mark.parametrize("threshold", [-1e6, -0.5, 1.5, 1e6])
def test_a_threshold_that_no_output_reaches_or_all_do_is_certain(truth, threshold):
    threshold = threshold + (truth.f.max() if threshold > 0 else truth.f.min())
    found = stability(truth.subject, holes(truth)[0], threshold)
    assert np.all(found.decision == (threshold < 0))
    assert found.probability == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("wanted", [0.6, 0.9, 1.0])
def test_a_sufficient_set_is_a_smallest_one(truth, wanted):
    threshold = thresholds(truth)[1]
    for codes in ([0, 1, 1, 2], [2, 0, 0, 0], [1, -1, 1, 1]):
        found = sufficient(truth.subject, row_of(truth, codes), threshold, wanted)
        decision = truth.mean(truth.where(codes)) >= threshold
        assert found.decision == decision
        known = [i for i in range(4) if codes[i] >= 0]

        def sure(chosen, codes=codes, decision=decision):
            told = [code if i in chosen else -1 for i, code in enumerate(codes)]
            above = truth.above(truth.where(told), threshold)
            return above if decision else 1 - above

        chances = {
            chosen: sure(chosen)
            for size in range(len(known) + 1)
            for chosen in combinations(known, size)
        }
        enough = [chosen for chosen, chance in chances.items() if chance >= wanted - 1e-7]
        chosen = tuple(COLUMNS.index(name) for name in found.columns)
        assert found.probability == pytest.approx(chances[chosen], abs=found.error + 1e-6)
        assert found.enough == bool(enough)
        assert found.proven
        if enough:
            assert len(chosen) == min(map(len, enough))
            best = max(chances[one] for one in enough if len(one) == len(chosen))
            assert chances[chosen] == pytest.approx(best, abs=1e-6)
        else:
            assert chances[chosen] == pytest.approx(max(chances.values()), abs=1e-6)
        assert len(shown(found)) == len(chosen)


def test_a_sufficient_set_by_beam_search(truth, monkeypatch):
    threshold, row = thresholds(truth)[1], row_of(truth, [0, 1, 1, 2])
    whole = sufficient(truth.subject, row, threshold, 0.99)
    monkeypatch.setattr("expecta.ask.decisions.MAX_COLUMNS", 2)
    wide = sufficient(truth.subject, row, threshold, 0.99, width=100)
    assert (wide.columns, wide.proven) == (whole.columns, True)
    narrow = sufficient(truth.subject, row, threshold, 0.99, width=1)
    assert narrow.enough <= whole.enough
    assert len(narrow.columns) >= len(whole.columns) or not narrow.enough
    lost = 0
    for codes in truth.codes[::11]:
        monkeypatch.setattr("expecta.ask.decisions.MAX_COLUMNS", 12)
        whole = sufficient(truth.subject, row_of(truth, codes), threshold, 1.0)
        monkeypatch.setattr("expecta.ask.decisions.MAX_COLUMNS", 2)
        narrow = sufficient(truth.subject, row_of(truth, codes), threshold, 1.0, width=1)
        assert narrow.proven == (len(narrow.columns) <= 2 and narrow.enough)
        assert "may be sufficient" in str(narrow) or narrow.proven
        assert len(narrow.columns) >= len(whole.columns)
        lost += not narrow.proven
    assert lost
    with pytest.raises(DomainError, match="probability"):
        sufficient(truth.subject, row, threshold, 1.5)
    with pytest.raises(DomainError, match="one row"):
        sufficient(truth.subject, truth.table.head(2), threshold)


# -- Shapley values -----------------------------------------------------------------------


def shapley_by_hand(truth, codes):
    """Mean over all orders of what a column adds when it becomes known."""
    known = [i for i in range(4) if codes[i] >= 0]
    values = dict.fromkeys(known, 0.0)
    for order in permutations(known):
        told = np.full(4, -1)
        before = truth.mean(truth.where(told))
        for i in order:
            told[i] = codes[i]
            after = truth.mean(truth.where(told))
            values[i] += (after - before) / factorial(len(known))
            before = after
    return values


def test_shapley_values_are_means_over_all_orders(truth):
    frame, codes = holes(truth, seed=1)
    found = shapley(truth.subject, frame)
    assert found.exact.all()
    assert found.base == pytest.approx(truth.mean(truth.where([-1] * 4)), abs=1e-7)
    for i, known in enumerate(codes):
        by_hand = shapley_by_hand(truth, known)
        for place in range(4):
            if place in by_hand:
                assert found.values[i, place] == pytest.approx(by_hand[place], abs=1e-7)
            else:
                assert np.isnan(found.values[i, place])
        total = found.base + np.nansum(found.values[i])
        assert total == pytest.approx(found.prediction[i], abs=1e-7)
        assert found.prediction[i] == pytest.approx(truth.mean(truth.where(known)), abs=1e-7)
    assert len(shown(found)) == np.count_nonzero(codes >= 0)


def test_shapley_values_of_sets_and_intervals(truth):
    n, r = (truth.tidy[name].to_numpy(float) for name in "nr")
    holds = {"n": (n >= 0) & (n <= 1), "r": np.isin(r, [0.5, 4.0])}
    found = shapley_of_facts(truth.subject, {"n": (0, 1), "r": [0.5, 4.0], "a": None})
    everyone = truth.mean(np.ones(len(n), bool))
    both = truth.mean(holds["n"] & holds["r"])
    alone = {name: truth.mean(rows) for name, rows in holds.items()}
    for name, other in ("nr", "rn"):
        value = (alone[name] - everyone + both - alone[other]) / 2
        place = truth.subject.columns.index(name)
        assert found.values[0, place] == pytest.approx(value, abs=1e-7)
    assert np.count_nonzero(~np.isnan(found.values)) == 2
    assert found.base == pytest.approx(everyone, abs=1e-7)
    assert found.prediction[0] == pytest.approx(both, abs=1e-7)
    with pytest.raises(DomainError, match="there is no column"):
        shapley_of_facts(truth.subject, {"m": 1})


def test_shapley_values_from_permutations_are_near_the_exact_ones(truth, monkeypatch):
    frame, codes = holes(truth, rows=3, seed=2)
    exact = shapley(truth.subject, frame)
    monkeypatch.setattr(shapley_module, "MAX_COLUMNS", 1)
    found = shapley(truth.subject, frame, random_state=1, rtol=0.0, permutations=400)
    assert found.exact.tolist() == (np.count_nonzero(codes >= 0, axis=1) <= 1).tolist()
    known = ~np.isnan(exact.values)
    assert (~np.isnan(found.values)).tolist() == known.tolist()
    far = np.abs(found.values - exact.values)[known]
    assert np.all(far <= 4.5 * found.error[known] + 1e-7)
    assert np.any(found.error[known] > 0)
    total = found.base + np.nansum(found.values, axis=1)
    assert total.tolist() == pytest.approx(found.prediction.tolist(), abs=1e-7)
    loose = shapley(truth.subject, frame, random_state=1, rtol=0.5, permutations=400)
    assert np.nanmax(loose.error) >= np.nanmax(found.error)
    assert "standard errors" in str(found)
    two = row_of(truth, [0, 1, -1, -1])  # an order and its reverse are all orders
    guessed = shapley(truth.subject, two, permutations=2)
    monkeypatch.setattr(shapley_module, "MAX_COLUMNS", 12)
    assert guessed.values[0, :2] == pytest.approx(shapley(truth.subject, two).values[0, :2])
    assert guessed.error[0, :2] == pytest.approx(0, abs=1e-9)


def test_shapley_values_with_twenty_columns():
    rng = np.random.default_rng(3)
    wide = rng.integers(0, 2, (400, 20)) + 0.0
    inner = LinearRegression().fit(wide, wide @ np.arange(20.0))
    model = ExpectedPredictor(inner, density=ChowLiu()).fit(wide)
    found = shapley(model.expected_output(), wide[:1], permutations=64)
    assert not found.exact[0]
    assert found.base + found.values.sum() == pytest.approx(found.prediction[0])
    assert found.prediction[0] == pytest.approx(model.predict(wide[:1])[0])
    assert found.values[0, 19] == pytest.approx((wide[0, 19] - 0.5) * 19, abs=3)


# -- disparities --------------------------------------------------------------------------


def disparities_by_hand(truth, sensitive, size, least):
    """All gaps, by columns and values of the group and of what is disclosed."""
    out = []
    hidden = [COLUMNS.index(name) for name in sensitive]
    others = [i for i in range(4) if i not in hidden]
    told = [[i] for i in hidden] + ([hidden] if len(hidden) > 1 else [])
    for k in range(size + 1):
        for columns in combinations(others, k):
            for disclosed in told:
                both = [*columns, *disclosed]
                for values in product(*(truth.values(i) for i in both)):
                    group, more = np.full(4, -1), np.full(4, -1)
                    group[list(columns)] = values[:k]
                    more[both] = values
                    if truth.p[truth.within(more)].sum() >= least:
                        with_ = truth.mean(truth.within(more))
                        out.append(with_ - truth.mean(truth.within(group)))
    return out


@pytest.mark.parametrize(("sensitive", "size"), [("a", 2), (["b"], 1), (["a", "b"], 2)])
def test_disparities_are_the_largest_gaps_of_all_groups(truth, sensitive, size):
    options = {"size": size, "population": "density", "max_overlap": 1.0}
    found = disparities(truth.subject, sensitive, delta=0.0, **options)
    names = [sensitive] if isinstance(sensitive, str) else sensitive
    by_hand = disparities_by_hand(truth, names, size, 0.001)
    assert found.tried == len(by_hand)
    assert sorted(found.gap.tolist()) == pytest.approx(sorted(by_hand), abs=1e-6)
    known = found.standard_error > 0
    evidence = np.abs(found.gap[known]) / found.standard_error[known]
    assert np.all(np.diff(evidence if np.any(known) else np.abs(found.gap)) <= 1e-9)
    assert found.gap.tolist() == pytest.approx((found.value - found.without).tolist())
    top = disparities(truth.subject, sensitive, **options)
    assert top.gap.tolist() == found.gap[:20].tolist()
    for i in range(5):  # the texts say what was asked
        rows = Query.read(
            None if found.group[i] == "everyone" else found.group[i], truth.subject.encoder
        )
        told = Query.read(found.disclosed[i], truth.subject.encoder)
        some, more = rows.matches(truth.tidy), (rows & told).matches(truth.tidy)
        assert found.without[i] == pytest.approx(truth.mean(some), abs=1e-7)
        assert found.value[i] == pytest.approx(truth.mean(more), abs=1e-7)
        assert found.share[i] == pytest.approx(truth.p[more].sum())
    delta = float(np.abs(found.gap[3]))
    wanted = np.count_nonzero(np.abs(found.gap) >= delta)
    assert len(disparities(truth.subject, sensitive, delta, **options).gap) == wanted
    shown(found)


def test_small_groups_are_left_out_and_that_is_said(truth):
    options = {"min_share": 0.05, "population": "density", "max_overlap": 1.0}
    found = disparities(truth.subject, "a", size=2, delta=0.0, **options)
    by_hand = disparities_by_hand(truth, ["a"], 2, 0.05)
    assert sorted(found.gap.tolist()) == pytest.approx(sorted(by_hand), abs=1e-6)
    assert found.skipped > 0
    assert "left out" in str(found)
    assert found.share.min() >= 0.05


def test_disparities_given_a_condition(truth):
    options = {"given": "n <= 1 or r == 4", "population": "density"}
    found = disparities(truth.subject, "b", delta=0.0, size=0, **options)
    rows = Query.read("n <= 1 or r == 4", truth.subject.encoder).matches(truth.table)
    gaps = [truth.mean(rows & (truth.parts[:, 1] == b)) - truth.mean(rows) for b in truth.values(1)]
    assert sorted(found.gap.tolist()) == pytest.approx(sorted(gaps), abs=1e-7)
    shares = [truth.p[rows & (truth.parts[:, 1] == b)].sum() for b in truth.values(1)]
    by_hand = np.sort(shares) / truth.p[rows].sum()
    assert np.sort(found.share).tolist() == pytest.approx(by_hand.tolist())


def test_numbers_are_taken_in_four_parts():
    rng = np.random.default_rng(4)
    wide = pd.DataFrame({"s": rng.choice(["u", "v"], 400), "x": rng.normal(size=400)})
    y = np.where(wide["s"] == "u", 1.0, -1.0) * (wide["x"] > 0)
    model = CircuitRegressor(density=ChowLiu(), random_state=0).fit(wide, y)
    options = {"population": "density", "max_overlap": 1.0}
    found = disparities(model.expected_output(), "s", size=1, delta=0.0, **options)
    groups = set(found.group) - {"everyone"}
    assert len(groups) == 4
    assert found.parity[0].share[1:].sum(axis=1).tolist() == pytest.approx([0.25] * 4, abs=0.03)
    texts = [Query.read(group, model.encoder_).matches(wide) for group in sorted(groups)]
    assert np.sum(texts, axis=0).tolist() == [1] * 400
    assert all(
        len(word.strip("-").replace(".", "")) <= 8 for text in groups for word in text.split()
    )
    i = next(i for i, group in enumerate(found.group) if group != "everyone")
    worst = model.expected_output().mean(
        Query.read(f"{found.group[i]} and s == 'u'", model.encoder_).evidence(model.encoder_)
    )[0]
    assert abs(worst[0] - found.without[i]) == pytest.approx(abs(found.gap[i]), rel=1e-3)


def test_parity_is_the_difference_of_expectations(truth):
    frame, codes = holes(truth, rows=40, seed=5)
    under, seen = disparities(truth.subject, "a", size=0, rows=frame).parity
    firsts = truth.values(0)
    groups = [np.full(4, -1)]
    for other in (1, 2, 3):
        for value in truth.values(other):
            groups.append(np.where(np.arange(4) == other, value, -1))
    assert len(under.within) == len(seen.within) == len(groups)
    for place, group in enumerate(groups):
        for i, a in enumerate(firsts):
            rows = truth.within(group) & (truth.parts[:, 0] == a)
            share = truth.p[rows].sum()
            by_hand = truth.mean(rows) if share >= 0.001 else np.nan
            assert under.mean[place, i] == pytest.approx(by_hand, abs=1e-7, nan_ok=True)
            assert under.share[place, i] == pytest.approx(share, abs=1e-9)
        spread = np.nanmax(under.mean[place]) - np.nanmin(under.mean[place])
        assert under.difference[place] == pytest.approx(spread)
    parts = np.array([truth.parts[truth.where(known)].min(axis=0) for known in codes])
    parts[codes < 0] = -1
    for place, group in enumerate(groups):
        total, weight = np.zeros((2, len(firsts)))
        for known in codes[np.all((group < 0) | (parts == group), axis=1)]:
            rows = truth.where(known)
            for i, a in enumerate(firsts):
                chance = truth.p[rows & (truth.parts[:, 0] == a)].sum() / truth.p[rows].sum()
                weight[i] += chance
                total[i] += chance * truth.mean(rows)
        assert seen.share[place].tolist() == pytest.approx((weight / len(codes)).tolist())
        some = weight > 0
        assert seen.mean[place][some].tolist() == pytest.approx(
            (total[some] / weight[some]).tolist(), abs=1e-7
        )
    assert seen.unknown == np.count_nonzero(codes[:, 0] < 0) > 0
    shown(under)
    shown(seen)


def test_of_too_many_groups_the_most_probable_are_compared(truth, monkeypatch):
    everything = disparities(truth.subject, ["a", "b"], size=2, delta=0.0, max_overlap=1.0)
    monkeypatch.setattr("expecta.ask.disparities.MAX_CASES", 20)
    found = disparities(truth.subject, ["a", "b"], size=2, delta=0.0, max_overlap=1.0)
    assert found.tried <= 20 < everything.tried
    assert found.unseen > 0
    assert "were not compared" in str(found)
    assert everything.unseen == 0


def test_disparities_are_ranked_by_evidence():
    rng = np.random.default_rng(0)
    n = 3000
    s, g, x = rng.choice(["u", "v"], n), rng.choice(["p", "q", "r"], n), rng.normal(size=n)
    copy_of_g = np.where(rng.random(n) < 0.98, g, "p")
    y = x + 4.0 * ((s == "u") & (g == "q")) + rng.normal(size=n)
    table = pd.DataFrame({"s": s, "g": g, "h": copy_of_g, "x": x})
    model = CircuitRegressor(density=ChowLiu(), calibration_rows=0, random_state=0).fit(table, y)
    found = model.disparities("s", size=1)
    assert "'q'" in found.group[0]
    assert found.beyond_chance[0]
    evidence = np.abs(found.gap) / found.standard_error
    assert np.all(np.diff(evidence) <= 1e-9)
    assert found.alike > 0  # g == 'q' and h == 'q' have the same members
    assert len({text for text in found.group if "'q'" in text}) == 1
    inside = (table["s"] == found.disclosed[0].split("'")[1]) & (table["g"] == "q")
    assert found.rows[0] == pytest.approx(inside.sum(), abs=0.05 * n)
    assert "beyond_chance" in str(found)


def test_a_model_that_ignores_a_column_differs_by_chance_only():
    from sklearn.linear_model import LinearRegression

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 2000), rng.normal(size=(2000, 2))])
    model = LinearRegression().fit(X, X[:, 1])
    model.coef_[0] = 0.0
    found = ExpectedPredictor(model, ChowLiu()).fit(X).disparities("x0", size=1)
    assert found.tried > 10
    assert not np.any(found.beyond_chance)
    assert "No gap is beyond chance" in str(found)


def test_wrong_questions_about_disparities(truth):
    for wrong in ({"sensitive": []}, {"sensitive": ["a", "a"]}, {"sensitive": "a", "size": -1}):
        with pytest.raises(DomainError):
            disparities(truth.subject, **wrong)


# -- outliers -----------------------------------------------------------------------------


def test_outliers_are_measured_by_what_is_seen_of_them(truth):
    frame, codes = holes(truth, seed=6)
    found = outliers(truth.subject, frame)
    for i, known in enumerate(codes):
        rows = truth.where(known)
        assert found.log_prob[i] == pytest.approx(np.log(truth.p[rows].sum()), abs=1e-9)
        seen = known >= 0
        each = np.array(
            [truth.p[truth.where(np.where(seen, one, -1))].sum() for one in truth.codes]
        )
        chance = truth.p[each <= truth.p[rows].sum() * (1 + 1e-9)].sum()
        allowed = 4 * np.sqrt(chance * (1 - chance) / found.samples) + 1e-9
        assert abs(found.surprise[i] - chance) <= allowed
        for place in range(4):
            if known[place] < 0:
                assert np.isnan(found.conditional[i, place])
                continue
            rest = known.copy()
            rest[place] = -1
            shares = np.array(
                [
                    truth.p[truth.where(rest) & (truth.codes[:, place] == value)].sum()
                    for value in range(truth.subject.encoder.cardinalities_[place])
                ]
            )
            shares /= shares.sum()
            own = shares[known[place]]
            assert found.conditional[i, place] == pytest.approx(np.log(own), abs=1e-9)
            tail = shares[shares <= own * (1 + 1e-9)].sum()
            assert found.tail[i, place] == pytest.approx(tail, abs=1e-9)
    assert len(shown(found)) == len(codes)


def test_outliers_of_a_density_and_of_nothing(truth):
    density = truth.subject
    nothing = outliers(density, {})
    assert nothing.surprise.tolist() == [1.0]
    assert nothing.most_surprising == [None]
    shown(nothing)
    odd = pd.DataFrame({"a": ["x"] * 99 + ["y"], "b": ["u"] * 99 + ["v"]})
    learned = ChowLiu(pseudo_count=0.01).fit(odd)
    found = outliers(learned, pd.DataFrame({"a": ["x", "x"], "b": ["u", "v"]}), samples=500)
    assert found.surprise[1] < 0.02 < found.surprise[0]
    assert found.tail[1].max() < 0.05
    assert outliers(learned, {"b": "v"}).log_prob == pytest.approx(np.log(0.01), abs=0.01)
    with pytest.raises(DomainError, match="no column"):
        outliers(learned, {"c": "v"})
    with pytest.raises(DomainError, match="samples"):
        outliers(learned, odd, samples=0)


# -- populations --------------------------------------------------------------------------


def test_a_population_of_hundreds_of_known_columns_does_not_underflow():
    rng = np.random.default_rng(7)
    wide = np.eye(200, 160)
    wide[:, 0] = rng.integers(0, 2, 200)
    inner = LinearRegression().fit(wide, wide[:, 0])
    subject = ExpectedPredictor(inner, density=Independent()).fit(wide).expected_output()
    codes = np.ones(160, int)
    assert subject.circuit.log_prob(codes[None])[0] < -745
    row = {f"x{i}": int(code) for i, code in enumerate(codes) if i}
    population = Population.read(subject, row)
    shares = population.shares(subject, [((0, np.array([v])),) for v in (0, 1)])
    assert shares.sum() == pytest.approx(1)
    assert next_question(subject, row).columns == ("x0",)


def test_several_classes_are_answered_by_what_is_predicted():
    y = np.digitize(Y, [1.5, 4.0])
    model = CircuitClassifier(density=ChowLiu(), max_splits=0, random_state=0).fit(X, y)
    subject = model.expected_output(of=2)
    row = {"a": "x", "b": True, "n": 1}
    found = shapley(subject, row)
    worth = {}
    for size in range(4):
        for chosen in combinations(row, size):
            told = {name: [row[name] if name in chosen else None] for name in COLUMNS}
            worth[chosen] = model.predict_proba(told)[0, 2]
    for i, name in enumerate(row):
        value = 0.0
        for chosen in worth:
            if name not in chosen:
                more = tuple(one for one in row if one in chosen or one == name)
                share = factorial(len(chosen)) * factorial(2 - len(chosen)) / factorial(3)
                value += share * (worth[more] - worth[chosen])
        assert found.values[0, i] == pytest.approx(value, abs=1e-6)
    asked = next_question(subject, "n <= 1 or b == true")
    assert set(asked.columns) == set(COLUMNS)
    assert np.all(asked.share <= 1)
    assert disparities(subject, "b", size=1).tried > 0


def test_a_forest_is_answered_too():
    inner = RandomForestRegressor(5, max_depth=3, random_state=0).fit(NUMBERS, Y)
    model = ExpectedPredictor(inner, density=ChowLiu()).fit(NUMBERS)
    truth = Truth(model, lambda m, rows: m.predict(rows))
    found = shapley(truth.subject, row_of(truth, [0, 1, 1, -1]))
    by_hand = shapley_by_hand(truth, [0, 1, 1, -1])
    assert found.values[0, :3].tolist() == pytest.approx(list(by_hand.values()), abs=1e-6)
