"""One recursion, one plan, several algebras."""

from expecta.pair.pair import Pair

__all__ = ["Pair"]
