"""Hold a finished picture; have Graphviz's program ``dot`` lay it out where it is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from expecta.circuits.drawing.dot import dot_text
from expecta.circuits.drawing.graph import PictureGraph
from expecta.circuits.drawing.layered_svg import layered_svg
from expecta.common.atomic_files import replace_file
from expecta.common.errors import ExpectaError

TIMEOUT_SECONDS = 60


@dataclass(frozen=True, repr=False)
class Drawing:
    """A picture of a vtree or circuit, in Graphviz's language.

    Parameters
    ----------
    graph
        What the picture shows.

    Examples
    --------
    >>> from expecta import Vtree
    >>> drawing = Vtree.from_nested((0, (1, 2))).draw(["rain", "wind", "sun"])
    >>> drawing
    Drawing('A vtree over 3 variables')
    >>> "rain" in drawing.svg and "rain" in drawing.dot
    True
    """

    graph: PictureGraph

    @property
    def title(self) -> str:
        """What the picture shows, in one line; screen readers read it out."""
        return self.graph.title

    @property
    def dot(self) -> str:
        """The picture as Graphviz source."""
        return dot_text(self.graph)

    @property
    def svg(self) -> str:
        """The picture as SVG: laid out by Graphviz where ``dot`` works, else by Expecta."""
        try:
            return _run_dot_svg(self.dot, self.title)
        except ExpectaError:
            return layered_svg(self.graph)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a file, by the ending of its name. Atomic.

        ``.dot`` and ``.gv`` are Graphviz source, ``.svg`` is a picture; ``.pdf`` and ``.png``
        need Graphviz's program ``dot``.
        """
        path = Path(path)
        ending = path.suffix.lower()
        if ending in (".dot", ".gv"):
            content = self.dot.encode()
        elif ending == ".svg":
            content = self.svg.encode()
        elif ending in (".pdf", ".png"):
            content = _run_dot(self.dot, ending[1:])
        else:
            raise ValueError(
                f"cannot save a drawing as {path.name!r}: its name must end in .svg, .pdf or .png "
                f"for a picture, or in .dot or .gv for Graphviz"
            )
        replace_file(str(path), content)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Drawing({self.title!r})"


def _run_dot(source: str, kind: str) -> bytes:
    """Lay out Graphviz source by the program, as ``svg``, ``pdf`` or ``png``.

    Raises
    ------
    ExpectaError
        If the program is not installed, fails, or takes more than a minute.
    """
    program = shutil.which("dot")
    if program is None:
        raise ExpectaError(
            f"a drawing as {kind.upper()} needs Graphviz's program 'dot', which is not installed: "
            f"get it by 'apt install graphviz', 'brew install graphviz' or from graphviz.org; "
            f"or save the drawing as .svg or .dot, which need nothing"
        )
    command = [program, f"-T{kind}"]
    try:
        done = subprocess.run(
            command, input=source.encode(), capture_output=True, timeout=TIMEOUT_SECONDS, check=True
        )
    except subprocess.TimeoutExpired:
        raise ExpectaError(
            f"Graphviz did not lay out the drawing within {TIMEOUT_SECONDS} seconds; save it as "
            f".dot and try another of Graphviz's programs, or draw a smaller circuit"
        ) from None
    except subprocess.CalledProcessError as error:
        problem = error.stderr.decode(errors="replace").strip()
        raise ExpectaError(f"Graphviz's program {program} failed: {problem}") from error
    return done.stdout


def _run_dot_svg(source: str, title: str) -> str:
    """Lay out Graphviz source as SVG that can stand in a page beside others."""
    svg = _run_dot(source, "svg").decode()
    svg = svg[svg.index("<svg") :]
    # Names of Graphviz's own, and ids, which would clash between two pictures in one page.
    svg = re.sub(r"<!--.*?-->\n?|<title>[^<]*</title>\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="[^"]*"', "", svg)
    svg = svg.replace("<svg", f'<svg role="img" aria-label={quoteattr(title)}', 1)
    return svg.replace(">", f"><title>{escape(title)}</title>", 1)
