"""A prediction is an expectation with nothing unknown."""

from __future__ import annotations

import numpy as np

from expecta.circuits.evidence import Rows, as_evidence
from expecta.circuits.regression import RegressionCircuit
from expecta.common.arrays import Floats
from expecta.common.errors import DomainError
from expecta.engine.plan import Plan
from expecta.queries.moments import expectation_of

__all__ = ["predict"]


def predict(g: RegressionCircuit, plan: Plan, X: Rows) -> Floats:
    """Evaluate g on complete rows; ``plan`` pairs it with the counting measure."""
    evidence = as_evidence(X, g.cardinalities)
    for variable, (states, codes) in enumerate(zip(evidence.states, evidence.codes, strict=True)):
        known = (np.count_nonzero(states, axis=1) == 1)[codes]
        if not np.all(known):
            raise DomainError(
                f"row {int(np.argmin(known))} does not say what variable {variable} is; "
                f"a prediction needs complete rows, Pair(p, g).expectation(X) does not"
            )
    values = expectation_of(plan, evidence)[0] + g.bias
    return values[:, 0] if g.n_outputs == 1 else values
