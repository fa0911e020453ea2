"""Draw a vtree or a circuit: as gates, or as a summary where it is large."""

from __future__ import annotations

from collections.abc import Sequence

from expecta.circuits.drawing.drawing import Drawing
from expecta.circuits.drawing.graph import circuit_graph, vtree_graph
from expecta.circuits.drawing.labels import count, variable_names
from expecta.circuits.structure import Structure
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Floats
from expecta.common.errors import StructureError

MAX_GATES = 400  # nodes and elements of a circuit that is drawn gate by gate
MAX_WIRES = 600  # and its edges to elements: dense layers are unreadable long before
MAX_SUMMARY_VARIABLES = 200  # variables of a circuit that is drawn as a summary
MAX_UPRIGHT_VARIABLES = 30  # variables of a vtree that is drawn with its root on top
MAX_LEGEND_VARIABLES = 12  # variables of a vtree that is drawn beside its circuit


def draw_vtree(vtree: Vtree, names: Sequence[str] | None = None) -> Drawing:
    """Draw a vtree, its inner nodes in the colours of their AND gates in a circuit.

    Up to 30 variables the root is on top, as in the paper; a larger tree lies on its side
    and can be as large as you like.

    >>> draw_vtree(Vtree.balanced(4), ["a", "b", "c", "d"])
    Drawing('A vtree over 4 variables')
    """
    words = variable_names(vtree.n_variables, names)
    title = f"A vtree over {count(vtree.n_variables, 'variable')}"
    texts = [words[variable] if variable >= 0 else "" for variable in vtree.variable]
    sideways = vtree.n_variables > MAX_UPRIGHT_VARIABLES
    return Drawing(vtree_graph(vtree, texts, title, sideways=sideways))


def draw_circuit(
    structure: Structure,
    parameters: Floats,
    names: Sequence[str] | None = None,
    *,
    silent: float = 0.0,
) -> Drawing:
    """Draw a circuit as the paper's Figure 1 does: gates, literals, parameters on wires.

    AND gates have the colour of their vtree node; a small vtree is shown beside the circuit
    as a legend. OR gates have a parameter on the wire to each input. A leaf of the vtree is
    drawn as a literal, as an OR gate over up to four literals, or as a table of its values.
    Only what the root reaches is drawn, and literals are repeated where several gates take
    them.

    More than 400 nodes and elements, or 600 edges to elements, make no picture that one
    can read. Such a circuit is drawn as a summary: its vtree, with the number of nodes
    and elements at each vtree node. Beyond 200 variables not even that, and this raises.

    Parameters
    ----------
    structure
        The gates.
    parameters
        The parameter of each edge, for each output; three and more outputs are only
        counted.  # (edges, outputs)
    names
        A name for each variable, X0, X1, ... by default; long ones are shortened.
    silent
        The parameter that is not written at a literal: 1 in a distribution, 0 in a function.

    Raises
    ------
    StructureError
        If the circuit is too large even for a summary, or names are missing.

    Examples
    --------
    >>> from expecta import random_regression
    >>> g = random_regression(Vtree.balanced(3), seed=0)
    >>> draw_circuit(g.structure, g.weight)
    Drawing('A circuit over 3 variables: 7 nodes and 4 elements')
    """
    if parameters.ndim != 2 or len(parameters) != structure.n_edges:
        raise StructureError(
            f"parameters of shape {parameters.shape} for a circuit of {structure.n_edges} edges: "
            f"give one row for each edge, one column for each output"
        )
    words = variable_names(structure.n_variables, names)
    gates = structure.n_nodes + structure.n_elements
    wires = structure.n_edges - int(structure.edge_at_leaf.sum())
    if gates > MAX_GATES or wires > MAX_WIRES:
        return _draw_summary(structure, words)
    with_legend = 1 < structure.n_variables <= MAX_LEGEND_VARIABLES
    title = _title(structure)
    graph = circuit_graph(
        structure, parameters, words, title, silent=silent, with_legend=with_legend
    )
    return Drawing(graph)


def _draw_summary(structure: Structure, names: list[str]) -> Drawing:
    vtree = structure.vtree
    if vtree.n_variables > MAX_SUMMARY_VARIABLES:
        raise StructureError(
            f"a circuit of {count(vtree.n_variables, 'variable')}, {_sizes(structure)} is too "
            f"large to draw: gates are drawn up to {MAX_GATES} nodes and elements, a summary up "
            f"to {MAX_SUMMARY_VARIABLES} variables. Draw its vtree instead (circuit.vtree.draw()), "
            f"or a smaller circuit of the same kind"
        )
    texts = []
    for v, variable in enumerate(vtree.variable):
        nodes = count(int(structure.node_start[v + 1] - structure.node_start[v]), "node")
        elements = count(
            int(structure.element_start[v + 1] - structure.element_start[v]), "element"
        )
        texts.append(f"{names[variable]}: {nodes}" if variable >= 0 else f"{nodes}, {elements}")
    title = f"{_title(structure)}, by vtree node"
    return Drawing(vtree_graph(vtree, texts, title, sideways=True))


def _title(structure: Structure) -> str:
    variables = count(structure.n_variables, "variable")
    return f"A circuit over {variables}: {_sizes(structure)}"


def _sizes(structure: Structure) -> str:
    return f"{count(structure.n_nodes, 'node')} and {count(structure.n_elements, 'element')}"
