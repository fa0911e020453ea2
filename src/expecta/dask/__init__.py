"""Dask frames (``expecta[dask]``): what estimators and densities answer, on many machines.

Answers are lazy: results are Dask frames, or have ``compute``. Learning is not.
"""

try:
    import dask.dataframe  # noqa: F401
except ModuleNotFoundError as problem:
    raise ModuleNotFoundError(
        "Dask frames need Dask: pip install 'expecta[dask]'", name=problem.name
    ) from None

from expecta.dask.frame_learning import fit
from expecta.dask.frame_scoring import (
    ask,
    predict,
    predict_interval,
    predict_proba,
    score_samples,
)

__all__ = ["ask", "fit", "predict", "predict_interval", "predict_proba", "score_samples"]
