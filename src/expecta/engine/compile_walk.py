"""Compile the walk by a first run over next to nothing."""

from __future__ import annotations

from expecta.circuits import random_probabilistic
from expecta.circuits.evidence import as_evidence
from expecta.circuits.vtree import Vtree
from expecta.engine.algebras import Expectation, constants
from expecta.engine.plan import Plan
from expecta.engine.run import run


def compile_walk() -> None:
    """Walk over a circuit of two variables: all algebras are compiled together."""
    p = random_probabilistic(Vtree.random(2, seed=0), [2, 2], seed=0)
    plan, numbers = Plan.of(p, None), Expectation(outputs=0)
    evidence = as_evidence([[-1, -1]], plan.cardinalities)
    run(plan, numbers, constants(numbers, plan.phi), evidence)
