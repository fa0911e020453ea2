"""Draw vtrees and circuits, as in Figure 1 of the paper.

The data flow: :mod:`draw` makes a :mod:`graph` (what is drawn) of a vtree or circuit;
:mod:`dot` writes it in Graphviz's language, and :mod:`layered_svg` draws it where Graphviz
is not installed.
"""

from expecta.circuits.drawing.draw import draw_circuit, draw_vtree
from expecta.circuits.drawing.drawing import Drawing

__all__ = ["Drawing", "draw_circuit", "draw_vtree"]
