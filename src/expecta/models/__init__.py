"""Other people's models: readers, routes to their expectations, and the predictor."""

from expecta.models.predictor import ExpectedPredictor

__all__ = ["ExpectedPredictor"]
