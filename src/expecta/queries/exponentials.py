"""Compute exponentials of a pair, E[exp(i t g)] and E[exp(λ g)], and bounds on its tails."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from expecta.circuits.evidence import Evidence, Rows, as_evidence
from expecta.common.arrays import Bools, Complexes, Floats
from expecta.engine.algebras import Exponential, Spectrum, constants
from expecta.engine.algebras.spectrum_algebra import evenly_spaced, turn
from expecta.engine.layers import LOG_UNIT
from expecta.engine.run import run_each
from expecta.queries.impossible import check_possible
from expecta.queries.moments import support_of
from expecta.queries.spectral import coarse

if TYPE_CHECKING:
    from expecta.queries.pair import Pair

MAX_CHANNELS = 12  # numbers that a pair holds at once: more overflow the cache,
MIN_FREQUENCIES = 3  # but fewer frequencies than this do not repay the set-up of a run
RATES = np.array([4.0, 1.0, 0.25])  # of exponentials, per unit
MIN_UNITS = 30.0  # a range of g beyond which it pays to ask what is likely,
MIN_NOISY_UNITS = 90.0  # and of g + noise, whose unit is the least noise
MAX_UNITS = 64.0  # a range beyond which the unit is a part of the range
MAX_SIZE = 1e12  # of parameters, in units, beyond which their exponentials are too inexact


def characteristic(pair: Pair, X: Rows, t: Floats, on_impossible: str) -> Complexes:
    """E[exp(i t (bias + g))].  # (rows, outputs, t)."""
    out, impossible = characteristic_of(pair, as_evidence(X, pair.p.cardinalities), t)
    out[check_possible(impossible, on_impossible)] = np.nan
    return out


class NoiseOutput(NamedTuple):
    """An output that is the variance σ²(x) of normal noise on another, less a constant part of it.

    With it E[exp(s g)] becomes E[exp(s g + s² (σ² - less) / 2)], for s real or imaginary: what
    each edge adds to σ² multiplies its factor.
    """

    output: int
    less: float = 0.0  # at most the least σ² of the rows asked about


def characteristic_of(
    pair: Pair,
    evidence: Evidence,
    t: Floats,
    only: int | None = None,
    noise: NoiseOutput | None = None,
) -> tuple[Complexes, Bools]:
    """E[exp(i t (bias + g))] of all outputs or of one, and which rows are impossible.

    With ``noise`` it is of g + noise.
    """
    states, q = _channels(pair, Spectrum, evidence, t, only, noise)
    inside = _divide(states, q)
    on_support = inside[..., 0] + 1j * inside[..., 1]
    off = 1.0 - support_of(pair, evidence)
    factor = turn(pair.g.bias[_outputs(only), None], t)
    if noise is not None:
        factor = factor * np.exp(-0.5 * t * t * (pair.g.bias[noise.output] - noise.less))
    return (on_support + off[:, None, None]) * factor, q <= 0


class Exponentials(NamedTuple):
    """E[exp(λ g)] without the bias: number · 2^(256 exponent) on g's support, and off beside it.

    Exact, but for values of g whose probability given the evidence is below 1e-200. Parameters
    that are large and cancel take nothing from it where λ is one.
    """

    number: Floats  # (rows, outputs, rates)
    exponent: Floats  # (rows, outputs, rates)
    off: Floats  # (rows,) probability off the support
    impossible: Bools  # (rows,)


def exponentials(
    pair: Pair,
    evidence: Evidence,
    rates: Floats,
    only: int | None = None,
    noise: NoiseOutput | None = None,
) -> Exponentials:
    """E[exp(λ g)] for real rates λ, of all outputs or of one; with ``noise`` of g + noise."""
    states, q = _channels(pair, Exponential, evidence, rates, only, noise)
    number = _divide(states[..., :1], q)[..., 0]
    return Exponentials(number, states[..., 1], 1.0 - support_of(pair, evidence), q <= 0)


def likely(
    pair: Pair,
    evidence: Evidence,
    low: Floats,
    high: Floats,
    unit: Floats,
    share: float,
    only: int | None = None,
    noise: NoiseOutput | None = None,
) -> tuple[Floats, Floats]:
    """Return ends between ``low`` and ``high``, beyond which g lies with probability ``share``.

    The range of g counts what is possible, however improbable, and frequencies cost in
    proportion to it. E[exp(λ g)] is exact and bounds a tail, P(g > r) <= E[exp(λ g)] exp(-λ r)
    (Chernoff). The rates λ suit a g that spreads over some units; others leave wider ends.

    Parameters
    ----------
    low, high
        The range of g: (rows, outputs), or (rows, 1) if one output is the ``only`` one asked for.
    unit
        What a range costs frequencies by: the width of a link or of noise.  # (rows,)
    noise
        If given the ends are of g + noise.

    Cost: that of some twenty frequencies, for rows whose range is far beyond their unit.
    """
    low, high = low.copy(), high.copy()
    width = (high - low).max(axis=1, initial=0.0)
    wide = (width > MIN_NOISY_UNITS * unit) | (noise is None)
    unit = coarse(np.maximum(unit, width / MAX_UNITS))
    size = pair.parameter_size[_outputs(only)]
    wide &= (width > MIN_UNITS * unit) & (MAX_SIZE * unit > size.max(initial=0.0))
    for group in np.unique(unit[wide]):
        rows = np.flatnonzero(wide & (unit == group))
        rates = np.concatenate([RATES, -RATES]) / group
        sums = exponentials(pair, evidence[rows], rates, only, noise)
        with np.errstate(divide="ignore"):
            on_support = np.log(sums.number) + sums.exponent * LOG_UNIT
            bound = np.logaddexp(on_support, np.log(sums.off)[:, None, None]) + np.log(2.0 / share)
        if noise is not None:
            bound += 0.5 * rates * rates * (pair.g.bias[noise.output] - noise.less)
        bias, slack = pair.g.bias[_outputs(only)], pair.rounding * size
        # each tail holds less than half of what there is, so that the ends cannot cross
        above, below = np.split(bound / rates, 2, axis=2)
        high[rows] = np.minimum(high[rows], above.min(axis=2) + bias + slack)
        low[rows] = np.maximum(low[rows], below.max(axis=2) + bias - slack)
    return low, high


def _outputs(only: int | None) -> slice:
    return slice(None) if only is None else slice(only, only + 1)


def _channels(
    pair: Pair,
    kind: type[Any],
    evidence: Evidence,
    rates: Floats,
    only: int | None,
    noise: NoiseOutput | None,
) -> tuple[Floats, Floats]:
    """Run an algebra of channels, a few rates or frequencies at a time.

    Returns the two numbers of each channel, (rows, outputs, rates, 2), not yet divided by the
    probability of the evidence, which is the other answer: zero in impossible rows.
    """
    phi = pair.plan.phi[:, _outputs(only)]
    outputs, n = phi.shape[1], len(evidence)
    step = min(max(MIN_FREQUENCIES, MAX_CHANNELS // outputs), max(1, len(rates)))
    runs = -(-max(1, len(rates)) // step)
    padded = np.zeros(runs * step)
    padded[: len(rates)] = rates
    algebra: Any = kind(outputs * step)
    table: Callable[..., Floats] = constants
    if noise is not None:
        table = partial(_NOISY[kind], pair.plan.phi[:, noise.output])
    if kind is Spectrum and evenly_spaced(rates):
        table = partial(table, further=turn(phi[:, :, None], rates[:step] - rates[0]))
    tables = [partial(table, algebra, phi, part) for part in padded.reshape(runs, -1)]
    out = np.zeros((n, outputs, runs, step, 2))
    roots = run_each(pair.plan, algebra, tables, evidence)
    for k, root in enumerate(roots):
        if len(root.state):
            out[:, :, k] = root.state.reshape(outputs, step, 2, n).transpose(3, 0, 1, 2)
    return out.reshape(n, outputs, runs * step, 2)[:, :, : len(rates)], roots[0].q


def _noisy_spectrum(
    variance: Floats,
    algebra: Spectrum,
    phi: Floats,
    t: Floats,
    further: Complexes | None = None,
) -> Floats:
    """Return exp(i t φ - t² φ₂ / 2), φ₂ being what edges add to the variance."""
    plain = constants(algebra, phi, t, further=further).reshape(len(phi), -1, len(t), 2)
    shrink = np.exp(-0.5 * t * t * variance[:, None])
    return (plain * shrink[:, None, :, None]).reshape(len(phi), -1)


def _noisy_exponential(variance: Floats, algebra: Exponential, phi: Floats, t: Floats) -> Floats:
    """Return exp(λ φ + λ² φ₂ / 2) as numbers and exponents, outputs outermost."""
    assert (algebra.channels, phi.shape[1]) == (len(t), 1)
    wider = phi + 0.5 * t * variance[:, None]
    return np.hstack([constants(Exponential(1), wider[:, [k]], t[[k]]) for k in range(len(t))])


_NOISY: dict[type[Any], Any] = {Spectrum: _noisy_spectrum, Exponential: _noisy_exponential}


def _divide(states: Floats, q: Floats) -> Floats:
    """Condition on the evidence; zero where it is impossible."""
    share = q.reshape(-1, 1, 1, 1)
    return np.divide(states, share, out=np.zeros_like(states), where=share > 0)
