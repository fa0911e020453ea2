"""Metrics of probabilities, as scikit-learn has them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from expecta.report.class_metrics import ClassMetrics


@pytest.mark.parametrize("classes", [2, 3])
def test_metrics_are_those_of_scikit_learn(classes):
    rng = np.random.default_rng(classes)
    probability = rng.dirichlet(np.ones(classes), 400).round(2) + 1e-3  # with ties
    probability /= probability.sum(axis=1, keepdims=True)
    happened = (rng.random((400, 1)) > np.cumsum(probability, axis=1)).sum(axis=1)
    metrics = ClassMetrics.of(probability, happened)
    assert metrics.log_loss == pytest.approx(log_loss(happened, probability))
    first = 1 if classes == 2 else 0
    each = [(probability[:, k], happened == k) for k in range(first, classes)]
    assert metrics.auc == pytest.approx(np.mean([roc_auc_score(y, p) for p, y in each]))
    assert metrics.brier == pytest.approx(np.mean([brier_score_loss(y, p) for p, y in each]))
    assert metrics.calibration_error < 0.1  # of probabilities that are right


def test_probabilities_that_are_off_are_not_calibrated():
    rng = np.random.default_rng(0)
    p = rng.random(5000)
    happened = (rng.random(5000) < p).astype(int)
    right = ClassMetrics.of(np.stack([1 - p, p], axis=1), happened)
    bold = p**3 / (p**3 + (1 - p) ** 3)
    wrong = ClassMetrics.of(np.stack([1 - bold, bold], axis=1), happened)
    assert right.calibration_error < 0.02
    assert wrong.calibration_error > 0.1
    assert wrong.auc == pytest.approx(right.auc)
    assert wrong.log_loss > right.log_loss


def test_a_single_class_has_no_auc():
    metrics = ClassMetrics.of(np.tile([0.4, 0.6], (10, 1)), np.ones(10, int))
    assert np.isnan(metrics.auc)
    assert metrics.brier == pytest.approx(0.16)
