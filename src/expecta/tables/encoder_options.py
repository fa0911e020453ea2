"""Check the encoder's options."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Floats
from expecta.common.checks import check_integer
from expecta.common.errors import DomainError
from expecta.common.text import suggestion
from expecta.tables.bins import METHODS
from expecta.tables.cell_options import DECIMALS, CellOptions
from expecta.tables.scalars import number

KINDS = {"categorical": "category", "numeric": "number", "dates": "date", "durations": "duration"}


@dataclass(frozen=True)
class EncoderOptions:
    """What to do with each column; an option that makes no sense is a ValueError."""

    max_bins: int | None  # None: by the number of values
    bins: Any
    max_categories: int | None  # None: by the number of rows
    kinds: Mapping[str, str]  # of the columns that the options of KINDS name
    cells: CellOptions
    thresholds: Mapping[str, Any]
    unseen: str
    missing_is_value: frozenset[str]

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> EncoderOptions:
        """Check the constructor's parameters by themselves."""
        max_bins = params["max_bins"]
        if max_bins is not None:
            max_bins = check_integer("max_bins", max_bins, 1)
        max_categories = params["max_categories"]
        if max_categories is not None:
            max_categories = check_integer("max_categories", max_categories, 2)
        bins, thresholds = params["bins"], params["thresholds"] or {}
        if not isinstance(thresholds, Mapping):
            raise ValueError(f"thresholds maps names of columns to numbers, not {thresholds!r:.60}")
        kinds, cells = _kinds(params), _cell_options(params)
        for method in bins.values() if isinstance(bins, Mapping) else [bins]:
            if isinstance(method, str) and method not in METHODS:
                raise ValueError(
                    f"bins is one of {METHODS}, a sequence of edges, or a mapping from columns to "
                    f"these, not {method!r:.60}"
                )
            if not isinstance(method, str | Sequence | np.ndarray):
                raise ValueError(f"the edges of bins must be a sequence, not {method!r:.60}")
        if params["unseen"] not in ("unknown", "error"):
            raise ValueError(f"unseen is 'unknown' or 'error', not {params['unseen']!r:.60}")
        names = frozenset(_names(params, "missing_is_value"))
        unseen = params["unseen"]
        return cls(max_bins, bins, max_categories, kinds, cells, thresholds, unseen, names)

    def check_names(self, names: Collection[str]) -> None:
        """Refuse options for columns that are not there."""
        bins = self.bins if isinstance(self.bins, Mapping) else {}
        by_kind = {o: [n for n in self.kinds if self.kinds[n] == KINDS[o]] for o in KINDS}
        for option, given in {
            "bins": bins,
            **by_kind,
            "thresholds": self.thresholds,
            "missing_is_value": self.missing_is_value,
        }.items():
            for name in given:
                if name not in names:
                    raise ValueError(
                        f"{option} names the column {name!r:.80}; "
                        + suggestion(name, names, "the table has")
                    )

    def method(self, name: str, kind: str, zone: str | None = None) -> str | npt.ArrayLike:
        """Return how to cut a column: the name of a method, or all edges in order."""
        method = self.bins
        if isinstance(method, Mapping):
            method = method.get(name, METHODS[0])
        if isinstance(method, str):
            return method
        edges = self._numbers(name, method, kind, zone)
        if len(edges) < 2 or not np.all(np.diff(edges) > 0):
            raise ValueError(f"the edges for column {name!r} must be two or more, and increase")
        return edges

    def cuts(self, name: str, kind: str, zone: str | None = None) -> Floats:
        """Return the thresholds of a column."""
        return self._numbers(name, self.thresholds.get(name, ()), kind, zone)

    def _numbers(self, name: str, given: Any, kind: str, zone: str | None) -> Floats:
        """Read edges; those of times may be microseconds, as bins have them."""
        times = (str, date, timedelta, np.datetime64, np.timedelta64)
        try:
            kinds = [kind if isinstance(value, times) else "number" for value in given]
            read = [number(value, k, zone) for value, k in zip(given, kinds, strict=True)]
            numbers = np.array(read, np.float64)
        except (TypeError, DomainError) as problem:
            raise ValueError(f"an edge or threshold for column {name!r}: {problem}") from None
        if not np.all(np.isfinite(numbers)):
            raise ValueError(f"the edges and thresholds for column {name!r} must be finite")
        return numbers


def _names(params: Mapping[str, Any], option: str) -> list[str]:
    """Return the columns that an option names."""
    given = params[option] or ()
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        raise ValueError(f"{option} is a list of names of columns, not {given!r:.60}")
    return list(given)


def _kinds(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the kind of every column that an option names."""
    kinds: dict[str, str] = {}
    for option, kind in KINDS.items():
        for name in _names(params, option):
            if kinds.setdefault(name, kind) != kind:
                raise ValueError(f"column {name!r} cannot be both {kinds[name]} and {kind}")
    return kinds


def _cell_options(params: Mapping[str, Any]) -> CellOptions:
    na, dates, decimal = params["na"] or (), params["dates"] or {}, params["decimal"]
    if isinstance(na, str | bytes) or not all(isinstance(one, str | int | float) for one in na):
        raise ValueError(f"na is a list of texts and numbers that mean missing, not {na!r:.60}")
    if decimal not in DECIMALS:
        raise ValueError(f"decimal is one of {DECIMALS}, not {decimal!r:.60}")
    formats = dict(dates) if isinstance(dates, Mapping) else dict.fromkeys(dates)
    if not all(form is None or isinstance(form, str) for form in formats.values()):
        raise ValueError(f"dates maps columns to formats such as '%d/%m/%Y', not {dates!r:.60}")
    return CellOptions(tuple(na), decimal, frozenset(_names(params, "numeric")), formats)
