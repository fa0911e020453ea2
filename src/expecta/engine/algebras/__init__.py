"""The algebras: what a pair's state is, and so what a walk computes."""

from expecta.engine.algebras import expectation, extremes, moments, spectrum
from expecta.engine.algebras.expectation import Expectation
from expecta.engine.algebras.extremes import Extremes
from expecta.engine.algebras.moments import Moments
from expecta.engine.algebras.operations import constants, register, scratch, width
from expecta.engine.algebras.spectrum import Spectrum

__all__ = ["Expectation", "Extremes", "Moments", "Spectrum", "constants", "scratch", "width"]

for _algebra, _module in (
    (Expectation, expectation),
    (Extremes, extremes),
    (Moments, moments),
    (Spectrum, spectrum),
):
    register(_algebra, _module)
