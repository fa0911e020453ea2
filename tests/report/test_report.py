"""The report: its structure, its numbers, what comes from data, and how a browser shows it."""

import html
import itertools
import json
import re
import shutil
import subprocess
import sys
from base64 import b64decode, b64encode
from functools import partial
from hashlib import sha256
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.backends import backend_svg

from expecta import ChowLiu, CircuitClassifier, CircuitRegressor, Encoder, ExpectedPredictor
from expecta.ask.displays import DependenceDisplay, GroupDisplay, SplitDisplay
from expecta.circuits.evidence import Evidence
from expecta.common.errors import DomainError
from expecta.common.settings import config_context
from expecta.common.text import figure, percent
from expecta.common.trust import Trust
from expecta.report import write_report
from expecta.report.population import rebinned, shares_of
from expecta.report.svg_figure import svg_figure

HOSTILE = "<script>alert('x')</script>\"&\x00\u202e"
LONG = "a name that is much longer than any figure can hold beside its marks, for certain"
TITLE = "<b>&amp;</b>"
EMPTY = {"meta", "br", "hr"}


def small(**more):
    density = ChowLiu(encoder=Encoder(max_bins=6))
    return {"density": density, "max_bins": 8, "max_splits": 1, "random_state": 0, **more}


def kinds(n=150):
    rng = np.random.default_rng(3)
    age = rng.integers(18, 65, n)
    return {
        "age": np.where(rng.random(n) < 0.2, np.nan, age),
        "when": np.datetime64("2020-01-01T00:00") + rng.integers(0, 10**6, n).astype("m8[m]"),
        "group": rng.choice(["a", "b", "c"], n),
        LONG: rng.choice([f"{LONG} {i}" for i in range(3)], n),
        "same": np.ones(n),
        "flag": rng.random(n) < 0.5,
    }, 100.0 * age + 2000 * rng.random(n)


@pytest.fixture(scope="module")
def regressor():
    table_, y = kinds()
    import pandas as pd

    return CircuitRegressor(**small()).fit(table_, pd.Series(y, name="cost"))


@pytest.fixture(scope="module")
def classifier():
    rng = np.random.default_rng(1)
    x = rng.normal(size=120)
    found = {"x": x, HOSTILE: rng.choice([HOSTILE, "</style>", "b"], 120)}
    return CircuitClassifier(**small()).fit(found, np.where(x > 0, HOSTILE, '"><img src=x>'))


@pytest.fixture(scope="module")
def written(regressor, tmp_path_factory):
    """Return a report on the regressor as text."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(regressor, path, sensitive=["group"], title=TITLE)
    return path.read_text("utf-8")


@pytest.fixture(scope="module")
def page(written):
    return Page(written)


class Page(HTMLParser):
    """What a page is made of; complains where tags do not match."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.stack, self.tags, self.headings, self.words = [], [], [], []
        self.tables, self.row, self.raw = {}, None, {"style": "", "script": ""}
        self.feed(text)
        self.close()
        assert not self.stack

    def handle_starttag(self, name, attributes):
        found = dict(attributes)
        self.tags.append((name, found))
        if name not in EMPTY:
            self.stack.append((name, found))
        if re.fullmatch(r"h[1-6]", name):
            self.headings.append([int(name[1]), ""])
        if name == "tr":
            regions = [a["aria-label"] for tag_, a in self.stack if a.get("class") == "scroll"]
            self.row = []
            self.tables.setdefault(regions[-1], []).append(self.row)
        if name in ("th", "td"):
            self.row.append("")

    def handle_endtag(self, name):
        assert self.stack, name
        assert self.stack.pop()[0] == name

    def handle_data(self, data):
        inside = [name for name, _ in self.stack]
        if inside and inside[-1] in self.raw:
            self.raw[inside[-1]] += data
            return
        self.words.append(data)
        if any(re.fullmatch(r"h[1-6]", name) for name in inside):
            self.headings[-1][1] += data
        if "th" in inside or "td" in inside:
            self.row[-1] += data

    @property
    def text(self):
        return " ".join("".join(self.words).split())

    def titles(self):
        return [title for _, title in self.headings]


def read(model, folder, **options):
    path = folder / "report.html"
    write_report(model, path, **options)
    return Page(path.read_text("utf-8"))


def well_made(page):
    names = [name for name, _ in page.tags]
    ids = [found["id"] for _, found in page.tags if "id" in found]
    assert len(ids) == len(set(ids))
    for name, found in page.tags:
        for key in ("src", "href", "xlink:href", "data", "action", "srcset"):
            if key in found:
                assert key == "href", (name, found)
                assert found[key].startswith("#"), (name, found)
                assert found[key][1:] in ids
        assert not [key for key in found if key.startswith("on") or key == "style"]
        if name == "svg":
            assert found["role"] == "img"
            assert found["aria-label"].strip()
        if name == "th":
            assert found["scope"] in ("row", "col")
        if found.get("class") == "scroll":
            assert found["tabindex"] == "0"
            assert found["aria-label"].strip()
    assert names.count("script") == names.count("style") == names.count("h1") == 1
    assert not {"img", "link", "iframe", "object", "base"} & set(names)
    assert "url(" not in page.raw["style"]
    assert "@import" not in page.raw["style"]
    levels = [level for level, _ in page.headings]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert all(title.strip() for title in page.titles())
    assert "nan" not in re.findall(r"\w+", page.text)


# -- every kind of model ---------------------------------------------------------------


def test_a_regressor_has_all_sections(regressor, page):
    well_made(page)
    assert page.titles() == [
        TITLE,
        *("The model", "Columns", "How well it predicts", "What is assumed"),
        *("What is exact, and what is not", "Whether its density can be trusted"),
        *("The population", "Predictions: cost", "Overall", "The most informative column"),
        *("By one column", "By two columns", "Along each column", "Sensitive columns"),
        "What the words mean",
    ]
    assert "missingness carries no information" in page.text
    assert f"± {figure(regressor.noise_)}" in page.text
    words = page.text.split("What the words mean")[-1].split()
    assert not [word for word in Trust if str(word) not in words]  # each is explained
    assert "column 'same' has the same value in every row" in page.text


def test_the_density_is_checked_against_the_training_rows(regressor, page, tmp_path):
    check = regressor.check_density()
    for sentence in (*check.verdict, *check.remarks, check.likelihood.sentence()):
        assert sentence in page.text
    (label,) = (label for label in page.tables if label.startswith("Dependence of pairs"))
    head, *rows = page.tables[label]
    pairs = check.pairs
    assert head[0] == "worst pairs"
    assert len(rows) == min(10, pairs.count)
    assert rows[0][0] == f"{pairs.columns[pairs.first[0]]} and {pairs.columns[pairs.second[0]]}"
    shown = [float(cell) for cell in rows[0][1:4]]
    assert shown == pytest.approx([pairs.rows[0], pairs.density[0], pairs.error[0]], abs=6e-4)
    assert "-0.000" not in {cell for row in rows for cell in row}
    (label,) = (label for label in page.tables if label.startswith("Means and shares over"))
    assert len(page.tables[label]) == 11
    regressor.save(tmp_path / "m")
    bare = read(CircuitRegressor.load(tmp_path / "m"), tmp_path)
    compared = "compared with the training rows"
    assert compared in page.text
    assert compared not in bare.text
    assert "was not checked here" in bare.text
    assert "was not checked here" not in page.text


def test_several_classes_have_a_part_each_and_the_rest_is_named(tmp_path):
    rng = np.random.default_rng(2)
    x = rng.normal(size=90)
    model = CircuitClassifier(**small(max_splits=0)).fit({"x": x}, np.digitize(x, [-1, 0, 1]))
    page = read(model, tmp_path)
    well_made(page)
    said = [title for title in page.titles() if title.startswith("Predictions")]
    assert said == ["Predictions: P(0)", "Predictions: P(1)", "Predictions: P(2)"]
    assert "the first 3 of 4 classes" in page.text


def test_a_single_class_leaves_nothing_to_ask(tmp_path):
    page = read(CircuitClassifier(**small()).fit({"x": [1.0, 2.0] * 20}, ["a"] * 40), tmp_path)
    well_made(page)
    assert "single class" in page.text


def test_one_column_and_a_constant_one(tmp_path):
    x = np.arange(40.0)
    page = read(CircuitRegressor(**small()).fit({"x": x}, 2 * x), tmp_path)
    well_made(page)
    assert "There are no two columns that vary." in page.text
    page = read(CircuitRegressor(**small()).fit({"c": np.ones(40)}, x), tmp_path)
    well_made(page)
    assert "No column varies." in page.text
    assert "does not depend on the columns" in page.text


def test_without_training_rows_these_are_left_out(regressor, tmp_path):
    regressor.save(tmp_path / "m")
    model = CircuitRegressor.load(tmp_path / "m")
    whole, page = (read(one, tmp_path, sensitive="group") for one in (regressor, model))
    well_made(page)
    assert "Orange: shares of the training rows" not in page.text
    assert "Orange lines" in page.text  # averages, by sums over groups
    assert page.tables["Columns of the model"] == whole.tables["Columns of the model"]
    explained = re.compile("explains [0-9.]+% of the target's variance")
    assert explained.search(page.text)[0] == explained.search(whole.text)[0]
    bare = CircuitRegressor.load(tmp_path / "m")
    bare.group_sums_ = None
    page = read(bare, tmp_path, sensitive="group")
    well_made(page)
    assert "training rows" not in {cell for rows in page.tables.values() for cell in rows[0]}
    assert "Orange lines" not in page.text
    assert page.tables["Columns of the model"][0] == ["column", "kind", "values or range"]


def test_a_classifier_without_rows(classifier, tmp_path):
    classifier.save(tmp_path / "m")
    whole, page = (
        read(one, tmp_path) for one in (classifier, type(classifier).load(tmp_path / "m"))
    )
    well_made(page)
    loss = re.compile("Held-out loss: [^.]*[.][^.]*[.][0-9]+ if every row had")
    assert loss.search(page.text)[0] == loss.search(whole.text)[0]


def test_of_many_columns_the_twelve_most_telling_are_drawn(tmp_path):
    rng = np.random.default_rng(0)
    found = {f"c{i}": rng.choice(list("ab"), 80) for i in range(15)}
    y = sum((i + 1.0) * (found[f"c{i}"] == "a") for i in range(15))
    quick = small(max_splits=0, penalties=1.0, calibration_rows=0)
    model = CircuitRegressor(**quick).fit(found, y)
    page = read(model, tmp_path)
    well_made(page)
    assert "the 12 most telling of 15 columns" in page.text
    best = set(model.next_question().columns[:12])
    drawn = {label[16:] for label in page.tables if label.startswith("Distribution of c")}
    assert drawn == best
    assert len(page.tables["Columns of the model"]) == 16


def test_other_peoples_models_have_a_report(tmp_path):
    from sklearn.tree import DecisionTreeRegressor

    x = np.random.default_rng(0).normal(size=(80, 2))
    tree = DecisionTreeRegressor(max_depth=2).fit(x, x[:, 0])
    model = ExpectedPredictor(tree, density=ChowLiu(encoder=Encoder(max_bins=6))).fit(x)
    page = read(model, tmp_path)
    well_made(page)
    assert "ExpectedPredictor of a DecisionTreeRegressor" in page.text


def test_margins_are_no_probabilities(tmp_path):
    from sklearn.svm import LinearSVC

    x = np.random.default_rng(0).normal(size=(80, 2))
    machine = LinearSVC(random_state=0).fit(x, x[:, 0] > 0)
    model = ExpectedPredictor(machine, density=ChowLiu(encoder=Encoder(max_bins=6))).fit(x)
    subject = model.expected_output()
    assert not subject.is_probability
    page = read(model, tmp_path)
    well_made(page)
    everyone = model.ask()
    mean = f"{figure(everyone.mean)} ± {figure(everyone.standard_error)}"
    assert page.tables["Summary of the model's output"][1][1] == mean


def test_a_model_that_explains_nothing_says_so(tmp_path):
    model = CircuitRegressor(**small()).fit({"x": [1.0, 2.0]}, [1.0, 2.0])
    page = read(model, tmp_path)
    well_made(page)
    assert "the model explains none of it" in page.text
    assert "variance explained" not in page.text


# -- what comes from data --------------------------------------------------------------


def test_hostile_names_stay_text(classifier, tmp_path):
    page = read(classifier, tmp_path, title=HOSTILE, sensitive=HOSTILE)
    well_made(page)
    shown = "<script>alert('x')</script>\"&��"
    assert page.titles()[0] == shown
    assert shown in [row[0] for row in page.tables["Columns of the model"]]
    assert f"P({shown})" in page.text
    text = (tmp_path / "report.html").read_text("utf-8")
    assert text.lower().count("<script") == 1
    assert text.lower().count("</style") == 1
    assert "<img" not in text
    assert not re.search("[\x00-\x08\u202a-\u202e\u2066-\u2069]", text)


def test_the_policy_names_the_one_script_and_the_one_style(classifier, tmp_path):
    page = read(classifier, tmp_path)
    policy = next(a["content"] for name, a in page.tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    for kind, text in page.raw.items():
        digest = b64encode(sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_texts_are_escaped_once(written, page):
    assert page.titles()[0] == TITLE
    assert written.count("<title>&lt;b&gt;&amp;amp;&lt;/b&gt;</title>") == 1


# -- numbers ---------------------------------------------------------------------------


def test_numbers_are_those_of_the_answers(regressor, page):
    everyone = regressor.ask()
    rows = page.tables["Summary of the model's output"]
    mean = f"{figure(everyone.mean)} ± {figure(everyone.standard_error)}"
    assert rows[1] == ["mean", mean]
    assert rows[2] == ["standard deviation", figure(everyone.std)]
    quantiles = [[f"{q:.0%} quantile", figure(one)] for q, one in everyone.quantiles.items()]
    assert rows[3:] == quantiles

    telling = regressor.next_question()
    rows = page.tables["Share of the variance of cost that knowing each column removes"]
    assert rows[1:] == [
        [name, percent(share), figure(left)]
        for name, share, left in zip(telling.columns, telling.share, telling.remaining, strict=True)
    ]
    for name in telling.columns:
        found = regressor.split(name)
        rows = page.tables[f"Model's output cost by {name}"]
        assert [row[0] for row in rows[1:]] == list(found.labels[0])
        pairs = zip(found.mean, found.standard_error, strict=True)
        assert [row[2] for row in rows[1:]] == [f"{figure(m)} ± {figure(e)}" for m, e in pairs]
        assert [row[4] for row in rows[1:]] == [figure(one) for one in found.density_mean]
        assert [row[6] for row in rows[1:]] == [f"{n:,}" for n in found.rows]
        along = regressor.dependence(name)
        rows = next(rows for label, rows in page.tables.items() if f"cost by {name}: " in label)
        pairs = zip(along.mean, along.standard_error, strict=True)
        assert [row[2] for row in rows[1:]] == [f"{figure(m)} ± {figure(e)}" for m, e in pairs]
        assert [row[3] for row in rows[1:]] == [figure(one) for one in along.partial]
        assert along.difference in page.text

    gaps = regressor.disparities("group")
    rows = page.tables["Most evident changes of the expected cost when group is disclosed"]
    assert [row[4] for row in rows[1:]] == [figure(gap, signed=True) for gap in gaps.gap]
    assert [row[1] for row in rows[1:]] == list(gaps.group)


def test_the_pair_of_columns_is_the_one_whose_groups_differ_most(regressor, page):
    names = regressor.next_question().columns[:6]

    def spread(pair):
        found = regressor.split(*pair)
        return np.average((found.mean - found.share @ found.mean) ** 2, weights=found.share)

    best = max(itertools.combinations(names, 2), key=spread)
    assert f"Model's output cost by {best[0]}, {best[1]}" in page.tables


def test_shares_of_the_population_are_those_of_the_density_and_of_the_rows(regressor):
    encoder, seen = regressor.encoder_, regressor.training_rows_
    table_, _ = kinds()
    assert seen.missing_share(0) == pytest.approx(np.mean(np.isnan(table_["age"])))
    place = encoder.variable("group")
    nothing = Evidence.unknown(encoder.cardinalities_)
    density = regressor.refined_.circuit.marginals(nothing)[place][0]
    found = shares_of(encoder.columns_[place], density, seen, place)
    assert found.rows == pytest.approx([np.mean(table_["group"] == one) for one in "abc"])
    assert found.density == pytest.approx(density)

    ages = regressor.refined_.circuit.marginals(nothing)[0][0]
    column = encoder.columns_[0]
    found = shares_of(column, ages, seen, 0)
    known = table_["age"][~np.isnan(table_["age"])]
    assert len(found.labels) == known.max() - known.min() + 1
    for label, share, rows in zip(found.labels, found.density, found.rows, strict=True):
        assert rows == pytest.approx(np.mean(known == float(label)))
        bin_ = column.code(float(label))
        assert share == pytest.approx(ages[bin_] * column.between(*2 * (float(label),))[bin_])


def test_rebinned_numbers_lie_as_in_conditions():
    column = Encoder(bins={"x": [0, 1, 3]}).fit({"x": [0.25, 0.75, 1.5, 2.5]}).columns_[0]
    found = rebinned(column, np.array([0.4, 0.6]), np.array([0.0, 0.5, 1.0, 2.0, 2.5]))
    assert found == pytest.approx([0.2, 0.2, 0.3, 0.3])
    single = Encoder().fit({"x": [0.5, 1.5]}).columns_[0]
    found = rebinned(single, np.array([0.3, 0.7]), np.array([0.5, 1.0, 1.5]))
    assert found == pytest.approx([0.3, 0.7])


def test_held_out_loss_is_beside_that_of_the_shares(classifier, tmp_path):
    page = read(classifier, tmp_path)
    loss = classifier.validation_[classifier.penalty_][classifier.n_splits_]
    share = np.mean(classifier.training_rows_.target == 1)
    even = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert f"Held-out loss: {loss:.3f} nats a row; {even:.3f} if" in page.text


# -- files, figures --------------------------------------------------------------------


def test_a_failure_leaves_the_old_file(regressor, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(DomainError, match="no column 'nobody'"):
        write_report(regressor, path, sensitive="nobody")
    assert path.read_text() == "old"
    with pytest.raises(FileNotFoundError):
        write_report(regressor, tmp_path / "nowhere" / "report.html")
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_a_report_is_the_same_for_any_number_of_threads(classifier, tmp_path):
    texts = []
    for threads in (1, 4):
        with config_context(threads=threads):
            write_report(classifier, tmp_path / "report.html")
        text = (tmp_path / "report.html").read_text("utf-8")
        texts.append(re.sub(r"<dt>written</dt><dd>.*?</dd>", "", text))
    assert texts[0] == texts[1]


def test_figures_drawn_once_are_those_that_savefig_draws_twice(regressor, monkeypatch):
    displays = [
        GroupDisplay(regressor.ask()),
        SplitDisplay(regressor.split("group")),
        DependenceDisplay(regressor.dependence(LONG)),
    ]
    once = [svg_figure(display, "label") for display in displays]

    class Savefig:
        def __init__(self, figure):
            self.print_svg = partial(figure.savefig, format="svg")

    monkeypatch.setattr(backend_svg, "FigureCanvasSVG", Savefig)
    assert once == [svg_figure(display, "label") for display in displays]


def test_every_colour_of_a_figure_is_one_of_the_theme(page):
    inside = page.tags[page.tags.index(next(tag for tag in page.tags if tag[0] == "svg")) :]
    for kind in ("fill", "stroke"):
        used = {found[kind] for _, found in inside if kind in found} - {"none"}
        styled = re.findall(rf'\[{kind}="(#\w+)"\] {{', page.raw["style"])
        styled += re.findall(rf'\[{kind}="(#\w+)"\],', page.raw["style"])
        assert used <= set(styled)


def test_figures_show_the_answers_and_long_labels_are_cut(written):
    label = f"Mean and spread of the model's output cost by {LONG}"
    figures = re.findall(r"<svg .*?</svg>", written, re.DOTALL)
    (svg,) = [svg for svg in figures if f'aria-label="{label}"' in svg]
    words = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert "mean ± spread" in words
    assert "model's output: cost" in [html.unescape(word) for word in words]
    shown = [word for word in words if word.startswith(LONG[:10])]
    assert len(shown) == 3
    assert all(word.endswith("…") and len(word) < 30 for word in shown)


@pytest.mark.parametrize("library", ["jinja2", "matplotlib"])
def test_a_missing_library_is_named_with_what_to_install(library, tmp_path):
    code = (
        f"import sys; sys.modules[{library!r}] = None\n"
        "from expecta.report import write_report\n"
        "try: write_report(None, 'report.html')\n"
        "except ImportError as error: print(error)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert f"there is no {library}; install" in done.stdout
    assert "pip install 'expecta[report]'" in done.stdout
    assert list(tmp_path.iterdir()) == []


# -- a browser -------------------------------------------------------------------------

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
MEASURE = """<script>
var wrong = [];
window.addEventListener("error", function (e) { wrong.push(String(e.message)); });
document.addEventListener("securitypolicyviolation", function (e) { wrong.push(e.blockedURI); });
window.addEventListener("load", function () {
  var root = document.documentElement, button = document.getElementById("theme");
  function colour() { return getComputedStyle(document.body).backgroundColor; }
  var before = colour(), pressed = button.getAttribute("aria-pressed");
  button.focus();
  var focused = document.activeElement === button;
  button.click();
  var after = colour(), cut = [], crossed = [];
  button.click();
  document.querySelectorAll("details").forEach(function (one) { one.open = true; });
  var empty = 0;
  document.querySelectorAll("svg").forEach(function (svg) {
    var box = svg.getBoundingClientRect();
    if (box.width < 200 || box.height < 20) { empty += 1; }
    var texts = Array.from(svg.querySelectorAll("text"));
    texts.forEach(function (one) {
      var at = one.getBoundingClientRect();
      if (at.left < box.left - 2 || at.right > box.right + 2) { cut.push(one.textContent); }
    });
    texts.forEach(function (one, i) {
      texts.slice(i + 1).forEach(function (other) {
        var a = one.getBoundingClientRect(), b = other.getBoundingClientRect();
        if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
            Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4) {
          crossed.push(one.textContent + " / " + other.textContent);
        }
      });
    });
  });
  window.parent.postMessage(JSON.stringify({
    width: window.innerWidth, scroll: root.scrollWidth, wrong: wrong, empty: empty, cut: cut,
    crossed: crossed, before: before, after: after, back: colour(), pressed: pressed,
    focused: focused, dark: window.matchMedia("(prefers-color-scheme: dark)").matches,
    figures: document.querySelectorAll("svg").length
  }), "*");
});
</script>"""
FRAME = """<!DOCTYPE html><pre id="measured"></pre><script>
window.addEventListener("message", function (e) {
  document.getElementById("measured").textContent = btoa(unescape(encodeURIComponent(e.data)));
});
</script><iframe src="report.html" width="WIDTH" height="900" frameborder="0"></iframe>"""


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to look at the page with")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_shows_it_whole(written, tmp_path, width, dark):
    path = tmp_path / "report.html"
    first = '<meta charset="utf-8">'
    text = written.replace(f"<h1>{html.escape(TITLE)}", f"<h1>{LONG}")
    assert LONG in text[: text.index("</h1>")]
    assert text.count(first) == 1
    path.write_text(text.replace(first, first + MEASURE), "utf-8")  # ahead of the page's policy
    frame = tmp_path / "frame.html"  # since windows have a least width
    frame.write_text(FRAME.replace("WIDTH", str(width)), "utf-8")
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
        *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
        *("--disable-sync", "--hide-scrollbars", f"--user-data-dir={tmp_path / 'profile'}"),
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        *("--virtual-time-budget=3000", "--window-size=1400,900", "--dump-dom", frame.as_uri()),
    ]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    match = re.search(r'<pre id="measured">(.+?)</pre>', done.stdout.decode())
    found = json.loads(b64decode(match[1]))
    assert found["width"] == width
    assert found["dark"] == dark
    assert found["scroll"] <= width
    assert found["wrong"] == []
    assert found["figures"] > 10
    assert found["empty"] == 0
    assert found["cut"] == []
    assert found["crossed"] == []
    assert found["before"] == found["back"] != found["after"]
    assert found["pressed"] == str(dark).lower()
    assert found["focused"]


def test_holes_that_are_values_are_counted(tmp_path):
    rng = np.random.default_rng(0)
    dose = np.where(rng.random(200) < 0.3, np.nan, rng.integers(0, 8, 200))
    ward = np.array(["east", "west"])[rng.integers(0, 2, 200)]
    encoder = Encoder(max_bins=3, missing_is_value=["dose"])
    model = CircuitRegressor(density=ChowLiu(), encoder=encoder, max_bins=3, random_state=0)
    model.fit({"dose": dose, "ward": ward}, np.nan_to_num(dose, nan=9.0) + (ward == "east"))
    assert "missing" in read(model, tmp_path).text
    column = model.encoder_.column("dose")
    found = shares_of(column, np.full(column.cardinality, 0.25), model.training_rows_, 0)
    wanted = [
        np.mean((dose >= a) & (dose <= b)) for a, b in zip(column.lows, column.highs, strict=True)
    ]
    assert found.rows == pytest.approx([*wanted, np.mean(np.isnan(dose))])
