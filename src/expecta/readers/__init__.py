"""Read other people's fitted models: one file per library.

A reader is a function ``read(model, categories=None) -> Form | None``. It returns None if
the model is of another kind, the model as a :class:`~expecta.readers.forms.Form` (a linear
function or a sum of trees, its link and its classes) if it can be written as one, and raises
:class:`Unreadable` with the reason if it cannot: the model is sampled then. A model is opened
once: where trees see the positions of categories in lists, the form holds these lists.
``categories`` are the values of the columns that hold categories, by position of the column,
for libraries that do not keep them; most readers have no use for them. A reader imports
nothing of its library: it looks at names of classes
(:func:`~expecta.readers.library_class.library_class`), so that no library need be installed, and
it reads a model only if the methods that run are the library's own.

To add a model, write such a file and name its function in ``READERS`` of ``read_model.py``.
Pipelines, searches and transformed targets are taken off before (``unwrap.py``), and which
raw column each feature comes from is found out afterwards (``features.py``).
"""

from __future__ import annotations

__all__ = ["Unreadable"]


class Unreadable(Exception):  # noqa: N818 -- an answer, not an error: the caller samples instead
    """Says why a model cannot be written as trees or as a linear function."""
