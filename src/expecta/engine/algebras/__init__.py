"""Define the algebras: what a pair's state is, and so what a walk computes."""

from expecta.engine.algebras import (
    expectation_algebra,
    exponential_algebra,
    extremes_algebra,
    linear,
    moments_algebra,
    spectrum_algebra,
)
from expecta.engine.algebras.algebra_operations import (
    constants,
    cuda_text,
    register,
    scratch,
    width,
)
from expecta.engine.algebras.expectation_algebra import Expectation
from expecta.engine.algebras.exponential_algebra import Exponential
from expecta.engine.algebras.extremes_algebra import Extremes
from expecta.engine.algebras.moments_algebra import Moments
from expecta.engine.algebras.spectrum_algebra import Spectrum

__all__ = [
    "Expectation",
    "Exponential",
    "Extremes",
    "Moments",
    "Spectrum",
    "constants",
    "cuda_text",
    "scratch",
    "width",
]

register(Expectation, expectation_algebra, linear)
register(Exponential, exponential_algebra, linear)
register(Extremes, extremes_algebra, linear)
register(Moments, moments_algebra, linear)
register(Spectrum, spectrum_algebra, linear)
