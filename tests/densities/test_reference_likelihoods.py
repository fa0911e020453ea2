"""Densities on the paper's data: test log-likelihoods that must not be lost again."""

from __future__ import annotations

import numpy as np
import pytest

from expecta import LatentTree

MARKS = {"insurance": -8.65, "abalone": -9.40, "delta-ailerons": -7.82}


@pytest.mark.parametrize("name", MARKS)
def test_a_latent_tree_reaches_the_mark(data, name):
    with np.load(data / "splits" / f"{name}.npz") as file:
        train, valid, test = (
            file[f"x_{part}"].astype(np.int8) for part in ("train", "valid", "test")
        )
    density = LatentTree(states=(8, 16, 32, 64)).fit(train, valid)
    assert density.score(test) > MARKS[name]
    assert density.circuit.properties.normalised.holds
