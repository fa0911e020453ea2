"""Compute exponentials of a pair, E[exp(z g)] for complex z, and bounds on its tails."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from expecta.circuits.evidence import Evidence, Rows, as_evidence
from expecta.common.arrays import Bools, Complexes, Floats
from expecta.engine.algebras import Spectrum, constants
from expecta.engine.algebras.spectrum_algebra import turn
from expecta.engine.plan import Plan
from expecta.engine.run import run_each
from expecta.queries.impossible import check_possible
from expecta.queries.moments import support_of
from expecta.queries.spectral import coarse

if TYPE_CHECKING:
    from expecta.queries.pair import Pair

MAX_CHANNELS = 6  # complex numbers that a pair holds at once: more overflow the cache,
MIN_FREQUENCIES = 3  # but fewer frequencies than this do not repay the set-up of a run
UNDERFLOW = 1e-290  # more than what underflows of a sum of numbers between zero and one
RATES = np.array([4.0, 1.0, 0.25])  # of exponentials, per unit
MIN_UNITS = 30.0  # a range of g beyond which it pays to ask what is likely
MAX_UNITS = 64.0  # a range beyond which the unit is a part of the range


def characteristic(pair: Pair, X: Rows, t: Floats, on_impossible: str) -> Complexes:
    """E[exp(i t (bias + g))].  # (rows, outputs, t)."""
    out, impossible = characteristic_of(pair, as_evidence(X, pair.p.cardinalities), t)
    out[check_possible(impossible, on_impossible)] = np.nan
    return out


def characteristic_of(
    pair: Pair, evidence: Evidence, t: Floats, only: int | None = None
) -> tuple[Complexes, Bools]:
    """E[exp(i t (bias + g))] of all outputs or of one, and which rows are impossible."""
    part = scaled_of(pair, evidence, 1j * t, only)
    inside = part.inside + part.off[:, None, None]
    return inside * turn(part.top[:, None], 1j * t), part.impossible


class ScaledExponential(NamedTuple):
    """E[exp(z (bias + g))] = inside · exp(z · top) + off · exp(z · bias)."""

    inside: Complexes  # between zero and one where z is real  (rows, outputs, z)
    top: Floats  # (outputs,)
    off: Floats  # probability off g's support  (rows,)
    impossible: Bools  # (rows,)


def scaled_of(
    pair: Pair, evidence: Evidence, z: Complexes, only: int | None = None
) -> ScaledExponential:
    """Compute the parts of E[exp(z (bias + g))], for z whose real parts have one sign.

    What is greatest is taken out, so that no sum overflows and one that underflows is little.
    """
    phi, top = _pushed_up(pair.plan, np.sign(np.real(z[0])) if len(z) else 0.0)
    inside, impossible = _spectrum(pair.plan, phi[:, _outputs(only)], evidence, z)
    everywhere = pair.g.covers_everything
    off = np.zeros(len(evidence)) if everywhere else 1.0 - support_of(pair, evidence)
    return ScaledExponential(inside, (top + pair.g.bias)[_outputs(only)], off, impossible)


def _log_exponential(
    pair: Pair, evidence: Evidence, rates: Floats, only: int | None = None
) -> Floats:
    """Bound the logarithm of E[exp(λ (bias + g))] for rates λ of one sign, closely, from above.

    It is that logarithm but for what underflows, which is added.  # (rows, outputs, rates)
    """
    part = scaled_of(pair, evidence, rates + 0j, only)
    with np.errstate(divide="ignore"):
        off = np.log(part.off)[:, None, None] + pair.g.bias[_outputs(only), None] * rates
    on = np.log(part.inside.real + UNDERFLOW) + part.top[:, None] * rates
    return np.asarray(np.logaddexp(on, off))


def likely(
    pair: Pair,
    evidence: Evidence,
    low: Floats,
    high: Floats,
    unit: Floats,
    share: float,
    only: int | None = None,
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

    Cost: that of six frequencies, for rows whose range is far beyond their unit.
    """
    low, high = low.copy(), high.copy()
    width = (high - low).max(axis=1, initial=0.0)
    unit = coarse(np.maximum(unit, width / MAX_UNITS))
    wide = width > MIN_UNITS * unit
    for group in np.unique(unit[wide]):
        rows = np.flatnonzero(wide & (unit == group))
        ends = []
        for rates in (RATES / group, -RATES / group):
            bound = _log_exponential(pair, evidence[rows], rates, only) + np.log(2.0 / share)
            ends.append(np.where(np.isfinite(bound), bound / rates, np.sign(rates) * np.inf))
        # each tail holds less than half of what there is, so that the ends cannot cross
        high[rows] = np.minimum(high[rows], ends[0].min(axis=2))
        low[rows] = np.maximum(low[rows], ends[1].max(axis=2))
    return low, high


def _outputs(only: int | None) -> slice:
    return slice(None) if only is None else slice(only, only + 1)


def _spectrum(plan: Plan, phi: Floats, evidence: Evidence, z: Complexes) -> tuple[Complexes, Bools]:
    """E[exp(z Σφ)] on g's support, and which rows are impossible."""
    outputs, n = phi.shape[1], len(evidence)
    step = min(max(MIN_FREQUENCIES, MAX_CHANNELS // outputs), max(1, len(z)))
    runs = -(-max(1, len(z)) // step)
    padded = np.zeros(runs * step, np.complex128)
    padded[: len(z)] = z
    algebra = Spectrum(outputs * step)
    tables = [partial(constants, algebra, phi, part) for part in padded.reshape(runs, -1)]
    out = np.zeros((n, outputs, runs, step), np.complex128)
    roots = run_each(plan, algebra, tables, evidence)
    for k, root in enumerate(roots):
        if len(root.state):
            parts: Any = np.zeros_like(root.state)
            np.divide(root.state, root.q, out=parts, where=root.q > 0)
            parts = parts.reshape(outputs, step, 2, n)
            out[:, :, k] = (parts[:, :, 0] + 1j * parts[:, :, 1]).transpose(2, 0, 1)
    return out.reshape(n, outputs, runs * step)[:, :, : len(z)], roots[0].q <= 0


def _pushed_up(plan: Plan, sign: float) -> tuple[Floats, Floats]:
    """Move what is greatest of every node, for that sign, to the edges above.

    Returns φ with sign · φ <= 0, and the root's greatest; for no sign φ as it is, and zero.
    """
    g, phi = plan.g, sign * plan.phi
    if sign == 0:
        return plan.phi, np.zeros(phi.shape[1])
    top = np.zeros((len(g.edge_start) - 1, phi.shape[1]))
    for v in range(len(g.variable)):
        first, last = g.node_start[v], g.node_start[v + 1]
        starts = g.edge_start[first:last]
        edges = slice(starts[0], g.edge_start[last])
        if g.variable[v] < 0:
            element = g.element_start[v] + g.target[edges]
            phi[edges] += top[g.node_start[g.tree_left[v]] + g.left[element]]
            phi[edges] += top[g.node_start[g.tree_right[v]] + g.right[element]]
        top[first:last] = np.maximum.reduceat(phi[edges], starts - starts[0])
        phi[edges] -= np.repeat(top[first:last], np.diff(g.edge_start[first : last + 1]), axis=0)
    return sign * phi, sign * top[-1]
