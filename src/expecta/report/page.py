"""The page around the sections: head, contents, style."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

from expecta.report.html import Html, tag

__all__ = ["Section", "page"]


class Section(NamedTuple):
    """A part of the page."""

    id: str
    title: object
    content: Html


def page(title: str, summary: Html, sections: Sequence[Section]) -> Html:
    """Write the whole page.

    Its policy lets a browser load nothing, and run the one script that it has.
    """
    style, script = _file("style.css"), _file("theme.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        f"base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content="Expecta"),
        tag("title", title),
        tag("style", Html(style)),
    )
    links = (tag("li", tag("a", one.title, href=f"#{one.id}")) for one in sections)
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#content", class_="skip"),
        tag(
            "header",
            tag("h1", title),
            tag("button", "Dark", type="button", id="theme", aria_pressed="false", hidden=""),
            summary,
        ),
        tag("nav", tag("ul", *links), aria_label="Contents"),
        tag("main", *(_section(one) for one in sections), id="content", tabindex="-1"),
        tag("footer", tag("p", "Written by Expecta.")),
        tag("script", Html(script)),
    )
    return Html(f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n")


def _section(one: Section) -> Html:
    return tag(
        "section",
        tag("h2", one.title, id=f"{one.id}-title"),
        one.content,
        id=one.id,
        aria_labelledby=f"{one.id}-title",
    )


def _file(name: str) -> str:
    return files("expecta.report").joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
