"""Define the algebras: what a pair's state is, and so what a walk computes."""

from expecta.engine.algebras import expectation, extremes, linear, moments, spectrum
from expecta.engine.algebras.expectation import Expectation
from expecta.engine.algebras.extremes import Extremes
from expecta.engine.algebras.moments import Moments
from expecta.engine.algebras.operations import constants, register, scratch, width
from expecta.engine.algebras.spectrum import Spectrum

__all__ = ["Expectation", "Extremes", "Moments", "Spectrum", "constants", "scratch", "width"]

register(Expectation, expectation, linear)
register(Extremes, extremes, linear)
register(Moments, moments, linear)
register(Spectrum, spectrum, linear)
