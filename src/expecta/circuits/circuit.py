"""What both kinds of circuit have: a structure along a vtree."""

from __future__ import annotations

from expecta.circuits.structure import Structure
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Ints

__all__ = ["Circuit"]


class Circuit:
    """A structure whose edges carry parameters."""

    structure: Structure

    @property
    def vtree(self) -> Vtree:
        """The vtree the circuit decomposes along."""
        return self.structure.vtree

    @property
    def cardinalities(self) -> Ints:
        """Number of values of each variable."""
        return self.structure.cardinalities

    @property
    def n_variables(self) -> int:
        """How many variables the circuit is over."""
        return self.structure.n_variables
