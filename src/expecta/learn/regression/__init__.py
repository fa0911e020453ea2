"""Learn regression and logistic circuits: structure by splits, parameters by Newton's method.

A circuit is learned as a sum of additive models, each over a context, a box of rows::

    g(x) = Σ_contexts [x in the context] · (constant + Σ_columns table of the column at x)

The first context is everything: plain additive regression. A split cuts an element of the
circuit in two contexts, which deviate from what was by tables of their own, shrunk to zero.
"""

from expecta.learn.regression.curves import Curve
from expecta.learn.regression.edge_parameters import fit_parameters
from expecta.learn.regression.grow_circuit import GrownCircuit, grow
from expecta.learn.regression.losses import LOSSES, Loss
from expecta.learn.regression.screening import MAX_VARIABLES

__all__ = ["LOSSES", "MAX_VARIABLES", "Curve", "GrownCircuit", "Loss", "fit_parameters", "grow"]
