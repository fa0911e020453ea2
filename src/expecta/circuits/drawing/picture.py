"""What drawing returns: a picture that shows itself in a notebook and saves itself."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from expecta.common.atomic_files import replace_file

__all__ = ["Drawing"]


@dataclass(frozen=True, repr=False)
class Drawing:
    """A finished picture, in two notations.

    Parameters
    ----------
    title
        What the picture shows, in one line; screen readers read it out.
    svg
        The picture itself.
    dot
        The same diagram as Graphviz source, for those who want to lay it out anew.

    Examples
    --------
    >>> from expecta import Vtree
    >>> drawing = Vtree.from_nested((0, (1, 2))).draw(["rain", "wind", "sun"])
    >>> drawing
    Drawing('A vtree over 3 variables')
    >>> "rain" in drawing.svg and "rain" in drawing.dot
    True
    """

    title: str
    svg: str
    dot: str

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a file: SVG for ``.svg``, Graphviz for ``.dot`` or ``.gv``.

        Atomic: whoever reads ``path`` sees the old file or the new one, never a part.
        """
        path = Path(path)
        ending = path.suffix.lower()
        if ending == ".svg":
            content = self.svg
        elif ending in (".dot", ".gv"):
            content = self.dot
        else:
            raise ValueError(
                f"cannot save a drawing as {path.name!r}: its name must end in .svg for a picture, "
                f"or in .dot or .gv for Graphviz"
            )
        replace_file(str(path), content.encode())

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Drawing({self.title!r})"
