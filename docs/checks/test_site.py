"""Check the site that was built: its own search finds pages, and its links lead somewhere."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from py_mini_racer import MiniRacer

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "docs" / "html"
HTML = [path for path in SITE.rglob("*.html") if "_static" not in path.parts]  # no templates

# What a user would type, and the page that should be among the first three.
QUESTIONS = {
    line.split(" -> ")[0]: line.split(" -> ")[1]
    for line in (Path(__file__).parent / "questions.txt").read_text("utf-8").splitlines()
    if " -> " in line
}
# What the scripts of the search need of a browser.
BROWSER = """
var localStorage = {setItem: function () {}, removeItem: function () {}};
var document = {addEventListener: function () {}, getElementById: function () { return null; },
                querySelector: function () { return null; },
                documentElement: {dataset: {content_root: './'}}, currentScript: null};
var window = globalThis;
window.location = {search: '', href: ''};
window.addEventListener = function () {};
var DOCUMENTATION_OPTIONS = {FILE_SUFFIX: '.html', LINK_SUFFIX: '.html', BUILDER: 'html'};
var SPHINX_HIGHLIGHT_ENABLED = false;
var _ = function (text) { return text; };
var Documentation = {gettext: _, ngettext: _};
function _ready() {}
function URLSearchParams() { return {get: function () { return null; }}; }
"""
ASK = """
JSON.stringify((function (query) {
    const parsed = Search._parseQuery(query);
    return Search._performSearch(...parsed).slice(-12).reverse().map(found => found[0] + '.html');
})(%s))
"""


@pytest.fixture(scope="module")
def search():
    """The search of the site, with its own index, in V8."""
    engine = MiniRacer()
    engine.eval(BROWSER)
    for name in ("language_data.js", "searchtools.js"):
        engine.eval((SITE / "_static" / name).read_text("utf-8"))
    engine.eval("globalThis.Search = Search")
    engine.eval((SITE / "searchindex.js").read_text("utf-8"))
    return lambda words: json.loads(engine.eval(ASK % json.dumps(words)))


def test_there_are_enough_questions():
    assert len(QUESTIONS) >= 30
    assert all((SITE / page).exists() for page in QUESTIONS.values())


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_search_finds(search, question):
    found = list(dict.fromkeys(search(question)))[:3]
    assert QUESTIONS[question] in found, found


class Page(HTMLParser):
    """The links of a page, and what they can lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        self.links += [values[key] for key in ("href", "src") if values.get(key)]


def anchors(pages, target):
    """What a fragment may name; anything, of what is no page."""
    return pages[target].anchors if target in pages else Everything()


class Everything:
    def __contains__(self, name):
        return True


def test_links_lead_somewhere():
    pages = {path: Page(path.read_text("utf-8")) for path in HTML}
    assert len(pages) > 100
    lost, followed = [], 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            followed += 1
            part = unquote(parts.fragment)
            if not target.exists() or (part and part not in anchors(pages, target)):
                lost.append((path.name, link))
    assert followed > 5000
    assert lost == []


def test_nothing_is_loaded_from_elsewhere():
    loaded = re.compile(r'<(?:script|img|link)[^>]*?(?:src|href)="(https?:)?//[^"]+"')
    found = [
        (path.name, match[0])
        for path in HTML
        for match in loaded.finditer(path.read_text("utf-8"))
        if 'rel="canonical"' not in match[0]
    ]
    assert found == []
