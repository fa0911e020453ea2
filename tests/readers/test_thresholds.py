"""Raw numbers at which the answers to questions change, through transformers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import preprocessing as prep
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline

from expecta.readers import Unreadable
from expecta.readers.features import Features
from expecta.readers.forms import Question
from expecta.readers.thresholds import cut_points

RNG = np.random.default_rng(0)
NUMBERS = np.stack([np.round(RNG.uniform(1, 9, size=80)), RNG.gamma(2.0, size=80) + 0.1], axis=1)
FRAME = pd.DataFrame({"whole": NUMBERS[:, 0].astype(int), "any": NUMBERS[:, 1]})
KBINS = {"strategy": "quantile", "quantile_method": "averaged_inverted_cdf", "n_bins": 3}

CUTS = [
    [],
    [prep.StandardScaler()],
    [prep.StandardScaler(), prep.MinMaxScaler(clip=True)],
    [prep.RobustScaler(), prep.PowerTransformer()],
    [prep.QuantileTransformer(n_quantiles=30, output_distribution="normal")],
    [prep.KBinsDiscretizer(encode="ordinal", **KBINS)],
    [prep.MaxAbsScaler(), prep.Binarizer(threshold=0.1)],
    [prep.FunctionTransformer(np.log1p), prep.StandardScaler()],
    [prep.FunctionTransformer(np.sqrt), prep.FunctionTransformer(np.negative)],
    [SimpleImputer(), prep.FunctionTransformer(np.exp)],
]


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("steps", CUTS, ids=str)
def test_cut_points_to_the_last_bit(steps, framed):
    rows = FRAME if framed else NUMBERS
    steps = [make_pipeline(*steps).fit(rows)] if steps else []
    features = Features.read(steps, rows)
    low, high = NUMBERS[:, 1].min(), NUMBERS[:, 1].max()
    seen = np.unique(features(rows)[:, 1])
    thresholds = np.concatenate([seen[::5], (seen[:-1] + seen[1:])[::5] / 2, seen[[0, -1]]])
    questions = [Question(1, float(t), single=s) for t in thresholds for s in (False, True)]
    questions += [Question(1, float("inf")), Question(1, -1e9)]
    found = cut_points(features, 1, 1, questions, low, high)
    assert len(found) > 0
    assert np.all(np.diff(found) > 0)
    assert np.all((found >= low) & (found < high))
    # the ends, and both sides of every boundary, in order
    line = np.concatenate(
        [[low], np.stack([found, np.nextafter(found, np.inf)], 1).ravel(), [high]]
    )
    values = features.values(1, line)[:, 0]
    changes = np.array([np.diff(question.ask(values)) for question in questions])
    assert np.all(changes.sum(axis=1) == [q.ask(values)[0] != q.ask(values)[-1] for q in questions])
    assert not changes[:, ::2].any()  # between boundaries
    assert changes[:, 1::2].any(axis=0).all()


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False),
)
@settings(max_examples=50)
def test_cut_points_of_the_number_itself(threshold, low, high):
    low, high = min(low, high), max(low, high)
    features = Features.read([], np.zeros((1, 1)))
    found = cut_points(features, 0, 0, [Question(0, threshold)], low, high)
    assert found.tolist() == ([threshold] if low <= threshold < high else [])


def test_cut_points_cost():
    calls = []

    class Counted(Features):
        def values(self, column, values):
            calls.append(len(values))
            return super().values(column, values)

    features = Counted.read([], np.zeros((1, 1)))
    most = np.finfo(np.float64).max
    questions = [Question(0, t) for t in np.linspace(-5, 5, 101)]
    np.testing.assert_array_equal(
        cut_points(features, 0, 0, questions, -most, most), np.linspace(-5, 5, 101)
    )
    assert len(calls) <= 65


def test_cut_points_refusals():
    features = Features.read([prep.FunctionTransformer(np.square).fit(NUMBERS)], NUMBERS)
    with pytest.raises(ValueError, match="not known to rise"):
        cut_points(features, 0, 0, [Question(0, 1.0)], 0.0, 1.0)
    features = Features.read([prep.FunctionTransformer(np.log).fit(NUMBERS)], NUMBERS)
    with pytest.raises(ValueError, match="of column 1"):
        cut_points(features, 1, 0, [Question(0, 1.0)], 0.0, 1.0)
    with pytest.raises(Unreadable, match="NaN"):
        cut_points(features, 0, 0, [Question(0, 1.0)], -1.0, 1.0)
    scaled = make_pipeline(prep.FunctionTransformer(np.log), prep.StandardScaler()).fit(NUMBERS)
    with pytest.raises(Unreadable, match="infinity"):
        cut_points(Features.read([scaled], NUMBERS), 0, 0, [Question(0, 1.0)], 0.0, 1.0)
    with pytest.raises(ValueError, match="finite"):
        cut_points(features, 0, 0, [Question(0, 1.0)], 0.0, np.inf)
    with pytest.raises(ValueError, match="threshold"):
        cut_points(features, 0, 0, [Question(0, among=frozenset([1.0]))], 0.0, 1.0)
    assert cut_points(features, 0, 0, [], 0.0, 1.0).tolist() == []


@pytest.mark.parametrize("bins", [2, 4])
def test_cut_points_of_the_first_and_last_bin(bins):
    step = prep.KBinsDiscretizer(bins, strategy="uniform", subsample=None).fit(NUMBERS)
    features = Features.read([step], NUMBERS)
    edges = step.bin_edges_[1]
    for feature, edge in ((bins, edges[1]), (2 * bins - 1, edges[-2])):
        found = cut_points(features, 1, feature, [Question(feature, 0.5)], edges[0], edges[-1])
        assert found.tolist() == [np.nextafter(edge, -np.inf)]


def test_cut_points_of_columns_of_32_bits():
    rows = NUMBERS.astype(np.float32)
    features = Features.read([prep.StandardScaler().fit(rows)], rows)
    (found,) = cut_points(features, 1, 1, [Question(1, 0.3)], 0.0, 9.0)
    values = features.values(1, [found, np.nextafter(found, np.inf)])[:, 0]
    assert values[0] <= 0.3 < values[1]
    assert np.float32(found) != np.float32(np.nextafter(found, np.inf))


def test_each_of_several_columns():
    union = FeatureUnion([("s", prep.StandardScaler()), ("r", prep.RobustScaler())])
    ranges = {0: (1.0, 9.0), 1: (0.1, 6.0)}
    thresholds = np.random.default_rng(1).normal(size=(4, 9))
    for rows in (NUMBERS, FRAME):
        features = Features.read([union.fit(rows)], rows)
        for column, ends in ranges.items():
            for j, feature in enumerate(features.of(column).tolist()):
                questions = [
                    Question(feature, float(t), single=bool(i % 2))
                    for i, t in enumerate(thresholds[feature, : 9 - 2 * feature])
                ]
                cuts = cut_points(features, column, feature, questions, *ends)
                assert len(cuts)
                below = features.values(column, cuts)[:, j]
                above = features.values(column, np.nextafter(cuts, np.inf))[:, j]
                changes = [q.ask(below) != q.ask(above) for q in questions]
                assert np.any(changes, axis=0).all()
