"""The algebras: what a pair's state is, and so what a walk computes."""

from expecta.pair.algebras import expectation, extremes, moments, spectrum
from expecta.pair.algebras.expectation import Expectation
from expecta.pair.algebras.extremes import Extremes
from expecta.pair.algebras.moments import Moments
from expecta.pair.algebras.operations import constants, register, scratch, width
from expecta.pair.algebras.spectrum import Spectrum

__all__ = ["Expectation", "Extremes", "Moments", "Spectrum", "constants", "scratch", "width"]

for _algebra, _module in (
    (Expectation, expectation),
    (Extremes, extremes),
    (Moments, moments),
    (Spectrum, spectrum),
):
    register(_algebra, _module)
