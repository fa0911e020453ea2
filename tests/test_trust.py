"""The contract for trust: its words are those of the code, and its tests exist."""

import re
from pathlib import Path

from expecta.common.trust import Trust

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")


def rows(heading):
    """The rows of the first table after a heading, as the cells of each."""
    part = PAGE[PAGE.index(heading) :]
    table = re.search(r"(?:^\|.*\n)+", part, re.MULTILINE)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|", 1)] for line in table]


def test_the_words_of_the_page_are_those_of_the_code():
    words = [word.value for word in Trust]
    assert [word for word, _ in rows("# A contract for trust")] == words
    assert [word for word, _ in rows("## The tests behind each word")] == words


def test_every_word_has_tests_that_exist():
    for word, tests in rows("## The tests behind each word"):
        paths = re.findall(r"`(tests/[\w/]+\.py)`", tests)
        assert paths, word
        assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_page_is_linked():
    for page in ("README.md", "docs/models.md", "docs/questions.md"):
        assert "trust.md)" in (ROOT / page).read_text(encoding="utf-8")
