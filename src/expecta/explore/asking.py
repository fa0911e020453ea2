"""Questions about a model and groups of rows, as methods of estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from expecta.explore.subject import Subject

__all__ = ["Asking"]


class Asking:
    """What can be asked of a model with a density, beside predictions."""

    def _subject(self, of: Any = None) -> Subject:  # noqa: ANN401
        """Return what is asked about: one number that the model returns."""
        from expecta.explore.subjects import subject_of

        return subject_of(self, of)
