"""Circuits and vtrees in files, and the declarations that all of Expecta's files are made of.

The text formats of the field (``.vtree``, ``.psdd``, and ``.glc`` or ``.circuit``) hold
Boolean circuits, each beside the ``.vtree`` it belongs to. Expecta's own format holds anything
in one file. What is written goes by the ending, what is read by the content. A file that is
damaged or hostile gives a :class:`~expecta.common.errors.FormatError` that says where and why;
saving is atomic.
"""

from expecta.files.circuit_files import load, save

__all__ = ["load", "save"]
