"""Compute expectations through a link: E[σ(g)] and the like, spectral or by Taylor's formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Polynomial

from expecta.circuits.evidence import Evidence, Rows, as_evidence
from expecta.common.arrays import Bools, Floats
from expecta.engine.algebras.spectrum_algebra import turn
from expecta.engine.layers import number_and_exponent
from expecta.queries.exponentials import characteristic_of, exponentials, likely
from expecta.queries.impossible import check_possible
from expecta.queries.moments import (
    extremes_of,
    mean_and_central,
    shift_moments,
    support_rounding,
)
from expecta.queries.spectral import (
    LOGISTIC,
    NORMAL,
    Noise,
    check_tolerance,
    coarse,
    quadrature,
)

if TYPE_CHECKING:
    from expecta.queries.pair import Pair

SMALLEST = float(np.finfo(np.float64).tiny)
MAX_CELLS = 1 << 23  # complex numbers to hold at once
MAX_SLACK = 100.0  # rounding of g's parameters, beyond which their exponentials are not known
LOST_PROBABILITY = 1e-200  # more than the engine drops, as it is that improbable given the evidence


class Expected(NamedTuple):
    """An expectation and a bound on its absolute error, NaN where no bound is known.

    Parameters
    ----------
    value
        The expectation.
    error
        A bound on its absolute error.

    Examples
    --------
    >>> from expecta import Pair, Vtree
    >>> from expecta.circuits import independent, linear
    >>> vtree = Vtree.balanced(2)
    >>> pair = Pair(independent(vtree, [[0.5, 0.5]] * 2), linear(vtree, [[0.0, 1.0]] * 2))
    >>> expected = pair.expected([[1, 1]], "logistic")
    >>> expected.value.round(6).tolist(), bool(expected.error[0] < 1e-8)
    ([0.880797], True)
    """

    value: Floats
    error: Floats


@dataclass(frozen=True)
class Link:
    """A function of g, for Taylor's formula.

    Parameters
    ----------
    derivatives
        ``derivatives(x, order)`` returns the function and its derivatives up to
        ``order`` at x, stacked along a new first axis.
    bound
        ``bound(order)`` bounds the absolute value of that derivative everywhere; it
        turns Taylor's formula into one with an error bound.

    Examples
    --------
    >>> square = Link(lambda x, order: np.stack([x**2, 2 * x, 2 + 0 * x][: order + 1]))
    >>> square.derivatives(np.array([3.0]), 1).tolist()
    [[9.0], [6.0]]
    """

    derivatives: Callable[[Floats, int], Floats]
    bound: Callable[[int], float] | None = None


@dataclass(frozen=True)
class _Step:
    """A link that is ``low + size · P(noise <= slope · g)``: open to the spectral method."""

    noise: Noise
    steepest: float  # derivative of the link by g
    slope: float = 1.0
    low: float = 0.0
    size: float = 1.0


def _polynomials(rate: Polynomial, order: int) -> list[Polynomial]:
    """Write the derivatives of y(x) as polynomials in y, where y' = rate(y)."""
    derivatives = [Polynomial([0.0, 1.0])]
    for _ in range(order):
        derivatives.append(derivatives[-1].deriv() * rate)
    return derivatives


def _autonomous(
    value: Callable[[Floats], Floats], rate: Polynomial, low: float, high: float
) -> Link:
    """Make a link from a solution of y' = rate(y) with values in (low, high)."""

    def derivatives(x: Floats, order: int) -> Floats:
        y = value(x)
        return np.stack([polynomial(y) for polynomial in _polynomials(rate, order)])

    def bound(order: int) -> float:
        polynomial = _polynomials(rate, order)[order]
        turns = polynomial.deriv().roots().real
        points = np.concatenate([[low, high], np.clip(turns, low, high)])
        return float(np.abs(polynomial(points)).max())

    return Link(derivatives, bound)


def _sigmoid(x: Floats) -> Floats:
    from scipy.special import expit

    return expit(x)


def _probit_derivatives(x: Floats, order: int) -> Floats:
    from scipy.special import eval_hermitenorm, ndtr

    density = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)
    slopes = [(-1.0) ** k * eval_hermitenorm(k, x) * density for k in range(order)]
    return np.stack([ndtr(x), *slopes])


def _probit_bound(order: int) -> float:
    grid = np.linspace(0.0, 12.0, 24_001)
    return float(np.abs(_probit_derivatives(grid, order)[order]).max()) * (1 + 1e-6)


def _exp_derivatives(x: Floats, order: int) -> Floats:
    return np.stack([np.exp(x)] * (order + 1))


LINKS = {
    "logistic": _autonomous(_sigmoid, Polynomial([0.0, 1.0, -1.0]), 0.0, 1.0),
    "tanh": _autonomous(np.tanh, Polynomial([1.0, 0.0, -1.0]), -1.0, 1.0),
    "probit": Link(_probit_derivatives, _probit_bound),
    "exp": Link(_exp_derivatives),
}
_STEPS = {
    "logistic": _Step(LOGISTIC, 0.25),
    "probit": _Step(NORMAL, 0.4),
    "tanh": _Step(LOGISTIC, 1.0, slope=2.0, low=-1.0, size=2.0),
}


def expected(
    pair: Pair,
    X: Rows,
    link: str | Link,
    method: str,
    tol: float,
    order: int,
    alpha: float | Sequence[float] | None,
    offset: npt.ArrayLike | None,
    on_impossible: str,
) -> Expected:
    """Answer :meth:`expecta.Pair.expected`."""
    if not isinstance(link, Link) and (not isinstance(link, str) or link not in LINKS):
        raise ValueError(f"link is one of {sorted(LINKS)} or a Link, not {link!r}")
    check_tolerance(tol)
    evidence = as_evidence(X, pair.p.cardinalities)
    shift = _offset(offset, len(evidence), pair.g.n_outputs)
    if method == "taylor":
        chosen = LINKS[link] if isinstance(link, str) else link
        value, error, impossible = _taylor(pair, evidence, chosen, order, alpha, shift)
    elif method != "spectral":
        raise ValueError(f'method is "spectral" or "taylor", not {method!r}')
    elif isinstance(link, Link):
        raise ValueError('a custom Link needs method="taylor": its spectrum is not known')
    elif link == "exp":
        value, error, impossible = _exp(pair, evidence, shift)
    else:
        value, error, impossible = _spectral(pair, evidence, link, tol, shift)
    impossible = check_possible(impossible, on_impossible)
    value[impossible] = error[impossible] = np.nan
    return Expected(pair._shape(value, X), pair._shape(error, X))


def _offset(given: npt.ArrayLike | None, rows: int, outputs: int) -> Floats:
    """Read what is added to g.  # (rows, outputs)."""
    shift = np.zeros((rows, outputs)) if given is None else np.asarray(given, np.float64)
    if shift.shape == (rows,):
        shift = shift[:, None]
    if shift.shape != (rows, outputs) or not np.all(np.isfinite(shift)):
        raise ValueError(
            f"offset has a finite number for each of {rows} rows and {outputs} outputs, "
            f"not the shape {shift.shape}"
        )
    return shift


def _spectral(
    pair: Pair, evidence: Evidence, link: str, tol: float, shift: Floats
) -> tuple[Floats, Floats, Bools]:
    step, outputs = _STEPS[link], pair.g.n_outputs
    low, high, impossible = extremes_of(pair, evidence)
    low[impossible] = high[impossible] = 0.0
    # A link is monotone: where its values at both ends agree, nothing is left to integrate.
    ends = LINKS[link].derivatives(np.stack([low, high]) + shift, 0)[0]
    slack = pair.rounding * (pair.parameter_size + np.abs(shift))  # of g and its range
    value, error = ends.mean(axis=0), 0.5 * (ends[1] - ends[0])
    error += step.steepest * slack + pair.rounding
    todo = np.any(error > tol, axis=1) & ~impossible
    share = 0.25 * tol / step.size  # of the error, for what lies beyond the reach
    unit = np.full(np.count_nonzero(todo), 1.0 / step.slope)
    low[todo], high[todo] = likely(pair, evidence[todo], low[todo], high[todo], unit, share)
    farthest = np.maximum(np.abs(low + shift), np.abs(high + shift)) + slack
    reach = coarse(step.slope * farthest.max(axis=1))
    for group in np.unique(reach[todo]):
        rows = np.flatnonzero(todo & (reach == group))
        rule = quadrature(step.noise, float(group), 3 * share, pair.rounding)
        for block in np.array_split(rows, 1 + len(rows) * outputs * len(rule.t) // MAX_CELLS):
            phi, _ = characteristic_of(pair, evidence[block], step.slope * rule.t)
            phi *= turn(shift[block][:, :, None], step.slope * rule.t)
            probability = np.clip(0.5 + phi.imag @ rule.weight, 0.0, 1.0)
            value[block] = step.low + step.size * probability
        error[rows] = step.size * (rule.error + share + support_rounding(pair))
    return value, error, impossible


def _exp(pair: Pair, evidence: Evidence, shift: Floats) -> tuple[Floats, Floats, Bools]:
    """E[exp(g)]: the recursion itself, with exp(φ) on every edge. Exact."""
    means = _exponential_means(pair, evidence, np.ones(1), shift)
    value, factor, power = means.value[:, :, 0], means.factor[:, :, 0], means.power[:, :, 0]
    slack = pair.rounding * (pair.parameter_size + np.abs(shift))
    with np.errstate(over="ignore", invalid="ignore"):
        # relative rounding, what may lie off the support, and what is too improbable to be kept
        error = pair.rounding * value + SMALLEST
        error += _times_power(factor * support_rounding(pair), power)
        lost = LOST_PROBABILITY * np.exp(pair.parameter_size + shift)
        far = np.flatnonzero(np.any(lost > 1e-13 * value, axis=1) & ~means.impossible)
        if len(far):  # then the parameters' size says too little
            greatest = extremes_of(pair, evidence[far])[1] + slack[far]
            lost[far] = LOST_PROBABILITY * np.exp(greatest + shift[far])
    return value, np.where(slack < MAX_SLACK, error + lost, np.nan), means.impossible


def mean_and_square_of_exp(pair: Pair, evidence: Evidence) -> tuple[Floats, Floats]:
    """E[exp(g)] and E[exp(2g)] in one run; zero where impossible.  # (rows, outputs) each."""
    shift = np.zeros((len(evidence), pair.g.n_outputs))
    value = _exponential_means(pair, evidence, np.array([1.0, 2.0]), shift).value
    return value[:, :, 0], value[:, :, 1]


class _ExponentialMeans(NamedTuple):
    """E[exp(λ (bias + shift + g))] for some rates λ.  # (rows, outputs, rates)."""

    value: Floats
    factor: Floats  # the value off the support is factor · 2^(256 power)
    power: Floats
    impossible: Bools  # (rows,)


def _exponential_means(
    pair: Pair, evidence: Evidence, rates: Floats, shift: Floats
) -> _ExponentialMeans:
    number, exponent, off, impossible = exponentials(pair, evidence, rates)
    bias, bias_exponent = number_and_exponent(pair.g.bias[:, None] * rates)
    added, added_exponent = number_and_exponent(shift[:, :, None] * rates)
    factor, power = bias * added, bias_exponent + added_exponent
    with np.errstate(over="ignore", invalid="ignore"):
        value = _times_power(factor * number, power + exponent)
        value += _times_power(factor * off[:, None, None], power)
    return _ExponentialMeans(value, factor, power, impossible)


def _times_power(number: Floats, exponent: Floats) -> Floats:
    """Return number · 2^(256 exponent), infinite or zero where it is out of range."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(number, (256 * np.clip(exponent, -99, 99)).astype(np.int64))


def _taylor(
    pair: Pair,
    evidence: Evidence,
    link: Link,
    order: int,
    alpha: float | Sequence[float] | None,
    shift: Floats,
) -> tuple[Floats, Floats, Bools]:
    """T_d = Σ_k γ^(k)(α) / k! · M_k(g - α)."""
    order = index(order)
    if order < 0:
        raise ValueError(f"the order of Taylor's formula is at least 0, not {order}")
    needed = order if link.bound is None else order + (1 if order % 2 else 2)
    moments, impossible = mean_and_central(pair, evidence, max(needed, 1))
    mean = moments[:, :, 1] + shift
    moments[:, :, 1] = 0.0
    at = mean
    if alpha is not None:
        given = np.asarray(alpha, np.float64)
        if given.shape not in ((), mean.shape[1:], mean.shape):
            raise ValueError(
                f"alpha is a number, one for each of {mean.shape[1]} outputs, or an array of "
                f"shape {mean.shape}, not of shape {given.shape}"
            )
        at = np.broadcast_to(given, mean.shape).copy()
        moments = shift_moments(moments, mean - at)
    factorial = np.cumprod(np.maximum(np.arange(order + 2), 1), dtype=np.float64)
    slopes = link.derivatives(at, order)
    value: Any = sum(slopes[k] / factorial[k] * moments[:, :, k] for k in range(order + 1))
    error = np.full(mean.shape, np.nan)
    if link.bound is not None:
        # E|g - α|^k itself where k is even, else by Cauchy and Schwarz
        size = np.abs(moments)
        size[:, :, 1:-1:2] = np.sqrt(size[:, :, :-2:2] * size[:, :, 2::2])
        # the rest of the series, and rounding of its terms and of g
        error = link.bound(order + 1) / factorial[order + 1] * size[:, :, order + 1]
        for k in range(order + 1):
            error += pair.rounding * 4.0**k * link.bound(k) / factorial[k] * size[:, :, k]
        error += link.bound(1) * pair.rounding * (pair.parameter_size + np.abs(shift))
    return value, error, impossible
