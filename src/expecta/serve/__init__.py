"""Answer over HTTP: predictions for incomplete rows, and questions, of models in files."""

from expecta.serve.serve_options import ServeOptions
from expecta.serve.web_app import app

__all__ = ["ServeOptions", "app"]
