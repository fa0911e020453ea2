"""Draw a display as SVG that stands in a page: no styles, no resources, the page's colours."""

from __future__ import annotations

import re
import warnings
from io import StringIO
from typing import Any
from xml.etree import ElementTree

from expecta.ask.displays import Display
from expecta.common.text import printable

WIDTH_INCHES = 4.0  # 288 points, about the pixels that a phone has across
SETTINGS = {
    "svg.fonttype": "none",  # texts stay texts
    "font.size": 9.0,
    "xaxis.labellocation": "right",  # has the room below the labels of rows
    "legend.handlelength": 1.5,
    "legend.columnspacing": 1.0,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}


def svg_figure(display: Display[Any], label: str, *, height: float | None = None) -> str:
    """Draw a display; ``label`` is what a screen reader says of it. Deterministic.

    The page's style sheet gives the colours of displays those of its theme. ``height`` is in
    inches, by default that of the display.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that matplotlib's font lacks, a browser has
        matplotlib.rcdefaults()
        # Ids are hashes: other ones in every figure of a page, the same in every run.
        matplotlib.rcParams.update(SETTINGS | {"svg.hashsalt": label})
        size = WIDTH_INCHES, height or display.size()[1]
        figure = Figure(figsize=size, layout="constrained")
        display.plot_figure(figure)
        figure.suptitle("")  # the page has a caption
        file = StringIO()
        # savefig would draw twice: first, unseen, for the layout, which drawing finds itself
        FigureCanvasSVG(figure).print_svg(file, metadata={"Date": None})
    return _inline(file.getvalue(), label)


def _inline(svg: str, label: str) -> str:
    """Return matplotlib's SVG as an element of a page whose policy forbids inline styles."""
    root = ElementTree.fromstring(svg)
    for element in list(root.iter()):
        for child in list(element):
            if _local(child.tag) in ("metadata", "style"):
                element.remove(child)
    referenced = set(re.findall(r'(?:url\(|href=")#([^)"]+)', svg))
    for element in root.iter():
        element.tag = _local(element.tag)
        given = {_local(name): value for name, value in element.attrib.items()}
        if given.get("id") not in referenced:
            given.pop("id", None)
        element.attrib = _as_attributes(given.pop("style", "")) | given
    label = printable(label)
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": label}
    return ElementTree.tostring(root, encoding="unicode")


def _as_attributes(style: str) -> dict[str, str]:
    """Return declarations of a style as attributes; the page chooses the typeface."""
    pairs = (part.partition(":") for part in style.split(";") if part.strip())
    attributes = {name.strip(): value.strip() for name, _, value in pairs}
    size = re.search(r"[\d.]+px", attributes.pop("font", ""))
    attributes.pop("font-family", None)
    return attributes | ({"font-size": size[0]} if size else {})


def _local(name: str) -> str:
    """Return a name without its namespace."""
    return name.rpartition("}")[2]
