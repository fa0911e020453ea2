"""Declare what a file holds of a density: what was learned, and what its columns are."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Floats
from expecta.common.errors import DomainError
from expecta.densities.density import Density
from expecta.densities.density_learner import DensityLearner, LearningRecord
from expecta.densities.latent_tree import LatentTree
from expecta.densities.psdd_density import PSDD
from expecta.densities.tree_densities import ChowLiu, Independent, NaiveBayes
from expecta.densities.tree_learner import TreeLearner
from expecta.files.circuit_files import DISTRIBUTION
from expecta.files.schema import Array, Choice, Field, Kind, Many, Maybe, Record, Scalar, Value
from expecta.learn.trees.expectation import Counts
from expecta.learn.trees.layout import TreeLayout
from expecta.learn.trees.tree import RootedTree
from expecta.tables import Encoder
from expecta.tables.encoder_files import ENCODER

MAX_NUMBER = 1e15  # rows, seconds, nats, that make sense
MAX_PARAMETERS = 1 << 28  # of a tree: bounds what a hostile file can make us allocate

_INTEGER, _REAL, _TEXT = Scalar(int), Scalar(float), Scalar(str)
_COUNT = Scalar(int, low=0, high=MAX_NUMBER)
_SCORE = Scalar(float, low=-math.inf, high=MAX_NUMBER)
# What the constructors take, beside `pseudo_count`, `random_state`, and whether it had an encoder.
_PARAMETERS: dict[type[DensityLearner], dict[str, Field]] = {
    ChowLiu: {},
    Independent: {},
    NaiveBayes: {"target": Value(max_depth=0)},
    LatentTree: {
        "states": Value(max_depth=1),
        "tree": _TEXT,
        "pseudo_count": Maybe(_REAL),
        "smoothing": _REAL,
        "restarts": Maybe(_INTEGER),
        "max_epochs": _INTEGER,
        "batch_size": Maybe(_INTEGER),
        "patience": _INTEGER,
        "tolerance": _REAL,
    },
    PSDD: {
        "start": _TEXT,
        "vtree": Maybe(_TEXT),  # None: that of the circuit
        "max_parameters": Maybe(_INTEGER),
        "max_seconds": Maybe(_REAL),
        "patience": _INTEGER,
    },
}
_LEARNED = Record(
    {
        "rows": _COUNT,
        "held_out_rows": _COUNT,
        "score": _SCORE,
        "independent": _SCORE,
        "seconds": Scalar(float, low=0, high=MAX_NUMBER),
        "how": _TEXT,
    },
    make=LearningRecord,
)
_COUNTS = Array("float64", "parameters", low=0, high=MAX_NUMBER)
_TREE = Record(
    {
        "variable": Array("int32", "nodes"),
        "parent": Array("int32", "nodes"),
        "states": Array("int32", "nodes", low=1),
        "theta": Array("float64", "parameters", low=0),
        "counts": _COUNTS,
        "waiting": _COUNTS,
        "seen": Array("float64", 3, low=0, high=MAX_NUMBER),  # rows counted, waiting; updates
        "chosen_pseudo_count": Maybe(Array("float64", 1, low=0, high=MAX_NUMBER)),
    }
)


def _distribution(circuit: ProbabilisticCircuit) -> ProbabilisticCircuit:
    if not circuit.properties.normalised.holds:
        raise DomainError("its circuit is not a distribution")
    return circuit


def _learner(
    kind: type[DensityLearner],
    encoder: Encoder,
    learned: LearningRecord,
    parameters: dict[str, Any],
    value_counts: list[Floats],
    **state: Any,
) -> DensityLearner:
    """Return a density that has learned, or complain of what does not fit together."""
    states = parameters.get("states")
    if states is not None and any(
        type(number) is not int for number in (states if isinstance(states, list) else [states])
    ):
        raise DomainError("its parameter 'states' is not a whole number, or several")
    if [len(counts) for counts in value_counts] != encoder.cardinalities_.tolist():
        raise DomainError("the counts of its columns' values are not those of its encoder")
    density = kind(**{**parameters, "encoder": encoder if parameters["encoder"] else None})
    density.encoder_, density.learned_, density.value_counts_ = encoder, learned, value_counts
    density.n_features_in_ = encoder.n_features_in_
    density.feature_names_in_ = encoder.feature_names_in_
    if isinstance(density, TreeLearner):
        _restore(density, **state["tree"])
    else:
        density.circuit_ = _distribution(state["circuit"])
        if parameters["vtree"] is None:
            density.vtree = density.circuit_.vtree
    if not np.array_equal(density.circuit.cardinalities, encoder.cardinalities_):
        raise DomainError("its circuit and its encoder have different variables")
    return density


def _restore(density: TreeLearner, **state: Any) -> None:
    tree, states, theta = (
        RootedTree(state["variable"], state["parent"]),
        state["states"],
        state["theta"],
    )
    cardinalities, seen = density.encoder_.cardinalities_, state["seen"]
    if len(tree) != len(cardinalities):
        raise DomainError("its tree and its encoder have different variables")
    if np.any(states > len(theta)):
        raise DomainError("it has more states than parameters")
    layout = TreeLayout(tree, states, cardinalities[tree.variable])
    if len(theta) != layout.size or layout.size > MAX_PARAMETERS:
        raise DomainError("it has too few or too many parameters")
    if not np.allclose(np.add.reduceat(theta, layout.row_start), 1.0, rtol=1e-6, atol=0):
        raise DomainError("a distribution does not sum to one")
    if seen[2] % 1:
        raise DomainError("its number of updates is not whole")
    counts, waiting = (
        Counts(state["counts"], float(seen[0])),
        Counts(state["waiting"], float(seen[1])),
    )
    chosen = state["chosen_pseudo_count"]
    pseudo_count = None if chosen is None else float(chosen[0])
    density.restore(layout, theta, counts, waiting, int(seen[2]), pseudo_count)


def _learner_parts(density: Any) -> dict[str, Any]:
    parameters = density.get_params(deep=False)
    parameters["encoder"] = parameters["encoder"] is not None
    if isinstance(parameters.get("vtree"), Vtree):
        parameters["vtree"] = None
    state = "tree" if isinstance(density, TreeLearner) else "circuit"
    return {
        "encoder": density.encoder_,
        "learned": density.learned_,
        "parameters": parameters,
        "value_counts": density.value_counts_,
        state: density.state() if state == "tree" else density.circuit,
    }


def _learner_record(kind: type[DensityLearner]) -> Record:
    shared = {"pseudo_count": _REAL, "encoder": Scalar(bool), "random_state": Maybe(_INTEGER)}
    is_tree = issubclass(kind, TreeLearner)
    return Record(
        {
            "encoder": ENCODER,
            "learned": _LEARNED,
            "parameters": Record({**shared, **_PARAMETERS[kind]}),
            "value_counts": Many(Array("float64", None, low=0, high=MAX_NUMBER)),
            **({"tree": _TREE} if is_tree else {"circuit": DISTRIBUTION}),
        },
        partial(_learner, kind),
        _learner_parts,
    )


DENSITY = Choice(
    "class",
    {
        "Density": Record(
            {"encoder": ENCODER, "circuit": DISTRIBUTION},
            lambda encoder, circuit: Density(_distribution(circuit), encoder),
            lambda density: {"encoder": density.encoder_, "circuit": density.circuit},
        ),
        **{kind.__name__: _learner_record(kind) for kind in _PARAMETERS},
    },
)
DENSITY_FILE = Kind("density", DENSITY)
