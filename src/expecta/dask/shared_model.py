"""Send a model to workers once, and load it there once."""

from __future__ import annotations

import hashlib
import os
from copy import copy
from os import PathLike
from pickle import HIGHEST_PROTOCOL, dumps, loads
from typing import Any, NamedTuple

from dask import delayed
from expecta.batches.model_cache import cached_model, load_once
from expecta.estimators.expected_estimator import ExpectedEstimator


class SharedModel(NamedTuple):
    """A model as bytes, under a key that is the same for the same bytes; or the path of its file.

    In a graph it is one node, which Dask sends to each worker once and makes again when a worker
    is lost. A worker process loads it once, for all of its tasks.
    """

    key: str
    data: bytes | None
    path: str | None = None

    @classmethod
    def of(cls, model: Any) -> SharedModel:
        """Prepare a model, without its training rows: predictions need none.

        A path is that of a file which every worker can read.
        """
        if isinstance(model, str | PathLike):
            path = os.path.abspath(model)
            status = os.stat(path)
            text = f"{path} {status.st_size} {status.st_mtime_ns}"
            return cls(hashlib.sha256(text.encode()).hexdigest(), None, path)
        if isinstance(model, ExpectedEstimator):
            model = copy(model)
            model.training_rows_ = model.group_sums_ = None
            if wrapped := getattr(model, "wrapped_", None):
                model.wrapped_ = copy(wrapped)
                model.wrapped_.training_rows = None
        data = dumps(model, protocol=HIGHEST_PROTOCOL)
        return cls(hashlib.sha256(data).hexdigest(), data)

    def load(self) -> Any:
        """Return the model."""
        if self.path is not None:
            return load_once(self.path)
        data = self.data
        assert data is not None
        return cached_model(self.key, lambda: loads(data))

    def node(self) -> Any:
        """Return the node of a graph that holds it."""
        return delayed(self, name=f"expecta-model-{self.key[:32]}", pure=True, traverse=False)
