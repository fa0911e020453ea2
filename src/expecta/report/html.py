"""HTML as text that cannot be broken by what comes from data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["Html", "details", "figure_of", "join", "paragraphs", "table", "tag"]

# what HTML forbids, and what turns the direction of the text around
_ODD = {
    **{code: "�" for code in range(32) if chr(code) not in "\t\n"},
    **dict.fromkeys((*range(127, 160), *range(8234, 8239), *range(8294, 8298)), "�"),
    **dict.fromkeys((65534, 65535, *range(55296, 57344)), "�"),
}
_EMPTY = {"meta", "br", "hr"}


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def safe(value: object) -> Html:
    """Return HTML as it is, and anything else as text."""
    if isinstance(value, Html):
        return value
    return Html(escape(str(value).translate(_ODD), quote=True))


def join(parts: Iterable[object], between: str = "") -> Html:
    """Put HTML and texts one after the other."""
    return Html(between.join(safe(part) for part in parts))


def tag(name: str, /, *inside: object, **attributes: object) -> Html:
    """Write an element.

    Underscores in names of attributes are dashes, one at the end is dropped (``class_``), and
    what is None is left out.

    >>> tag("p", "a < b", class_="note", aria_label='"x"')
    '<p class="note" aria-label="&quot;x&quot;">a &lt; b</p>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{safe(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _EMPTY:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{join(inside)}</{name}>")


def paragraphs(sentences: Iterable[object], class_: str | None = None) -> Html:
    """Write a paragraph for each."""
    return join(tag("p", sentence, class_=class_) for sentence in sentences)


def table(
    head: Sequence[str], rows: Iterable[Sequence[object]], label: str, *, texts: int = 1
) -> Html:
    """Write a table that scrolls by itself where it is wide; the first cell heads its row.

    Cells from the place ``texts`` on are numbers, set to the right.
    """
    kinds = ["text" if place < texts else "number" for place in range(len(head))]
    top = join(
        tag("th", one, scope="col", class_=kind) for one, kind in zip(head, kinds, strict=True)
    )
    body = []
    for row in rows:
        first = tag("th", row[0], scope="row", class_=kinds[0])
        rest = zip(row[1:], kinds[1:], strict=True)
        body.append(tag("tr", first, *(tag("td", cell, class_=kind) for cell, kind in rest)))
    inner = tag("table", tag("thead", tag("tr", top)), tag("tbody", *body))
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=label)


def details(summary: object, *inside: object) -> Html:
    """Write something that opens when it is asked for."""
    return tag("details", tag("summary", summary), *inside)


def figure_of(title: object, picture: Html, *after: object) -> Html:
    """Write a figure with its caption above."""
    return tag("figure", tag("figcaption", title), picture, *after, class_="card")
