"""The page in Chromium: each view filled in, and read back against the library's numbers."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest

import expecta
from expecta import ChowLiu, CircuitRegressor
from expecta.ask.outliers import outliers
from expecta.common.text import figure, percent
from expecta.estimators.expected_estimator import ExpectedEstimator
from served import HOSTILE

pytestmark = pytest.mark.integration

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
sync_api.expect.set_options(timeout=30_000)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("chromium is not installed: make browser-test", allow_module_level=True)

WIDTHS = (390, 1280)
SCHEMES = ("light", "dark")
LONG = "long " * 2000
NAMES = ["<img src=x onerror=alert(1)>", "quotes\"'`", "\u05e9\u05dc\u05d5\u05dd \u202eright", LONG]


def hostile_model():
    """A model whose every name and category is one that a careless page would trip over."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {name: rng.choice([HOSTILE, f"{name[:9000]}!", "a'b\"c"], 120) for name in NAMES}
    )
    table["</textarea><b>"] = rng.normal(size=120)
    y = pd.Series(rng.normal(size=120), name="<script>alert('y')</script>\u202ey")
    return CircuitRegressor(density=ChowLiu(), max_splits=1, random_state=0).fit(table, y)


@contextmanager
def running(files, *more):
    """A service of its own, and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = [f"{name}={path}" for name, path in files.items()]
    source = str(Path(expecta.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-m", "expecta.cli", "serve", *given, "--port", str(port), *more],
        env=os.environ | {"PYTHONPATH": source},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(1200):
            assert process.poll() is None, "the service has ended"
            try:
                urllib.request.urlopen(f"{address}/health/ready").close()
                break
            except OSError:
                time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def page_files(models, model_files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    paths = {name: folder / f"{name}.expecta" for name in ("cost", "hostile")}
    models["cost"].save(paths["cost"], rows=True)
    hostile_model().save(paths["hostile"])
    return model_files | paths


@pytest.fixture(scope="module")
def address(page_files):
    with running(page_files, "--rows") as address:
        yield address


@pytest.fixture(scope="module")
def loaded(page_files):
    return {
        name: ExpectedEstimator.load(path) for name, path in page_files.items() if name != "people"
    }


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Visitor:
    """A browser window on the page, which notes whatever goes wrong in it."""

    def __init__(self, browser, address, width=1280):
        self.context = browser.new_context(
            viewport={"width": width, "height": 844},
            reduced_motion="reduce",
            permissions=["clipboard-read", "clipboard-write"],
            accept_downloads=True,
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.address, self.width, self.faults, self.outside = address, width, [], []
        self.page.on("console", lambda m: m.type == "error" and self.faults.append(m.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("dialog", lambda dialog: self.faults.append("a dialog") or dialog.dismiss())
        self.page.on(
            "request",
            lambda request: (
                request.url.startswith((address, "data:", "blob:"))
                or self.outside.append(request.url)
            ),
        )

    def go(self, view, model, **state):
        query = f"?state={quote(json.dumps(state))}" if state else ""
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}/#/{view}/{quote(model)}{query}")
        self.settle()

    def settle(self):
        """Wait until everything that was asked is answered."""
        self.page.wait_for_selector("main [aria-busy=false], main .report-place")
        self.page.wait_for_timeout(60)  # two frames, in which pictures are drawn

    def text(self, selector):
        return self.page.locator(selector).first.inner_text()

    def check(self, schemes=SCHEMES):
        """Nothing went wrong, nothing is cut off, and axe finds nothing serious, light and dark."""
        assert self.faults == []
        assert self.outside == []
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.width
        for scheme in schemes:
            self.page.emulate_media(color_scheme=scheme)
            found = axe.Axe().run(self.page, options={"resultTypes": ["violations"]})
            serious = [
                (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
                for one in found.response["violations"]
                if one["impact"] in ("serious", "critical")
            ]
            assert serious == [], scheme


@pytest.fixture(params=WIDTHS)
def visitor(request, browser, address):
    visitor = Visitor(browser, address, request.param)
    yield visitor
    visitor.context.close()


@pytest.fixture
def plain_visitor(browser, address):
    visitor = Visitor(browser, address)
    yield visitor
    visitor.context.close()


def one_scheme(visitor):
    return ["light" if visitor.width < 600 else "dark"]


def number(value):
    """A number as the page writes it."""
    return figure(value).replace("-", "−")


def field(visitor, column):
    return visitor.page.locator(
        "fieldset.field", has=visitor.page.locator(f"legend .name:text-is('{column}')")
    )


def density_mean(group):
    return getattr(group, "density_mean", group.mean)


def table_of(model, row):
    """One row as the library takes it: what is not named is unknown."""
    return {name: [row.get(name)] for name in model.feature_names_in_}


def choose_mode(visitor, column, mode):
    field(visitor, column).locator(f"input[value={mode}]").check(force=True)


def bar_texts(visitor, heading):
    card = visitor.page.locator(".card", has=visitor.page.locator(f"h2:text-is('{heading}')"))
    return dict(
        zip(
            card.locator(".bar-label").all_inner_texts(),
            card.locator(".bar-text").all_inner_texts(),
            strict=True,
        )
    )


# -- one case -----------------------------------------------------------------------------


def test_one_case_is_the_librarys(visitor, loaded):
    model = loaded["cost"]
    visitor.go("case", "cost")
    choose_mode(visitor, "age", "value")
    field(visitor, "age").locator("input[type=number]").fill("40")
    field(visitor, "smoker").locator("label", has_text="yes").click()
    visitor.page.get_by_label("Yes, if the output is at least").fill("13000")
    visitor.settle()
    row = dict.fromkeys(model.feature_names_in_) | {"age": 40.0, "smoker": "yes"}
    table = table_of(model, row)
    mean, std = model.predict(table, return_std=True)
    assert visitor.text(".hero .headline") == number(mean[0])
    assert number(std[0]) in visitor.text(".hero .under")
    low, high = model.predict_interval(table, 0.9)[0]
    assert f"between {number(low)} and {number(high)}" in visitor.text(".target-line")
    group = model.ask(age=40.0, smoker="yes")
    visitor.page.get_by_text("The distribution in numbers").click()
    cells = visitor.page.locator(".numbers tbody td.number").all_inner_texts()
    assert cells[::2] == [number(value) for value in group.quantiles.values()]
    decision = model.stability(row, 13_000)
    said = visitor.text(".decision")
    assert said.startswith("Yes" if decision.decision[0] else "No")
    assert percent(decision.probability[0]) in said
    asked = model.next_question(row)
    shown = bar_texts(visitor, "What to ask next")
    assert list(shown) == list(asked.columns)
    assert list(shown.values()) == [percent(share) for share in asked.share]
    values = model.shapley(row)
    adds = {
        f"{name} {known}": figure(value, signed=True).replace("-", "−")
        for name, known, value in zip(
            values.columns, values.known[0], values.values[0], strict=True
        )
        if known
    }
    why = bar_texts(visitor, "Why?")
    assert {name: why[name] for name in adds} == adds
    assert why["nothing known"] == number(values.base)
    assert number(values.prediction[0]) in visitor.text(".why")
    visitor.check()


def test_a_case_with_a_range_and_a_set(plain_visitor, loaded):
    visitor, model = plain_visitor, loaded["cost"]
    visitor.go("case", "cost")
    choose_mode(visitor, "age", "range")
    ends = field(visitor, "age").locator("input[type=number]")
    ends.nth(0).fill("30")
    ends.nth(1).fill("45")
    for label in ("east", "north"):
        field(visitor, "region").locator("label", has_text=label).click()
    visitor.page.get_by_label("Yes, if the output is at least").fill("5000")
    visitor.settle()
    group = model.ask(age=(30, 45), region=["east", "north"])
    assert visitor.text(".hero .headline") == number(density_mean(group))
    assert number(group.std) in visitor.text(".hero .under")
    assert "single values" in visitor.text(".hero")
    asked = model.next_question({"age": (30.0, 45.0), "region": ["east", "north"]})
    assert list(bar_texts(visitor, "What to ask next")) == list(asked.columns)
    assert {"age 30 to 45", "region east or north"} <= set(bar_texts(visitor, "Why?"))  # words
    visitor.check()
    before = visitor.text(".hero .headline")
    visitor.page.reload()  # the address holds the case
    visitor.settle()
    assert visitor.text(".hero .headline") == before
    field(visitor, "region").get_by_role("button").click()
    visitor.page.get_by_role("button", name="Forget all").click()
    visitor.settle()
    assert visitor.text(".hero .headline") == number(density_mean(model.ask()))


def test_an_emptied_box_is_unknown(plain_visitor, loaded):
    visitor, model = plain_visitor, loaded["cost"]
    visitor.go("case", "cost", row={"age": 40, "smoker": "yes"})
    field(visitor, "age").locator("input[type=number]").fill("")
    visitor.settle()
    assert visitor.text(".hero .headline") == number(density_mean(model.ask(smoker="yes")))
    field(visitor, "age").locator("input[type=number]").fill("4000")
    visitor.settle()
    assert "far from the training data of column" in visitor.text(".hero")


def test_a_complete_case_is_no_reason_to_take_care(plain_visitor, loaded):
    row = {"age": 40, "smoker": "no", "region": "east", "since": "2020-05-06", "vip": False}
    plain_visitor.go("case", "cost", row=row)
    said = plain_visitor.text(".hero")
    assert "Take care" not in said
    assert "this is the model’s own output" in said


def test_times_and_choices(plain_visitor, loaded):
    visitor, model = plain_visitor, loaded["cost"]
    visitor.go("case", "cost", row={"vip": True, "since": {"between": ["2020-03-01", None]}})
    group = model.ask(vip=True, since=("2020-03-01", None))
    assert visitor.text(".hero .headline") == number(density_mean(group))
    ends = field(visitor, "since").locator(".inputs input")
    assert [ends.nth(i).input_value() for i in (0, 1)] == ["2020-03-01", ""]
    choose_mode(visitor, "since", "value")
    assert ends.input_value() == "2020-03-01"
    field(visitor, "since").locator(".inputs input").fill("2021-06-07")
    field(visitor, "since").locator(".inputs input").dispatch_event("change")
    visitor.settle()
    mean, std = model.predict(
        table_of(model, {"vip": True, "since": "2021-06-07"}), return_std=True
    )
    assert visitor.text(".hero .headline") == number(mean[0])
    assert number(std[0]) in visitor.text(".hero .under")
    assert f"expected {number(mean[0])}" in visitor.page.locator(".picture svg").text_content()
    visitor.check()


def test_a_slider_moves_a_case(plain_visitor, loaded):
    visitor, model = plain_visitor, loaded["cost"]
    visitor.go("case", "cost")
    slider = field(visitor, "age").locator("input[type=range].lower")
    slider.focus()
    slider.press("Home")
    slider.press("ArrowRight")
    visitor.settle()
    age = float(slider.input_value())
    assert age == loaded["cost"].expected_model.density.encoder_.columns_[0].lows.min() + 1
    assert visitor.text(".hero .headline") == number(
        model.predict(table_of(model, {"age": age}))[0]
    )
    assert visitor.faults == []


def test_the_first_answer_comes_soon(plain_visitor):
    """Within 100 ms of a change, where nothing else runs; the median of several changes here."""
    visitor = plain_visitor
    visitor.go("case", "cost")
    spent = visitor.page.evaluate(
        """async () => {
        const slider = document.querySelector('.slider input');
        const headline = document.querySelector('.hero .headline');
        const times = [];
        for (let i = 0; i < 15; i += 1) {
            const start = performance.now();
            const seen = new Promise((resolve) => {
                const watch = new MutationObserver(() => { watch.disconnect(); resolve(); });
                watch.observe(headline, { childList: true });
            });
            slider.value = Number(slider.min) + i;
            slider.dispatchEvent(new Event('input'));
            await seen;
            times.push(performance.now() - start);
            await new Promise((resolve) => {
                const wait = () => document.querySelector('.case[aria-busy=false]')
                    ? resolve() : setTimeout(wait, 10);
                wait();
            });
        }
        return times;
    }"""
    )
    print(f"first answer: median {np.median(spent):.0f} ms, largest {max(spent):.0f} ms")
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    assert np.median(spent) < 100 * max(1.0, busy)


def test_a_slider_that_is_dragged_keeps_one_question_under_way(plain_visitor, loaded):
    visitor = plain_visitor
    visitor.go("case", "cost")
    under_way, most, asked = {}, {}, []

    def begin(request):
        asked.append(request.url)
        under_way[request.url] = under_way.get(request.url, 0) + 1
        most[request.url] = max(most.get(request.url, 0), under_way[request.url])

    def end(request):
        under_way[request.url] -= 1

    visitor.page.on("request", begin)
    visitor.page.on("requestfinished", end)
    last = visitor.page.evaluate(
        """async () => {
        const slider = document.querySelector('.slider input');
        for (let i = 0; i < 60; i += 1) {
            slider.value = Number(slider.min) + (i % 30);
            slider.dispatchEvent(new Event('input'));
            await new Promise((resolve) => setTimeout(resolve, 4));
        }
        return Number(slider.value);
    }"""
    )
    visitor.settle()
    assert most[f"{visitor.address}/models/cost/predict"] == 1
    assert most[f"{visitor.address}/models/cost/case"] <= 2  # two parts of an answer
    assert len(asked) < 120
    mean = loaded["cost"].predict(table_of(loaded["cost"], {"age": last}))[0]
    assert visitor.text(".hero .headline") == number(mean)


def test_a_failure_leaves_no_old_number(plain_visitor):
    visitor = plain_visitor
    visitor.go("case", "cost")
    problem = {"status": 422, "title": "no", "detail": "column 'age' <b>is odd</b>"}
    visitor.page.route("**/predict", lambda route: route.fulfill(status=422, json=problem))
    field(visitor, "smoker").locator("label", has_text="yes").click()
    sync_api.expect(visitor.page.locator(".hero .headline")).to_have_text("—")
    assert "<b>is odd</b>" in visitor.text(".problem")
    visitor.page.unroute("**/predict")
    field(visitor, "smoker").locator("label", has_text="no").click()
    sync_api.expect(visitor.page.locator(".hero .headline")).not_to_have_text("—")
    assert visitor.page.locator(".problem").count() == 0


def test_a_model_that_was_replaced_is_shown_anew(plain_visitor):
    visitor = plain_visitor
    visitor.go("case", "cost", row={"age": 30})

    def other(route):
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"version": "another"})

    visitor.page.route("**/case", other, times=1)
    with visitor.page.expect_request(f"{visitor.address}/models/cost"):
        field(visitor, "smoker").locator("label", has_text="yes").click()
    sync_api.expect(visitor.page.locator(".why")).to_contain_text("smoker is yes")
    assert visitor.faults == []


def test_a_case_can_be_taken_elsewhere(plain_visitor, loaded, address):
    visitor = plain_visitor
    row = {"age": 33, "region": HOSTILE}
    visitor.go("case", "cost", row=row, threshold=9000)
    request = {"row": row, "threshold": 9000, "coverage": 0.9}
    snippet = visitor.text(".snippet")
    assert json.loads(snippet) == request
    assert "\u202e" in HOSTILE
    assert "\u202e" not in snippet  # it would turn the rest of the line around
    share = visitor.page.locator(".share")
    mean = loaded["cost"].predict(table_of(loaded["cost"], row))[0]
    share.locator("label", has_text="curl").click()
    share.get_by_role("button", name="Copy", exact=True).click()
    copied = visitor.page.evaluate("navigator.clipboard.readText()")
    answer = subprocess.run(["bash", "-c", copied], capture_output=True, check=True, timeout=60)
    assert json.loads(answer.stdout)["prediction"] == mean
    share.locator("label", has_text="Python").click()
    code = visitor.text(".snippet")
    printed = []
    loader = type("Loader", (), {"load": staticmethod(lambda _: loaded["cost"])})
    scope = {"CircuitRegressor": loader, "print": printed.append}
    exec(code.replace("from expecta import CircuitRegressor", ""), scope)
    assert printed[0][0] == mean
    share.get_by_role("button", name="Copy link").click()
    link = visitor.page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(address)
    before = visitor.text(".hero .headline")
    visitor.page.goto("about:blank")
    visitor.page.goto(link)
    visitor.settle()
    assert visitor.text(".hero .headline") == before == number(mean)


@pytest.mark.parametrize(("name", "of"), [("smoker", "yes"), ("region", "south")])
def test_probabilities(plain_visitor, loaded, name, of):
    visitor, model = plain_visitor, loaded[name]
    visitor.go("case", name, row={"age": 50}, of=of)
    table = table_of(model, {"age": 50})
    share = model.predict_proba(table)[0, list(model.classes_).index(of)]
    assert visitor.text(".hero .headline") == percent(share)
    assert str(model.predict(table)[0]) in visitor.text(".hero .under")
    assert f"± {percent(model.ask(age=50, of=of).std)} spread" in visitor.text(".hero .under")
    assert visitor.page.locator(".hero select").input_value() == of
    visitor.check()


def test_a_case_that_cannot_be(plain_visitor):
    visitor = plain_visitor
    visitor.go("case", "cost", row={"since": "1850-01-01", "age": 25})
    assert visitor.faults == []
    visitor.go("case", "cost", row={"nobody": 1, "age": 30})  # a column of another model
    assert visitor.text(".hero .headline") != "…"


# -- groups -------------------------------------------------------------------------------


def cells(visitor):
    rows = visitor.page.locator(".group-answer table tbody tr").all()
    return [[cell.inner_text() for cell in row.locator("th, td").all()] for row in rows]


def test_a_question(visitor, loaded, tmp_path):
    visitor.go("groups", "cost")
    visitor.page.get_by_label("Group", exact=True).fill("age >= 40 and smoker == 'yes'")
    sync_api.expect(visitor.page.locator(".query")).to_contain_text("age >= 40")
    visitor.settle()
    group = loaded["cost"].ask("age >= 40 and smoker == 'yes'")
    assert visitor.text(".group-answer .headline") == number(group.mean)
    shown = dict(cells(visitor))
    assert shown["mean"] == number(group.mean)
    assert shown["spread"] == number(group.std)
    assert shown["share"] == percent(group.share)
    assert shown["training rows"] == str(group.rows)
    assert shown["their average"] == number(group.rows_mean.mean)
    assert shown["95% quantile"] == number(group.quantiles[0.95])
    with visitor.page.expect_download() as file:
        visitor.page.get_by_role("button", name="CSV").click()
    frame = pd.read_csv(file.value.path())
    assert frame["mean"][0] == group.mean  # to the last bit
    assert frame["group"][0] == group.query
    with visitor.page.expect_download() as file:
        visitor.page.get_by_role("button", name="SVG").click()
    picture = Path(file.value.path()).read_text("utf-8")
    assert picture.startswith("<svg")
    assert "var(" not in picture
    visitor.check()


def test_a_comparison_that_is_clicked_together(visitor, loaded):
    visitor.go("groups", "cost")
    visitor.page.locator(".segments label", has_text="Compare").click()
    editors = visitor.page.locator(".group-editor")
    for i, label in enumerate(("yes", "no")):
        editors.nth(i).get_by_text("Click it together").click()
        smoker = editors.nth(i).locator(
            "fieldset.field", has=visitor.page.locator("legend .name:text-is('smoker')")
        )
        smoker.locator("label", has_text=label).click()
    for i in (0, 1):
        sync_api.expect(visitor.page.locator("textarea").nth(i)).not_to_be_empty()
    visitor.settle()
    both = loaded["cost"].compare("smoker == 'yes'", "smoker == 'no'")
    texts = [visitor.page.locator("textarea").nth(i).input_value() for i in (0, 1)]
    assert texts == [both.a.query, both.b.query]
    assert visitor.text(".group-answer .headline") == number(both.difference)
    assert percent(both.superiority) in visitor.text(".group-answer .under")
    shown = {row[0]: row[1:] for row in cells(visitor)}
    assert shown["mean"] == [number(both.a.mean), number(both.b.mean)]
    assert visitor.page.locator(".group-answer path.curve").count() == 2
    visitor.check(one_scheme(visitor))


def test_a_split_as_small_multiples(visitor, loaded):
    visitor.go("groups", "cost", mode="split", by=["smoker"], bins=3)
    visitor.page.locator(".split-by label", has_text="age").click()
    visitor.page.wait_for_selector("figure:nth-of-type(2)")
    visitor.settle()
    parts = loaded["cost"].split("smoker", "age", bins=3)
    shown = cells(visitor)
    assert len(shown) == len(parts) == 6
    for i, row in enumerate(shown):
        assert row[:2] == [parts.labels[0][i], parts.labels[1][i]]
        assert row[2:5] == [percent(parts.share[i]), number(parts.mean[i]), number(parts.std[i])]
    assert visitor.page.locator("figure").count() == 3
    assert visitor.page.locator("figure circle").count() == 6
    visitor.check(one_scheme(visitor))


def test_a_question_that_is_wrong(plain_visitor):
    visitor = plain_visitor
    visitor.go("groups", "cost", a="agee > 3")
    assert "agee" in visitor.text(".problem")
    assert "age" in visitor.text(".problem")
    visitor.page.get_by_label("Group", exact=True).fill("age > 30")
    visitor.page.wait_for_selector(".group-answer .headline")
    assert [fault for fault in visitor.faults if "422" not in fault] == []


# -- the model, and whatever is strange -----------------------------------------------------


def test_the_report(visitor):
    visitor.go("model", "cost")
    report = visitor.page.locator(".report-place")
    assert report.get_by_role("heading", name="Report: predictions of cost").count() == 1
    assert report.locator("svg").count() > 3
    visitor.check(one_scheme(visitor))


def test_a_density_tells_how_unusual_a_case_is(plain_visitor, models):
    visitor = plain_visitor
    row = {"age": 40.0, "smoker": "yes"}
    visitor.go("case", "people", row=row)
    table = {name: [row.get(name)] for name in models["people"].feature_names_in_}
    answer = outliers(models["people"], table)
    said = visitor.text(".hero")
    assert f"Log-probability {number(answer.log_prob[0])} nats" in said
    tails = dict(zip(answer.columns, answer.tail[0], strict=True))
    shown = bar_texts(visitor, "How unusual")
    assert list(shown.values()) == sorted(percent(tails[name]) for name in row)
    visitor.check(["light"])
    assert "Take care" not in said
    visitor.go("case", "people", row={"age": 900.0})
    assert "Take care: no such value in the training data: age 900" in visitor.text(".hero")
    visitor.page.goto(f"{visitor.address}/#/model/people")
    visitor.page.wait_for_selector(".model table")
    assert "ChowLiu" in visitor.text(".facts")
    visitor.check(["dark"])


def test_hostile_names_are_text(visitor, loaded):
    model = loaded["hostile"]
    row = {NAMES[0]: HOSTILE, NAMES[1]: "a'b\"c", "</textarea><b>": 0.5}
    visitor.go("case", "hostile", row=row)
    assert visitor.text(".hero .headline") == number(model.predict(table_of(model, row))[0])
    assert any("<script>" in text for text in visitor.page.locator(".chip").all_inner_texts())
    assert "<img src=x" in visitor.text("legend")
    visitor.check(["light"])
    facts = {NAMES[2]: {"in": [HOSTILE, "a'b\"c"]}, NAMES[3]: f"{NAMES[3][:9000]}!"}
    visitor.go("groups", "hostile", a=facts)
    group = model.ask({NAMES[2]: [HOSTILE, "a'b\"c"], NAMES[3]: f"{NAMES[3][:9000]}!"})
    assert visitor.text(".group-answer .headline") == number(group.mean)
    visitor.check([])
    visitor.go("groups", "hostile", mode="split", by=[NAMES[0], NAMES[3]])
    assert visitor.page.locator("figure").count() == 3
    visitor.check(["dark"])
    visitor.go("model", "hostile")
    visitor.check([])
    made = "main script, main img, main b, .report-place textarea"
    assert visitor.page.locator(made).count() == 0


def test_a_token_is_asked_for(plain_visitor):
    visitor = plain_visitor

    def guard(route):
        if route.request.headers.get("authorization") == "Bearer open sesame":
            route.continue_()
        else:
            problem = {"status": 401, "title": "Unauthorized", "detail": "a token"}
            route.fulfill(status=401, json=problem, content_type="application/problem+json")

    visitor.page.route("**/models**", guard)
    visitor.page.goto(visitor.address)
    for token in ("wrong", "open sesame"):
        visitor.page.get_by_label("Token").fill(token)
        visitor.page.get_by_role("button", name="Go on").click()
    visitor.settle()
    assert visitor.text(".hero .headline") != "…"
    assert [fault for fault in visitor.faults if "401" not in fault] == []


def test_the_page_prints(plain_visitor):
    visitor = plain_visitor
    visitor.go("case", "cost", row={"age": 40})
    assert visitor.page.pdf(format="A4").startswith(b"%PDF")
    visitor.page.emulate_media(media="print")
    assert not visitor.page.locator("nav").is_visible()
    assert visitor.page.locator(".hero .headline").is_visible()
