"""The page's files are small, come from nowhere else, and are served under a strict policy."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

FOLDER = Path(str(files("expecta.serve") / "page"))
FILES = sorted(path for path in FOLDER.rglob("*") if path.is_file())
MAX_BYTES = 300_000
NAMESPACES = {"http://www.w3.org/2000/svg"}  # names, which nothing is loaded from


def test_all_files_together_are_small():
    assert {"index.html", "main.js", "page.css"} <= {path.name for path in FILES}
    assert sum(path.stat().st_size for path in FILES) < MAX_BYTES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_names_no_other_address_and_makes_no_html_of_texts(path):
    text = path.read_text("utf-8")
    assert set(re.findall(r"""https?://[^\s"'`<>)]+""", text)) <= NAMESPACES
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text)
    if path.suffix == ".html":
        assert not re.search(r"<style|\sstyle=|<script(?![^>]*\ssrc=)|\son\w+=", text)


def test_modules_import_files_that_are_there():
    names = {path.name for path in FILES}
    for path in FILES:
        text = path.read_text("utf-8")
        wanted = re.findall(r'from "\./([\w.]+)"', text) + re.findall(r'"/page/([\w.]+)"', text)
        assert set(wanted) <= names, path.name


def test_the_page_is_served_with_a_strict_policy(client):
    answers = {"/": client.get("/")}
    answers |= {f"/page/{path.name}": client.get(f"/page/{path.name}") for path in FILES}
    kinds = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    for path, answer in answers.items():
        assert answer.status_code == 200, path
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["content-type"].startswith(kinds.get(Path(path).suffix, "text/html"))
    assert answers["/"].content == (FOLDER / "index.html").read_bytes()
