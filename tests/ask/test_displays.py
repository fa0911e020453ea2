"""Pictures show the numbers of the answers, and say what is shown."""

import subprocess
import sys

import numpy as np
import pytest

from expecta import ChowLiu, CircuitClassifier, CircuitRegressor, Encoder, Independent
from expecta.ask import displays

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

NAMES = [name for name in displays.__all__ if name != "Display"]


def rows(n=160):
    rng = np.random.default_rng(5)
    table = {
        "age": rng.integers(18, 60, n).astype(float),
        "pay $ & $": rng.choice(["low", "mid", "a $strange$ one"], n),
        "city": rng.choice(list("AB"), n),
    }
    y = table["age"] * 100 + 1500 * (table["pay $ & $"] == "low") + rng.normal(0, 50, n)
    return table, y


@pytest.fixture(scope="module")
def regressor():
    table, y = rows()
    small = ChowLiu(encoder=Encoder(max_bins=6))
    return CircuitRegressor(density=small, max_bins=8, max_splits=1, random_state=0).fit(table, y)


@pytest.fixture(scope="module")
def classifier():
    table, y = rows()
    labels = np.where(y > np.median(y), "high", "not so")
    small = ChowLiu(encoder=Encoder(max_bins=6))
    return CircuitClassifier(density=small, max_bins=8, max_splits=0).fit(table, labels)


@pytest.fixture(autouse=True)
def closed():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def some(n):
    return {name: values[:n] for name, values in rows()[0].items()}


def answers(model):
    hidden = {**some(4), "age": [None] * 4}
    return {
        "Group": model.ask(city="A"),
        "Comparison": model.compare({"city": "A"}, {"city": "B"}),
        "Split": model.split("city", "age"),
        "NextQuestion": model.next_question(),
        "Stability": model.stability(hidden, 0.5),
        "Shapley": model.shapley(some(1)),
        "Dependence": model.dependence("age"),
        "Disparities": model.disparities("city"),
        "Outliers": model.outliers(some(5)),
        "DensityCheck": (check := model.check_density()),
        "PairCheck": check.pairs,
        "GroupCheck": check.groups,
    }


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_every_answer_draws_itself_without_anything_cut_off(kind, request):
    found = answers(request.getfixturevalue(kind))
    assert {f"{name}Display" for name in found} | {"CalibrationDisplay"} == set(NAMES)
    for name, answer in found.items():
        drawn = answer.plot()
        assert type(drawn) is getattr(displays, f"{name}Display")
        assert drawn.answer is answer
        assert drawn.figure_ is drawn.ax_.figure
        drawn.figure_.draw_without_rendering()
        whole = drawn.figure_.bbox
        renderer = drawn.figure_.canvas.get_renderer()
        title = drawn.figure_._suptitle
        texts = [title, *drawn.figure_.legends, drawn.ax_.xaxis.label, *drawn.ax_.get_yticklabels()]
        for text in texts:
            if text.get_visible():
                box = text.get_window_extent(renderer)
                assert box.x0 >= whole.x0 - 1, (name, text)
                assert box.x1 <= whole.x1 + 1, (name, text)
        assert title.get_text()
        assert "uncertainty" not in title.get_text()


def test_own_axes_are_used(regressor):
    from matplotlib import pyplot

    _, axes = pyplot.subplots(1, 2)
    drawn = regressor.split("city").plot(axes[1])
    assert drawn.ax_ is axes[1]
    assert not axes[0].has_data()
    assert len(pyplot.get_fignums()) == 1
    assert axes[1].get_legend() is not None
    assert "by city" in axes[1].get_title(loc="left")
    assert drawn.figure_._suptitle is None


def test_group_shows_all_of_its_shares_and_its_mean(regressor):
    answer = regressor.ask(city="A")
    ax = displays.GroupDisplay.from_answer(answer).ax_
    heights = ax.patches[0].get_data().values
    at, below = answer.distribution.curve(61)
    assert heights.sum() == pytest.approx(below[-1] - below[0])
    assert ax.patches[0].get_data().edges == pytest.approx(at)
    lines = [line.get_xdata()[0] for line in ax.lines]
    assert answer.mean in lines
    assert answer.quantiles[0.5] in lines


def test_impossible_groups_say_so(regressor):
    drawn = regressor.ask("age > 30 and age < 20").plot()
    assert "probability zero" in drawn.ax_.texts[0].get_text()
    both = regressor.compare({"city": "A"}, "age > 30 and age < 20").plot()
    assert "probability zero" in both.ax_.texts[0].get_text()


def test_split_has_a_dot_for_each_group_and_hollow_ones_where_rare(regressor):
    answer = regressor.split("city", "age", "pay $ & $", bins=6)
    assert np.any(answer.rare)
    assert not np.all(answer.rare)
    drawn = displays.SplitDisplay.from_answer(answer)
    shown = drawn.shown()
    common, rare = drawn.ax_.lines[:2]
    expected = answer.mean[shown]
    hollow = answer.rare[shown]
    assert common.get_xdata() == pytest.approx(expected[~hollow])
    assert rare.get_xdata() == pytest.approx(expected[hollow])
    assert rare.get_markerfacecolor() == "white"
    labels = [label.get_text() for label in drawn.ax_.get_yticklabels()]
    assert any(r"\$strange\$" in label for label in labels)


def test_bars_of_next_question_are_shares_of_variance(regressor):
    answer = regressor.next_question()
    drawn = displays.NextQuestionDisplay.from_estimator(regressor)
    assert [bar.get_width() for bar in drawn.ax_.patches] == pytest.approx(answer.share.tolist())


def test_steps_of_one_row_lead_from_the_base_to_the_prediction(regressor):
    answer = regressor.shapley(some(1))
    bars = displays.ShapleyDisplay.from_answer(answer).ax_.patches
    assert bars[0].get_x() == pytest.approx(answer.base)
    assert bars[-1].get_x() + bars[-1].get_width() == pytest.approx(answer.prediction[0])


def test_swarm_of_several_rows_has_each_value(regressor):
    answer = regressor.shapley(some(7))
    drawn = displays.ShapleyDisplay.from_answer(answer)
    columns = [label.get_text().replace("\\", "") for label in drawn.ax_.get_yticklabels()]
    for line, name in zip(drawn.ax_.lines, columns, strict=False):
        values = answer.values[:, answer.columns.index(name)]
        assert sorted(line.get_xdata()) == pytest.approx(sorted(values))


def test_dependence_draws_both_curves_and_categories_as_dots(regressor):
    for column in ("age", "city"):
        answer = regressor.dependence(column)
        drawn = displays.DependenceDisplay.from_answer(answer)
        given, alone = drawn.ax_.lines
        across = "get_ydata" if column == "age" else "get_xdata"
        assert getattr(given, across)() == pytest.approx(answer.mean)
        assert getattr(alone, across)() == pytest.approx(answer.partial)


def test_pairs_are_squares_as_strong_as_they_depend_and_framed_beyond_chance(regressor):
    from matplotlib.colors import to_rgb

    x = np.random.default_rng(0).normal(size=(300, 2))
    table = {"up": x[:, 0], "down": -x[:, 0], "other": x[:, 1]}
    check = Independent().fit(table).check(table)
    ax = displays.PairCheckDisplay.from_answer(check.pairs).ax_
    filled = {
        tuple(np.round(np.array(s.get_xy()) + 0.46).astype(int)): s
        for s in ax.patches
        if s.get_edgecolor()[-1] == 0
    }
    assert len(filled) == 6
    assert len(ax.patches) == 8  # the one pair beyond chance is framed twice
    assert filled[0, 1].get_alpha() == pytest.approx(0.85, abs=0.01)  # rows, below
    assert to_rgb(filled[0, 1].get_facecolor()) == to_rgb("#D55E00")  # negative
    assert filled[1, 0].get_alpha() == pytest.approx(0.0, abs=1e-9)  # the density, above
    drawn = displays.PairCheckDisplay.from_estimator(regressor)
    assert [t.get_text() for t in drawn.ax_.get_yticklabels()][2] == "city"


def test_means_of_groups_are_drawn_in_standard_deviations(regressor):
    check = regressor.check_density(some(100))
    drawn = displays.GroupCheckDisplay.from_answer(check.groups)
    x, y = drawn.points()
    np.testing.assert_allclose(y - x, check.groups.size, atol=1e-12)
    whole = check.groups.conditions[check.groups.group] == 0
    np.testing.assert_allclose(x[whole], 0.0, atol=1e-12)
    shown = np.concatenate([line.get_xdata() for line in drawn.ax_.lines[1:]])
    assert sorted(shown) == pytest.approx(sorted(x))
    drawn = displays.GroupCheckDisplay.from_estimator(regressor)
    assert drawn.answer.groups[0] == "all rows"


def test_both_pictures_of_a_check_fit_in_axes_of_yours(regressor):
    from matplotlib import pyplot

    _, ax = pyplot.subplots()
    drawn = displays.DensityCheckDisplay.from_estimator(regressor, ax=ax)
    assert drawn.ax_ is ax
    assert len(drawn.axes_) == 2
    assert all(inner in ax.child_axes for inner in drawn.axes_)


def test_of_many_categories_the_most_frequent_are_drawn():
    names = np.array([f"c{i}" for i in range(40)])
    rows = np.repeat(names, np.arange(40) + 3)
    model = CircuitRegressor(density=ChowLiu(), max_bins=8, max_splits=0, penalties=1.0)
    model.fit({"name": rows}, np.arange(len(rows)) * 1.0)
    answer = model.dependence("name")
    drawn = answer.plot()
    labels = [label.get_text() for label in drawn.ax_.get_yticklabels()]
    commonest = np.sort(np.argsort(-answer.share, kind="stable")[:30])
    assert labels == [answer.labels[i] for i in commonest]
    assert drawn.ax_.lines[0].get_xdata() == pytest.approx(answer.mean[commonest])


def test_times_have_their_own_words_on_the_axis():
    days = np.datetime64("2020-01-01") + np.arange(60)
    model = CircuitRegressor(density=ChowLiu(), max_bins=8, max_splits=0)
    model.fit({"day": days}, np.arange(60.0))
    ax = model.dependence("day").plot().ax_
    assert ax.get_xticklabels()[0].get_text() == "2020-01-01"


def test_many_decisions_are_dots(regressor):
    table = {**some(40), "age": [None] * 40}
    answer = regressor.stability(table, 4500.0)
    ax = answer.plot().ax_
    dots = np.concatenate([line.get_ydata() for line in ax.lines[:-1]])
    assert sorted(dots) == pytest.approx(sorted(answer.probability))


def test_calibration_of_a_classifier_counts_by_hand(classifier):
    table, y = rows()
    labels = np.where(y > np.median(y), "high", "not so")
    found = displays.CalibrationDisplay.from_estimator(classifier, table, labels, of="high", bins=4)
    predicted = classifier.predict_proba(table)[:, 0]
    order = np.argsort(predicted, kind="stable")
    assert found.answer.rows.sum() == len(y)
    assert found.figure_._suptitle.get_text() == "Calibration of P(high), 160 rows"
    start = 0
    for place, n in enumerate(found.answer.rows.tolist()):
        some_rows = order[start : start + n]
        assert found.answer.predicted[place] == pytest.approx(predicted[some_rows].mean())
        assert found.answer.observed[place] == pytest.approx(np.mean(labels[some_rows] == "high"))
        start += n
    assert np.all(found.answer.low <= found.answer.observed + 1e-12)
    assert np.all(found.answer.high >= found.answer.observed - 1e-12)


def test_calibration_of_a_regressor_counts_what_intervals_cover(regressor):
    table, y = rows()
    found = displays.CalibrationDisplay.from_estimator(regressor, table, y).answer
    for predicted, observed in zip(found.predicted.tolist(), found.observed.tolist(), strict=True):
        ends = regressor.predict_interval(table, coverage=predicted)
        inside = sum(low <= one <= high for one, (low, high) in zip(y, ends, strict=True))
        assert observed == inside / len(y)


def test_without_matplotlib_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from expecta.ask.displays import GroupDisplay\n"
        "try: GroupDisplay(None).plot()\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install expecta[plots]" in done.stdout
