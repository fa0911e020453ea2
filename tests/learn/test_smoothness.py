"""How smooth each table is: against the restricted likelihood, and where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from expecta import Vtree
from expecta.learn.regression import LOSSES, Curve, grow
from expecta.learn.regression.row_features import FeatureTable
from expecta.learn.regression.smoothness import FREE, STRENGTHS, choose_smoothing

AMOUNTS = np.array([7, 19, 33])


def feature_table(columns, y, curves):
    return FeatureTable(np.stack(columns, axis=1), Vtree.balanced(len(curves)), curves, y[:, None])


def spiky(n=3000, seed=0):
    """Most rows 0, three amounts that decide, others that do not; and a smooth column."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(n) < 0.5, rng.choice(AMOUNTS, n), rng.integers(1, 40, n))
    x = np.where(rng.random(n) < 0.8, 0, x)
    z = rng.integers(0, 40, n)
    truth = np.where(np.isin(x, AMOUNTS), np.array([0.0, 2.0, -2.0, 1.0])[x % 4], 0.0) + z / 20
    return [x, z], truth, truth + 0.3 * rng.normal(size=n)


def curve_of(codes, n=40, **options):
    counts = np.bincount(codes, minlength=n).astype(float)
    return Curve.of(counts, np.arange(float(n)), single=np.ones(n, bool), **options)


def strengths_of(P, curves):
    """Read the size and, table by table, the forms' strengths off a penalty."""
    start, sizes = 1, []
    parts = []
    for curve in curves:
        m = curve.rich.shape[1]
        block = P[start : start + m, start : start + m]
        A = np.stack([np.eye(m).ravel(), *(form.ravel() for form in curve.forms)], axis=1)
        found = np.linalg.lstsq(A, block.ravel(), rcond=None)[0]
        assert np.allclose(A @ found, block.ravel())
        sizes.append(found[0])
        parts.append(found[1:])
        start += m
    assert np.allclose(sizes, sizes[0])
    return sizes[0], parts


def test_strengths_have_the_largest_restricted_likelihood():
    columns, _, y = spiky(800)
    curves = [curve_of(column, max_rich=20, knots=6) for column in columns]
    table = feature_table(columns, y, curves)
    smoothing = choose_smoothing(table, np.ones(len(y)), LOSSES["squared"])
    size, strengths = strengths_of(smoothing.penalty, table.curves)
    rich = [curve.rich[code] for curve, code in zip(curves, columns, strict=True)]
    A = np.hstack([np.ones((len(y), 1)), *rich])
    H = A.T @ A
    assert np.allclose(H, smoothing.gram)
    free = np.trace(np.linalg.solve(H + smoothing.penalty, H))
    theta = np.linalg.solve(H + smoothing.penalty, A.T @ y)
    dispersion = np.sum((y - A @ theta) ** 2) / (len(y) - free)

    def likelihood(size, strengths):
        blocks = [
            size * np.eye(curve.rich.shape[1])
            + sum(s * f for s, f in zip(own, curve.forms, strict=True))
            for curve, own in zip(curves, strengths, strict=True)
        ]
        P = scipy.linalg.block_diag([[FREE]], *blocks)
        theta = np.linalg.solve(H + P, A.T @ y)
        left = np.sum((y - A @ theta) ** 2) + theta @ P @ theta
        determinants = np.linalg.slogdet(H + P)[1] - np.linalg.slogdet(P)[1]
        return -0.5 * (left / dispersion + determinants)

    best = likelihood(size, strengths)
    for factor in (0.4, 2.5):
        assert likelihood(factor * size, strengths) < best + 0.01
        for column, own in enumerate(strengths):
            for index, strength in enumerate(own):
                if not STRENGTHS[0] * 1.2 < strength < STRENGTHS[1] / 1.2:
                    continue
                changed = [part.copy() for part in strengths]
                changed[column][index] *= factor
                assert likelihood(size, changed) < best + 0.01


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_atoms_where_there_are_spikes_and_a_line_where_there_are_none(loss):
    columns, truth, y = spiky(3000 if loss == "squared" else 20_000)
    rng = np.random.default_rng(1)
    if loss == "logistic":
        y = (rng.random(len(y)) < 1 / (1 + np.exp(-truth))).astype(float)
    curves = [curve_of(column) for column in columns]
    table = feature_table(columns, y, curves)
    smoothing = choose_smoothing(table, np.ones(len(y)), LOSSES[loss])
    size = curves[0].rich.shape[1]
    first, second = smoothing.theta[1 : 1 + size, 0], smoothing.theta[1 + size :, 0]
    tables = [curve.rich @ part for curve, part in zip(curves, (first, second), strict=True)]
    slack = 0.25 if loss == "squared" else 0.5
    effect = tables[0] - tables[0][0]
    for amount in AMOUNTS:
        assert effect[amount] == pytest.approx([0.0, 2.0, -2.0, 1.0][amount % 4], abs=slack)
    around = tables[1] - np.arange(40) / 20
    assert np.ptp(around) < slack
    assert np.abs(np.diff(tables[1], 2)).max() < 0.1 * slack  # no steps


def test_many_categories_of_noise_are_shrunk():
    rng = np.random.default_rng(0)
    n = 600
    codes, y = rng.integers(0, 60, n), rng.normal(size=n)
    real = np.repeat([-1.0, 1.0], 30)[codes]
    for signal, low, high in ((0.0, 0.0, 0.15), (1.0, 0.8, 1.1)):
        curve = Curve.of(np.bincount(codes, minlength=60).astype(float))
        table = feature_table([codes, np.zeros(n, int)], y + signal * real, [curve, Curve.none(1)])
        smoothing = choose_smoothing(table, np.ones(n), LOSSES["squared"])
        assert low <= np.std(smoothing.theta[1:]) <= high


def test_a_circuit_has_the_tables_that_were_chosen():
    columns, truth, y = spiky()
    codes, fold = np.stack(columns, axis=1), np.where(np.arange(len(y)) % 5, -1, 0)
    curves = [curve_of(column) for column in columns]
    grown = grow(codes, y[:, None], vtree=Vtree.balanced(2), curves=curves, fold=fold)
    error = np.mean((grown.circuit(codes) - truth) ** 2)
    assert error < 0.05 * 0.3**2 + 0.002
    plain = [Curve.of(np.bincount(c, minlength=40).astype(float), np.arange(40.0)) for c in columns]
    worse = grow(codes, y[:, None], vtree=Vtree.balanced(2), curves=plain, fold=fold)
    assert np.mean((worse.circuit(codes) - truth) ** 2) > 5 * error


def test_rich_curves():
    counts = np.append(np.full(50, 3.0), 9.0)
    counts[[4, 30]] = 40.0, 20.0
    curve = Curve.of(counts, np.arange(50.0), single=np.ones(50, bool), max_rich=30)
    n, m = curve.rich.shape
    assert n == len(counts)
    assert m <= 31  # the value without a position has a parameter too
    atoms, bends = np.diag(curve.forms[1]), curve.forms[0]
    assert np.count_nonzero(atoms) == 2
    own = curve.rich[:, atoms > 0]
    assert [np.flatnonzero(column).tolist() for column in own.T] == [[4], [30]]
    line = np.append(np.linalg.lstsq(curve.rich[:50, : m - 3], np.arange(50.0), rcond=None)[0], 0)
    assert np.allclose(curve.rich[:50, : m - 3] @ line[:-1], np.arange(50.0))
    assert np.allclose(bends @ np.append(np.ones(m - 3), np.zeros(3)), 0.0)
    assert curve.groups[-1] == curve.n_groups - 1
    assert np.count_nonzero(curve.groups == curve.groups[-1]) == 1
    assert np.array_equal(curve.basis[-1], np.eye(curve.size)[-1])
    lean = Curve.of(counts[:50], np.arange(50.0), single=np.ones(50, bool), max_rich=10)
    assert np.array_equal(lean.rich, lean.basis)
    assert len(lean.forms) == 1
