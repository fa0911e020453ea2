"""Models of each kind, for frames."""

from __future__ import annotations

import pytest

from served import make_models


@pytest.fixture(scope="session")
def models():
    return make_models()
