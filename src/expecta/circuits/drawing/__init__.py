"""Pictures of vtrees and circuits, as in Figure 1 of the paper, with nothing to install.

The data flow: a circuit becomes a :mod:`diagram` (what is drawn), a :mod:`layout`
says where, :mod:`svg` and :mod:`dot` write it down, and a :class:`Drawing` holds both.
Vtrees, and circuits too large to draw gate by gate, take the road through :mod:`tree`.
"""

from expecta.circuits.drawing.draw import draw_circuit, draw_vtree
from expecta.circuits.drawing.picture import Drawing

__all__ = ["Drawing", "draw_circuit", "draw_vtree"]
