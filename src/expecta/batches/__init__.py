"""Tables larger than memory: predictions for streams of Arrow batches."""

from expecta.batches.predict_batches import predict_batches

__all__ = ["predict_batches"]
