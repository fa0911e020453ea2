"""A service over models of each kind, in files."""

from __future__ import annotations

import pytest

from served import make_models, serving


@pytest.fixture(scope="session")
def models():
    return make_models()


@pytest.fixture(scope="session")
def model_files(models, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    paths = {name: folder / f"{name}.expecta" for name in models}
    for name, model in models.items():
        model.save(paths[name])
    return paths


@pytest.fixture(scope="session")
def client(model_files):
    with serving(model_files) as client:
        yield client
