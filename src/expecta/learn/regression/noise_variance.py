"""Learn the variance of y given its inputs: a constant and a table of each column, none negative.

    σ²(x) = constant + Σ_columns table of the column at x

A sum whose terms are not negative is a second output of any circuit over the same columns, and so
is its expectation given what is known. It is fitted to held-out residuals r by the likelihood of
normal noise, Σ (log σ² + r²/σ²) / 2. Tables are sums of steps, bumps and single categories, each
times a factor θ >= 0 that is pulled to zero as strongly as chance alone would push it away; what
maximises this is found by multiplicative steps, which keep θ >= 0 (the Itakura-Saito divergence of
non-negative matrix factorisation). How strong the pull is, and whether the noise depends on the
inputs at all, is decided by the likelihood of folds left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from expecta.circuits.constructions import linear
from expecta.circuits.regression import RegressionCircuit
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Bools, Floats, Ints
from expecta.learn.regression.curves import Curve

KNOTS = 8  # of a curve of variances
MIN_ROWS = 100  # below which the noise is taken to be constant
MIN_SHARE = 0.02  # of rows that a step or bump must tell from the others
MAX_TERMS = 64  # steps, bumps and categories that are fitted, of those that promise most
STRENGTHS = (4.0, 2.0, 1.0, 0.5, 0.25)  # of the pull, in standard deviations of what chance pushes
STEPS = 100  # multiplicative, of a fit
DROP_STEPS = 10  # steps after which terms are left out
LEAST = 1 / 16  # of the mean variance, that is constant: what varies more costs more frequencies
NOTHING = 1e-3 * LEAST  # of the mean variance, that a term may add without being kept
MIN_GAIN = 2.0  # standard errors by which held-out likelihood must rise


@dataclass(frozen=True, eq=False)
class NoiseVariance:
    """σ²(x): the variance of y given its inputs, by the values of the columns.

    Attributes
    ----------
    constant
        Of all rows, above zero.
    tables
        What each value of each variable adds, at least zero.  # (values,) each
    unit
        Both are in its square: σ itself may be a number whose square is none.
    """

    constant: float
    tables: tuple[Floats, ...]
    unit: float = 1.0

    def __call__(self, codes: Ints) -> Floats:
        """σ² of complete rows, in squares of the unit.  # (rows,)."""
        total = np.full(len(codes), self.constant)
        for variable, table in enumerate(self.tables):
            if np.any(table):
                total += table[codes[:, variable]]
        return total

    def std(self, codes: Ints) -> Floats:
        """σ of complete rows.  # (rows,)."""
        return self.unit * np.sqrt(self(codes))

    def scaled(self, factor: float) -> NoiseVariance:
        """Return the noise of a multiple of y."""
        return replace(self, unit=self.unit * factor)

    def circuit(self, vtree: Vtree) -> RegressionCircuit:
        """Return σ², in squares of the unit, as a circuit."""
        return linear(vtree, self.tables, bias=self.constant)

    def beside(self, g: RegressionCircuit) -> RegressionCircuit:
        """Return g with σ² as a second output: its parameters stand at the leaves."""
        added, constant = self._edges(g)
        weight = np.stack([g.weight[:, 0], added], axis=1)
        return RegressionCircuit(g.structure, weight, [g.bias[0], constant])

    def added(self, g: RegressionCircuit, factor: float = 1.0) -> RegressionCircuit:
        """Return g with a multiple of σ² added."""
        added, constant = self._edges(g)
        weight = g.weight + factor * added[:, None]
        return RegressionCircuit(g.structure, weight, g.bias + factor * constant)

    def _edges(self, g: RegressionCircuit) -> tuple[Floats, float]:
        """Return what each edge of a circuit, and its bias, adds to σ²."""
        s, square = g.structure, self.unit**2
        variable = s.vtree.variable[s.layer_of_node[s.node_of_edge]]
        added = np.zeros(s.n_edges)
        for number, table in enumerate(self.tables):
            edges = np.flatnonzero(variable == number)
            added[edges] = square * table[s.target[edges]]
        return added, square * self.constant


class CodedRows(NamedTuple):
    """Rows as values of variables, and what the tables of each variable may be."""

    codes: Ints  # (rows, variables), -1 where a value is not one of them
    curves: Sequence[Curve]

    def take(self, rows: Ints) -> CodedRows:
        """Return some of the rows."""
        return CodedRows(self.codes[rows], self.curves)


class LearnedNoise(NamedTuple):
    """What was learned from all rows, and from those outside each fold; None where constant."""

    variance: NoiseVariance | None
    folds: list[NoiseVariance | None]


def learn_noise(
    rows: CodedRows,
    folds: Sequence[CodedRows],
    residual: Floats,
    weight: Floats,
    fold: Ints,
) -> LearnedNoise:
    """Learn σ² from residuals of complete rows that the model did not learn from.

    Parameters
    ----------
    rows, folds
        The rows, and the same rows for each fold, whose codes may be others.
    residual, weight, fold
        Of each row: y minus the model's output, how much it counts, its fold.  # (rows,) each

    Cost: that of some thousand products of a matrix (rows, at most 64) and a vector.
    """
    constant = LearnedNoise(None, [None] * len(folds))
    most = float(np.abs(residual).max(initial=0.0))
    if np.count_nonzero(weight) < MIN_ROWS or not 0 < most < np.inf:
        return constant
    unit = most * float(np.sqrt(np.average((residual / most) ** 2, weights=weight)))
    squared = (residual / unit) ** 2
    gain = np.zeros((len(STRENGTHS), len(squared)))
    paths = []
    for number, one in enumerate(folds):
        out = fold == number
        kept = np.where(out | np.any(one.codes < 0, axis=1), 0.0, weight)
        paths.append(_path(one, squared, kept))
        least = _loss(squared[out], np.average(squared, weights=kept))
        for k, variance in enumerate(paths[-1]):
            gain[k, out] = least - _loss(squared[out], variance(one.codes[out]))
    mean = np.average(gain, axis=1, weights=weight)
    best = int(np.argmax(mean))
    error = np.sqrt(np.sum((weight * (gain[best] - mean[best])) ** 2)) / weight.sum()
    if mean[best] <= MIN_GAIN * error:
        return constant
    final = _path(rows, squared, weight, STRENGTHS[: best + 1])[-1]
    if not any(map(np.any, final.tables)):
        return constant
    return LearnedNoise(final.scaled(unit), [path[best].scaled(unit) for path in paths])


def _loss(squared: Floats, variance: Floats) -> Floats:
    """Minus the log-likelihood of normal noise, but for a constant."""
    return 0.5 * (np.log(variance) + squared / variance)


class _Terms(NamedTuple):
    """Functions of one variable each, between 0 and 1."""

    variable: Ints  # (terms,)
    values: list[Floats]  # of each value of the variable

    def matrix(self, codes: Ints) -> Floats:
        """Return the terms of rows, a one before them.  # (rows, 1 + terms)."""
        pairs = zip(self.variable.tolist(), self.values, strict=True)
        columns = [values[codes[:, variable]] for variable, values in pairs]
        return np.stack([np.ones(len(codes)), *columns], axis=1)


def _path(
    rows: CodedRows, squared: Floats, weight: Floats, strengths: Sequence[float] = STRENGTHS
) -> list[NoiseVariance]:
    """Fit σ² with each strength of the pull to a constant, the strongest first.

    What chance pushes depends on σ²: the squared residuals of a group that is far above the mean
    vary most. So each strength pulls by the chance about the σ² of the one before.
    """
    used = weight > 0
    codes, squared, weight = rows.codes[used], squared[used], weight[used]
    mean = float(np.average(squared, weights=weight))
    terms = _promising(codes, rows.curves, squared / mean - 1.0, weight)
    matrix, squared = terms.matrix(codes), squared / mean
    fitted: Floats = np.ones(len(squared))
    variances = []
    for strength in strengths:
        slope = 0.5 * weight * (squared / fitted - 1.0) / fitted
        pull = strength * np.sqrt((slope**2) @ matrix**2)
        pull[0] = 0.0
        theta = _fit(matrix, squared, weight, pull)
        fitted, theta = matrix @ theta, mean * theta
        tables = [np.zeros(len(curve.groups)) for curve in rows.curves]
        for variable, values, factor in zip(
            terms.variable.tolist(), terms.values, theta[1:].tolist(), strict=True
        ):
            tables[variable] += factor * values
        variances.append(NoiseVariance(float(theta[0]), tuple(tables)))
    return variances


def _promising(codes: Ints, curves: Sequence[Curve], excess: Floats, weight: Floats) -> _Terms:
    """Return the terms that rise most with the excess of squared residuals.

    In standard deviations of the slope of the likelihood by chance, where the noise is constant,
    whatever its tails.
    """
    variable, values, promise = [], [], []
    total = weight.sum()
    for number, curve in enumerate(curves):
        candidates = _candidates(curve)
        n = len(candidates)
        own = codes[:, number]
        count = np.bincount(own, weight, n)
        slope = candidates.T @ np.bincount(own, 0.5 * weight * excess, n)
        chance = np.sqrt((candidates**2).T @ np.bincount(own, (0.5 * weight * excess) ** 2, n))
        share = candidates.T @ count / total
        for k in np.flatnonzero((np.minimum(share, 1.0 - share) >= MIN_SHARE) & (chance > 0)):
            variable.append(number)
            values.append(candidates[:, k])
            promise.append(slope[k] / chance[k])
    best = np.argsort(-np.array(promise), kind="stable")[:MAX_TERMS]
    return _Terms(np.array(variable, np.int64)[best], [values[k] for k in best.tolist()])


def _candidates(curve: Curve) -> Floats:
    """Return steps up and down and bumps of an ordered variable, else categories and the others.

    # (values, candidates)
    """
    if curve.ordered and len(curve.groups) > 2:
        up = np.cumsum(curve.basis[:, ::-1], axis=1)[:, -2::-1]
        return np.hstack([up, 1.0 - up, curve.basis[:, 1:-1]])
    single: Bools = curve.groups[:, None] == np.arange(curve.n_groups)
    return np.hstack([single, ~single]).astype(np.float64)


def _fit(matrix: Floats, squared: Floats, weight: Floats, pull: Floats) -> Floats:
    """Maximise the likelihood less pull · θ, over θ >= 0.  # (1 + terms,).

    Last all θ are multiplied so that σ² is right on average.
    """
    start = 0.5 / np.maximum(weight @ matrix / weight.sum(), 1e-3) / max(1, matrix.shape[1] - 1)
    kept, theta = np.arange(matrix.shape[1]), start
    theta[0] = 0.5
    for step in range(STEPS):
        variance = matrix @ theta
        rise = (0.5 * weight * squared / variance**2) @ matrix
        fall = (0.5 * weight / variance) @ matrix + pull
        if step % DROP_STEPS == DROP_STEPS - 1:
            # What is next to nothing and falls is left out. It might rise again later: in 200
            # random fits that mattered to one, by 0.003 nats a row.
            stays = (theta >= NOTHING) | (rise > fall)
            stays[0] = True
            kept, theta, rise, fall, pull = (z[stays] for z in (kept, theta, rise, fall, pull))
            matrix = matrix[:, stays]
        theta *= rise / fall
        theta[0] = max(theta[0], LEAST)
    theta[1:][theta[1:] < NOTHING] = 0.0
    whole = np.zeros(len(start))
    whole[kept] = theta * np.average(squared / (matrix @ theta), weights=weight)
    return whole
