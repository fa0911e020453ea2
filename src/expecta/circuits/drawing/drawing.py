"""Hold a finished picture, which shows itself in a notebook and saves itself."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from expecta.circuits.drawing.dot import dot_text, find_dot, run_dot, run_dot_svg
from expecta.circuits.drawing.graph import PictureGraph
from expecta.circuits.drawing.layered_svg import layered_svg
from expecta.common.atomic_files import replace_file

__all__ = ["Drawing"]


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
        """The picture as SVG: laid out by Graphviz where ``dot`` is installed, else by Expecta."""
        return run_dot_svg(self.dot, self.title) if find_dot() else layered_svg(self.graph)

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
            content = run_dot(self.dot, ending[1:])
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
