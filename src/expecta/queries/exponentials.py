"""Exponentials of a pair: E[exp(z g)] for complex z, and what bounds its tails."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from expecta.circuits.evidence import Evidence, Rows, as_evidence
from expecta.common.arrays import Bools, Complexes, Floats
from expecta.engine.algebras import Spectrum, constants
from expecta.engine.algebras.spectrum import turn
from expecta.engine.plan import Plan
from expecta.engine.run import run_each
from expecta.queries.impossible import check_possible
from expecta.queries.moments import support_of

if TYPE_CHECKING:
    from expecta.queries.pair import Pair

__all__ = ["Scaled", "characteristic", "characteristic_of", "log_exponential_of", "scaled_of"]

CHANNELS = 6  # complex numbers that a pair holds at once: more overflow the cache,
FREQUENCIES = 3  # but fewer frequencies than this do not repay the set-up of a run
LOST = 1e-290  # more than what underflows of a sum of numbers between zero and one


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


class Scaled(NamedTuple):
    """E[exp(z (bias + g))] = inside · exp(z · top) + off · exp(z · bias)."""

    inside: Complexes  # between zero and one where z is real  (rows, outputs, z)
    top: Floats  # (outputs,)
    off: Floats  # probability off g's support  (rows,)
    impossible: Bools  # (rows,)


def scaled_of(pair: Pair, evidence: Evidence, z: Complexes, only: int | None = None) -> Scaled:
    """Compute the parts of E[exp(z (bias + g))], for z whose real parts have one sign.

    What is greatest is taken out, so that no sum overflows and one that underflows is little.
    """
    phi, top = _pushed_up(pair.plan, np.sign(np.real(z[0])) if len(z) else 0.0)
    inside, impossible = _spectrum(pair.plan, phi[:, _outputs(only)], evidence, z)
    everywhere = pair.g.covers_everything
    off = np.zeros(len(evidence)) if everywhere else 1.0 - support_of(pair, evidence)
    return Scaled(inside, (top + pair.g.bias)[_outputs(only)], off, impossible)


def log_exponential_of(
    pair: Pair, evidence: Evidence, rates: Floats, only: int | None = None
) -> Floats:
    """Bound the logarithm of E[exp(λ (bias + g))] for rates λ of one sign, closely, from above.

    It is that logarithm but for what underflows, which is added.  # (rows, outputs, rates)
    """
    part = scaled_of(pair, evidence, rates + 0j, only)
    with np.errstate(divide="ignore"):
        off = np.log(part.off)[:, None, None] + pair.g.bias[_outputs(only), None] * rates
    on = np.log(part.inside.real + LOST) + part.top[:, None] * rates
    return np.asarray(np.logaddexp(on, off))


def _outputs(only: int | None) -> slice:
    return slice(None) if only is None else slice(only, only + 1)


def _spectrum(plan: Plan, phi: Floats, evidence: Evidence, z: Complexes) -> tuple[Complexes, Bools]:
    """E[exp(z Σφ)] on g's support, and which rows are impossible."""
    outputs, n = phi.shape[1], len(evidence)
    step = min(max(FREQUENCIES, CHANNELS // outputs), max(1, len(z)))
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
