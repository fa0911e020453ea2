"""Load a model once per process, however many batches or partitions ask for it."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from os import PathLike
from threading import Lock
from typing import Any, TypeVar

from expecta.estimators.expected_estimator import ExpectedEstimator

Model = TypeVar("Model")

MAX_MODELS = 4  # that are kept, the last ones used

_models: OrderedDict[Hashable, Any] = OrderedDict()
_lock = Lock()


def load_once(path: str | PathLike[str]) -> ExpectedEstimator:
    """Return the model in a file, which is read again where the file has changed."""
    full = os.path.realpath(path)
    status = os.stat(full)
    version = (full, status.st_size, status.st_mtime_ns)
    return cached_model(version, lambda: ExpectedEstimator.load(path))


def cached_model(version: Hashable, load: Callable[[], Model]) -> Model:
    """Return the model of a version; it is loaded the first time, by one thread."""
    with _lock:
        if version not in _models:
            _models[version] = load()
            while len(_models) > MAX_MODELS:
                _models.popitem(last=False)
        _models.move_to_end(version)
        model: Model = _models[version]
        return model
