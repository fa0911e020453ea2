"""Models of each kind, and their files."""

from __future__ import annotations

import pytest

from served import make_models


@pytest.fixture(scope="session")
def models():
    return make_models()


@pytest.fixture(scope="session")
def cost_file(models, tmp_path_factory):
    path = tmp_path_factory.mktemp("batches") / "cost.expecta"
    models["cost"].save(path)
    return path
