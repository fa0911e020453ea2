"""Learning regression and logistic circuits: structure by splits, parameters by Newton's method.

A circuit is learned as a sum of additive models, each over a box of rows::

    g(x) = Σ_boxes [x in the box] · (constant + Σ_columns table of the column at x)

The first box is everything: plain additive regression. A split cuts an element of the
circuit in two boxes, which deviate from what was by tables of their own, shrunk to zero.
"""

from expecta.learn.regression.curves import Curve
from expecta.learn.regression.learner import Grown, grow
from expecta.learn.regression.losses import LOSSES, Loss
from expecta.learn.regression.parameters import fit_parameters

__all__ = ["LOSSES", "Curve", "Grown", "Loss", "fit_parameters", "grow"]
