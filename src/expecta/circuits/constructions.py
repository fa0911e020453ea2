"""Write well-known models as circuits, over any vtree (the paper's appendix)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from expecta.circuits.builders import Draft
from expecta.circuits.probabilistic import ProbabilisticCircuit, log_of
from expecta.circuits.regression import RegressionCircuit
from expecta.circuits.structure import Structure
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import StructureError


def independent(vtree: Vtree, tables: Sequence[npt.ArrayLike]) -> ProbabilisticCircuit:
    """Make the fully factorised distribution from one probability table per variable.

    Parameters
    ----------
    vtree
        Which variables are joined where.
    tables
        Probabilities of the values of each variable.

    Returns
    -------
    ProbabilisticCircuit
        Deterministic and normalised.

    Examples
    --------
    >>> p = independent(Vtree.balanced(2), [[0.2, 0.8], [0.5, 0.3, 0.2]])
    >>> float(np.exp(p.log_prob([[1, 2]]))[0].round(12))
    0.16
    """
    arrays = [np.asarray(table, np.float64) for table in tables]
    if any(table.ndim != 1 for table in arrays):
        raise StructureError("a probability table has one number per value")
    structure = _single(vtree, [len(table) for table in arrays])
    return ProbabilisticCircuit(structure, log_of(_per_edge(structure, arrays, 1.0)[:, 0]))


def counting_measure(vtree: Vtree, cardinalities: Ints) -> ProbabilisticCircuit:
    """Make the measure that gives every complete row weight one (not a distribution)."""
    structure = _single(vtree, cardinalities.tolist())
    return ProbabilisticCircuit(structure, np.zeros(structure.n_edges))


def linear(
    vtree: Vtree,
    tables: Sequence[npt.ArrayLike],
    *,
    bias: npt.ArrayLike | None = None,
    link: str = "identity",
) -> RegressionCircuit:
    """Make linear or logistic regression a circuit: one table of values per variable.

    ``tables[i]`` has shape (values,) or (values, outputs): what each value of variable
    ``i`` adds. For a Boolean variable with coefficient w that is ``[0, w]``.

    Parameters
    ----------
    vtree
        Which variables are joined where.
    tables
        What each value of each variable adds: (values,) or (values, outputs).
    bias
        Added to every prediction.
    link
        ``"identity"`` or ``"logistic"``, a note for files.

    Returns
    -------
    RegressionCircuit
        One element per inner vtree node.

    Examples
    --------
    >>> g = linear(Vtree.balanced(2), [[0.0, 3.0], [0.0, -1.0]], bias=2.0)
    >>> g([[1, 1], [0, 1]]).tolist()
    [4.0, 1.0]
    """
    arrays = [np.asarray(table, np.float64) for table in tables]
    if any(table.ndim not in (1, 2) for table in arrays):
        raise StructureError(
            "tables[i] says what each value of variable i adds, with shape (values,) or "
            "(values, outputs); for a Boolean variable with coefficient w pass [0, w]"
        )
    structure = _single(vtree, [len(table) for table in arrays])
    weight = _per_edge(structure, arrays, 0.0)
    if bias is not None and np.ndim(bias) == 0:
        bias = np.full(weight.shape[1], bias)
    return RegressionCircuit(structure, weight, bias, link=link)


def naive_bayes(
    vtree: Vtree,
    class_variable: int,
    prior: npt.ArrayLike,
    conditionals: Sequence[npt.ArrayLike | None],
) -> ProbabilisticCircuit:
    """Make naive Bayes a probabilistic circuit over any vtree.

    Parameters
    ----------
    vtree
        Over the features and the class.
    class_variable
        Which variable is the class.
    prior
        P(class).  # (classes,)
    conditionals
        For each variable P(value | class), ``None`` for the class.  # (classes, values)

    Returns
    -------
    ProbabilisticCircuit
        Deterministic and normalised.

    Notes
    -----
    One node per class in every layer, so the circuit is deterministic: the class is
    a variable and decides which node is meant.

    Examples
    --------
    >>> vtree = Vtree.from_nested((0, 1))
    >>> p = naive_bayes(vtree, 0, [0.5, 0.5], [None, [[0.9, 0.1], [0.3, 0.7]]])
    >>> float(np.exp(p.log_prob([[-1, 1]]))[0].round(12))
    0.4
    """
    weights = np.atleast_1d(np.asarray(prior, np.float64))
    k = len(weights)
    if not 0 <= class_variable < vtree.n_variables:
        raise StructureError(f"there is no variable {class_variable} to be the class")
    if len(conditionals) != vtree.n_variables:
        raise StructureError(
            f"{len(conditionals)} conditionals for a vtree of {vtree.n_variables} variables"
        )
    tables: list[Floats] = []
    for variable, table in enumerate(conditionals):
        if (table is None) != (variable == class_variable):
            raise StructureError("conditionals has None for the class variable and only there")
        tables.append(np.eye(k) if table is None else np.asarray(table, np.float64))
        if tables[-1].ndim != 2 or len(tables[-1]) != k:
            raise StructureError(f"P(value | class) of variable {variable} needs {k} rows")
    if vtree.n_variables == 1:
        raise StructureError("naive Bayes needs a feature beside the class")
    draft = Draft(vtree, [table.shape[1] for table in tables])
    layers: list[list[int]] = []  # the node of each class
    for v in range(len(vtree)):
        x = int(vtree.variable[v])
        if x >= 0:
            layers.append(
                [draft.add_leaf(v, x, list(enumerate(row))) for row in tables[x].tolist()]
            )
            continue
        pairs = zip(layers[vtree.left[v]], layers[vtree.right[v]], weights.tolist(), strict=True)
        if v == vtree.root:  # one node that mixes all
            layers.append([draft.add_node(v, list(pairs))])
        else:
            layers.append([draft.add_node(v, [(left, right, 1.0)]) for left, right, _ in pairs])
    structure, parameters = draft.finish(layers[-1][0])
    return ProbabilisticCircuit(structure, log_of(np.array(parameters, np.float64))).merged()


def _single(vtree: Vtree, cardinalities: Sequence[int]) -> Structure:
    """One node per vtree node that allows everything."""
    if len(cardinalities) != vtree.n_variables:
        raise StructureError(
            f"{len(cardinalities)} tables for a vtree of {vtree.n_variables} variables"
        )
    inner = vtree.variable < 0
    per_node = np.where(inner, 1, np.append(cardinalities, 1)[vtree.variable])
    target = [
        np.arange(cardinalities[x]) if x >= 0 else np.array([e])
        for x, e in zip(vtree.variable, np.cumsum(inner) - 1, strict=True)
    ]
    return Structure(
        vtree=vtree,
        cardinalities=np.array(cardinalities),
        node_start=np.arange(len(vtree) + 1),
        element_start=np.concatenate([[0], np.cumsum(inner)]),
        left=vtree.left[inner],
        right=vtree.right[inner],
        edge_start=np.concatenate([[0], np.cumsum(per_node)]),
        target=np.concatenate(target),
    )


def _per_edge(structure: Structure, tables: Sequence[Floats], elsewhere: float) -> Floats:
    """Spread tables over the edges of the leaves.  # (edges, outputs)."""
    columns = [table.reshape(len(table), -1) for table in tables]
    if len({column.shape[1] for column in columns}) != 1:
        raise StructureError("all tables must have the same number of outputs")
    out = np.full((structure.n_edges, columns[0].shape[1]), elsewhere)
    order = structure.vtree.variable[structure.vtree.variable >= 0]
    out[structure.edge_at_leaf] = np.concatenate([columns[variable] for variable in order])
    return out
