"""Densities: joint distributions of a table's columns, learned and then asked.

:class:`Density` answers; what differs between its kinds is how they are learned.
"""

from expecta.densities.density import Density
from expecta.densities.latent_tree import LatentTree
from expecta.densities.marginal import Marginal
from expecta.densities.psdd_density import PSDD
from expecta.densities.tree_densities import ChowLiu, Independent, NaiveBayes

__all__ = [
    "PSDD",
    "ChowLiu",
    "Density",
    "Independent",
    "LatentTree",
    "Marginal",
    "NaiveBayes",
]
