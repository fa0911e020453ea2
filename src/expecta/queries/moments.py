"""Compute predictions, moments and ranges of a pair: one run of the engine each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from expecta.circuits.evidence import Evidence, Rows, as_evidence
from expecta.circuits.regression import RegressionCircuit
from expecta.common.arrays import Bools, Floats
from expecta.common.errors import DomainError
from expecta.engine.algebras import Expectation, Extremes, Moments, constants
from expecta.engine.cuda.rows_on_card import RowsOnCard
from expecta.engine.plan import Plan
from expecta.engine.run import Root, run
from expecta.queries.card_answers import rows_of
from expecta.queries.density_queries import log_of
from expecta.queries.impossible import check_possible

if TYPE_CHECKING:
    from expecta.queries.pair import Pair


def expectation_of(plan: Plan, evidence: Evidence | RowsOnCard) -> tuple[Floats, Bools]:
    """E[g] without the bias, and which rows are impossible.  # (rows, outputs)."""
    out, root = _expectation_at_root(plan, evidence)
    return out, root.q <= 0


def expectation_and_log_prob(pair: Pair, evidence: Evidence) -> tuple[Floats, Floats]:
    """E[bias + g], NaN for impossible rows, and log p of each row.  # (rows, outputs), (rows,)."""
    out, root = _expectation_at_root(pair.plan, evidence)
    out += pair.g.bias
    out[root.q <= 0] = np.nan
    return out, log_of(pair.plan, root)


def _expectation_at_root(plan: Plan, evidence: Evidence | RowsOnCard) -> tuple[Floats, Root]:
    algebra = Expectation(plan.phi.shape[1])
    root = run(plan, algebra, constants(algebra, plan.phi), evidence)
    out = np.zeros_like(root.q, shape=(len(evidence), algebra.outputs))
    if len(root.state):
        out[:] = _divide(root.state[1:], root.q).T
    return out, root


def expectation(pair: Pair, X: Rows, on_impossible: str) -> Floats:
    """E[bias + g].  # (rows, outputs)."""
    out, impossible = expectation_of(pair.plan, rows_of(X, pair.p.cardinalities))
    out += np.asarray(pair.g.bias, like=out)
    if check_possible(impossible, on_impossible).any():
        out[impossible] = np.nan
    return out


def predict(g: RegressionCircuit, plan: Plan, X: Rows) -> Floats:
    """Evaluate g on complete rows; ``plan`` pairs it with the counting measure."""
    evidence = as_evidence(X, g.cardinalities)
    certain: dict[int, Bools] = {}  # which states of a table are one value: variables share tables
    for variable, (states, codes) in enumerate(zip(evidence.states, evidence.codes, strict=True)):
        if id(states) not in certain:
            certain[id(states)] = np.count_nonzero(states, axis=1) == 1
        known = certain[id(states)][codes]
        if not known.all():
            raise DomainError(
                f"row {int(np.argmin(known))} does not say what variable {variable} is; "
                f"a prediction needs complete rows, Pair(p, g).expectation(X) does not"
            )
    values = expectation_of(plan, evidence)[0] + g.bias
    return values[:, 0] if g.n_outputs == 1 else values


def raw(pair: Pair, X: Rows, order: int, on_impossible: str) -> Floats:
    """M_0 .. M_order of bias + g, from the moments about the mean.  # (rows, outputs, order+1)."""
    about_mean, impossible = mean_and_central(pair, rows_of(X, pair.p.cardinalities), order)
    if order == 0:
        moments = about_mean
    else:
        mean = about_mean[:, :, 1].copy()
        about_mean[:, :, 1] = 0.0
        moments = shift_moments(about_mean, mean)
    moments[check_possible(impossible, on_impossible)] = np.nan
    return moments


def shift_moments(moments: Floats, by: Floats) -> Floats:
    """Moments of Y + by from those of Y: Σ_j binom(k, j) M_j by^(k-j).

    The last axis of ``moments`` counts the order; ``by`` has the other axes.

    >>> shift_moments(np.array([[1.0, 2.0, 5.0]]), np.array([-2.0])).tolist()
    [[1.0, 0.0, 1.0]]
    """
    out = np.zeros_like(moments)
    for k in range(moments.shape[-1]):
        factor = np.ones_like(by)  # binom(k, j) by^(k-j), from j = k downwards
        for j in range(k, -1, -1):
            out[..., k] += factor * moments[..., j]
            factor = factor * by * j / (k - j + 1)
    return out


def support(pair: Pair, X: Rows, on_impossible: str) -> Floats:
    """Probability of g's formula.  # (rows,)."""
    evidence = rows_of(X, pair.p.cardinalities)
    root = _numbers(pair.plan, evidence)
    out = _support(pair, root)
    out[check_possible(root.q <= 0, on_impossible)] = np.nan
    return out


def support_of(pair: Pair, evidence: Evidence | RowsOnCard) -> Floats:
    """Probability of g's formula, one without a run where g covers everything.  # (rows,)."""
    if pair.g.covers_everything:
        return np.ones(len(evidence))
    return _support(pair, _numbers(pair.plan, evidence))


def central(pair: Pair, X: Rows, order: int, on_impossible: str) -> Floats:
    """C_0 .. C_order of g about its mean.  # (rows, outputs, order + 1)."""
    moments, impossible = mean_and_central(pair, rows_of(X, pair.p.cardinalities), order)
    if order >= 1:
        moments[:, :, 1] = 0.0
    moments[check_possible(impossible, on_impossible)] = np.nan
    return moments


def mean_and_central(
    pair: Pair, evidence: Evidence | RowsOnCard, order: int
) -> tuple[Floats, Bools]:
    """1, the mean, C_2 .. C_order, and which rows are impossible.  # (rows, outputs, order+1)."""
    outputs = pair.g.n_outputs
    algebra = Moments(max(order, 2), outputs)
    # A power of two near the largest parameter keeps high powers within the range of floats.
    unit = 2.0 ** np.ceil(np.log2(max(float(np.abs(pair.plan.phi).max(initial=0.0)), 1e-300)))
    root = run(pair.plan, algebra, constants(algebra, pair.plan.phi / unit), evidence)
    out: Floats = np.zeros_like(root.q, shape=(len(evidence), outputs, algebra.order + 1))
    out[:, :, 0] = 1.0
    if len(root.state):
        out[:, :, 1:] = root.state[1:].reshape(outputs, algebra.order, -1).transpose(2, 0, 1)
    on = _support(pair, root)
    if np.any(on < 1.0):
        out = _merge_zero(out, on)
    out[:, :, 1:] *= unit
    with np.errstate(over="ignore"):
        for k in range(2, algebra.order + 1):  # C_k = k! unit^k times what the algebra holds
            out[:, :, k:] *= k * unit
    out[:, :, 1] += np.asarray(pair.g.bias, like=out)
    return out[:, :, : order + 1], root.q <= 0


def _merge_zero(moments: Floats, on: Floats) -> Floats:
    """Mix in a point mass 1 - on at zero; moments are 1, mean, C_k / k!."""
    mean, share, rest = moments[:, :, 1], 1.0 - on[:, None], on[:, None]
    out = moments.copy()
    out[:, :, 1] = rest * mean
    ahead, back = mean - out[:, :, 1], -out[:, :, 1]
    for k in range(2, moments.shape[2]):
        a, b = np.ones_like(mean), np.ones_like(mean)
        for j in range(1, k + 1):
            a = a * ahead / (k - j + 1) + (moments[:, :, j] if j >= 2 else 0.0)
            b = b * back / (k - j + 1)
        out[:, :, k] = rest * a + share * b
    return out


def extremes(pair: Pair, X: Rows, on_impossible: str) -> tuple[Floats, Floats]:
    """Least and greatest possible bias + g.  # (rows, outputs) each."""
    evidence = rows_of(X, pair.p.cardinalities)
    low, high, impossible = extremes_of(pair, evidence)
    impossible = check_possible(impossible, on_impossible)
    low[impossible] = high[impossible] = np.nan
    return low, high


def extremes_of(pair: Pair, evidence: Evidence | RowsOnCard) -> tuple[Floats, Floats, Bools]:
    """Least and greatest, and which rows are impossible."""
    outputs = pair.g.n_outputs
    algebra = Extremes(outputs)
    root = run(pair.plan, algebra, constants(algebra, pair.plan.phi), evidence)
    low = np.full_like(root.q, np.inf, shape=(len(evidence), outputs))
    high = np.full_like(root.q, -np.inf, shape=(len(evidence), outputs))
    if len(root.state):
        low[:], high[:] = root.state[::2].T, root.state[1::2].T
    if not pair.g.covers_everything:
        off = (support_of(pair, evidence) < 1.0)[:, None]
        low = np.where(off, np.minimum(low, 0.0), low)
        high = np.where(off, np.maximum(high, 0.0), high)
    bias = np.asarray(pair.g.bias, like=low)
    return low + bias, high + bias, root.q <= 0


def _numbers(plan: Plan, evidence: Evidence | RowsOnCard) -> Root:
    """Run the plain recursion: probabilities of pairs, nothing of g's values."""
    algebra = Expectation(0)
    return run(plan, algebra, constants(algebra, plan.phi), evidence)


def rounding(pair: Pair) -> float:
    """Bound the relative rounding error of a sum of products of parameters, over a circuit.

    A few digits for each vtree node, and one for each term of its longest sum, under p and g.
    """
    terms = float(len(pair.p.vtree))
    for circuit in (pair.plan.p, pair.plan.g):
        first_node = circuit.node_start[:-1]
        longest = np.maximum.reduceat(np.diff(circuit.edge_start), first_node)
        terms += 0.25 * float((longest - 1).sum())
    return 4 * float(np.finfo(np.float64).eps) * (16 + terms)


def support_rounding(pair: Pair) -> float:
    """Probability off g's support, given the evidence, that cannot be told from rounding."""
    return 0.0 if pair.g.covers_everything else pair.rounding


def parameter_size(pair: Pair) -> Floats:
    """Return the greatest sum of absolute parameters that g adds up, its bias too.  # (outputs,).

    Where parameters cancel, g is known to within rounding of this size and not of its own.
    """
    algebra, unknown = Extremes(pair.g.n_outputs), Evidence.unknown(pair.p.cardinalities)
    root = run(pair.plan, algebra, constants(algebra, np.abs(pair.plan.phi)), unknown)
    size = root.state.reshape(-1, 2)[:, 1] if len(root.state) else 0.0
    return np.abs(pair.g.bias) + size


def _support(pair: Pair, root: Root) -> Floats:
    """Probability of g's formula from a state that begins with it."""
    if pair.g.covers_everything:
        return np.ones_like(root.q)
    if not len(root.state):
        return np.zeros_like(root.q)
    share = np.minimum(_divide(root.state[0], root.q), 1.0)
    return np.where(share > 1.0 - support_rounding(pair), 1.0, share)


def _divide(state: Floats, q: Floats) -> Floats:
    """Condition on the evidence; zero where it is impossible (callers put NaN there)."""
    possible = q > 0
    share: Floats = np.where(possible, state, 0.0) / np.where(possible, q, 1.0)
    return share
