"""Cut the bins of a fitted encoder into finer ones.

The old edges all stay, so that a new bin lies in one old bin and a finer encoding says
all that the coarser one did.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import DomainError
from expecta.tables.bins import Sample, bin_edges, edges_after
from expecta.tables.cells import Cells
from expecta.tables.column import Column, MissingIsValueColumn
from expecta.tables.column_notes import ColumnNotes
from expecta.tables.encoder import Encoder
from expecta.tables.encoder_options import EncoderOptions
from expecta.tables.estimator_inputs import read_weights
from expecta.tables.number_column import NumberColumn, fit_numbers
from expecta.tables.table import Table, check_size, find_columns

EMPTY_WEIGHT = 0.5  # what the empty new bins of an old bin weigh together at most, in rows
MIN_WIDTH = 1e-9  # part of the width of a bin that a new one counts as at least
MAX_STEPS = 48  # halvings in search of the weight of a bin


def refine_encoder(
    encoder: Encoder,
    X: Any,
    max_bins: int,
    thresholds: Mapping[str, Any] | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> tuple[Encoder, list[Floats]]:
    """Return an encoder with finer bins, and the share of its old bin that each new one has.

    Cuts lie between numbers of ``X`` that share an old bin: a number that weighs as much as
    a bin has its own, and the others fall in bins of about equal weight. Not more than
    ``max_bins`` bins come of it, but for those that only ``thresholds`` add; up to so many
    distinct numbers are all kept apart (old bins that hold none count as one each). Without
    ``X`` only thresholds cut.

    The share of a new bin is that of the weight of X's numbers in the old bin. One that
    holds none weighs as much as half a row of average weight, times its part of the old
    bin's width. Where X has no numbers in an old bin, its own are taken to lie as
    :meth:`Encoder.where` takes them. Old bins that are not cut stay as they are, and
    so does what is not a column of numbers; the counts of the new bins sum to the old ones, and
    their means average to the old mean: they are moved inside the bins, where the shares
    alone do not make it so, as far as the bins allow.

    Returns
    -------
    encoder, shares
        ``shares`` has an array for every column, of as many numbers as it has values; those
        of the new bins of an old one sum to 1. Cost: sorting the columns of numbers, and
        at most 48 passes over their distinct numbers.
    """
    params = encoder.get_params(deep=False)
    options = EncoderOptions.from_params({**params, "max_bins": max_bins, "thresholds": thresholds})
    if options.max_bins is None:
        raise ValueError("max_bins is a whole number of at least 1, not None")
    wanted = {str(name): numbers for name, numbers in options.thresholds.items()}
    options = replace(options, thresholds=wanted)
    for name in wanted:
        if encoder.column(name).plain.kind == "category":
            raise DomainError(
                f"column {name!r} holds categories, which cannot be divided by thresholds"
            )
    table, weight = _rows(X, sample_weight, encoder)
    positions = [] if table is None else find_columns(table, encoder)
    columns: list[Column] = list(encoder.columns_)
    shares: list[Floats] = [np.ones(column.cardinality) for column in columns]
    for variable, whole in enumerate(encoder.columns_):
        column = whole.plain
        if isinstance(column, NumberColumn):
            kind, zone = column.kind, column.zone
            cuts = options.cuts(column.name, kind, zone)
            numbers: Floats = np.zeros(0)
            if table is not None:
                numbers = table.column(positions[variable]).as_numbers(kind, zone)
            new, share = _refine(column, numbers, weight, max_bins, cuts)
            if isinstance(whole, MissingIsValueColumn):
                columns[variable] = MissingIsValueColumn.from_known(new, float(whole.counts[-1]))
                shares[variable] = np.append(share, 1.0)
            else:
                columns[variable], shares[variable] = new, share
    known = encoder.thresholds or {}
    both = {name: [*known.get(name, ()), *numbers] for name, numbers in wanted.items()}
    fine: Encoder = copy(encoder).set_params(
        max_bins=encoder.max_bins if table is None else max(encoder.max_bins or 1, max_bins),
        thresholds={**known, **both} or encoder.thresholds,
    )
    fine._set(encoder.source_, columns, encoder.notes_)
    return fine, shares


def _rows(
    X: Any, sample_weight: npt.ArrayLike | None, encoder: Encoder
) -> tuple[Table | None, Floats]:
    """Read the rows to cut by, and how much each counts."""
    if X is None:
        if sample_weight is not None:
            raise DomainError("sample_weight is how much the rows of X count; pass X too")
        return None, np.zeros(0)
    table = encoder.read(X)
    check_size(table)
    weight = read_weights(sample_weight, table.n_rows)
    if not np.any(weight > 0):
        raise DomainError("all weights are zero, so there is nothing to choose bins by")
    return table, weight


def coarse_codes(fine: Encoder, coarse: Encoder) -> list[Ints]:
    """Return for every column which value of the coarse encoder each of the fine one lies in.

    >>> table = {"age": [31, 35, 54, 60], "smoker": ["no", "yes", "no", "yes"]}
    >>> coarse = Encoder(max_bins=2).fit(table)
    >>> fine, shares = refine_encoder(coarse, table, max_bins=3)
    >>> [codes.tolist() for codes in coarse_codes(fine, coarse)]
    [[0, 0, 1], [0, 1]]
    """
    if fine.feature_names_in_.tolist() != coarse.feature_names_in_.tolist():
        raise DomainError("the two encoders have different columns")
    lookups: list[Ints] = []
    for finer, whole in zip(fine.columns_, coarse.columns_, strict=True):
        new, old = finer.plain, whole.plain
        numbers = isinstance(new, NumberColumn) and isinstance(old, NumberColumn)
        same = np.all(np.isin(old.edges, new.edges)) if numbers else _same(new, old)
        if not same or type(finer) is not type(whole):
            raise DomainError(f"the values of column {new.name!r} are not finer than the others")
        codes = _lookup(new.edges, old.edges) if numbers else np.arange(new.cardinality)
        extra = whole.cardinality - old.cardinality  # "missing", where it is a value
        lookups.append(np.append(codes, old.cardinality + np.arange(extra)))
    return lookups


def _same(new: Column, old: Column) -> bool:
    """Whether two columns that are not numbers have the same values."""
    return (new.kind, new.cardinality, new.values) == (old.kind, old.cardinality, old.values)


def _lookup(new: Floats, old: Floats) -> Ints:
    """Return the old bin of each new one, from their edges."""
    return np.append(0, np.searchsorted(old, new, side="right"))


# -- where to cut -------------------------------------------------------------------------


def _line(edges: Floats) -> Floats:
    """Return all edges, the outer two included."""
    return np.concatenate([[-np.inf], edges, [np.inf]])


def _finer(sample: Sample, old: Floats, max_bins: int, thresholds: Floats) -> Floats:
    """Return the old edges, those of the thresholds, and such as divide the sample evenly."""
    fixed = bin_edges(sample, _line(old), max_bins, thresholds)
    if not len(sample.values):
        return fixed
    cell = np.searchsorted(fixed, sample.values, side="right")
    held = np.unique(np.searchsorted(old, sample.values, side="right"))
    apart = cell[1:] != cell[:-1]
    wanted = _apart(sample.mass, apart, max_bins - (len(old) + 1 - len(held)))
    return np.union1d(fixed, edges_after(sample, np.append(wanted & ~apart, True)))


def _apart(mass: Floats, apart: Bools, max_bins: int) -> Bools:
    """Return which neighbours to keep apart so that bins weigh about the same.

    ``apart`` are those that must be. The smallest weight per bin that gives at most ``max_bins``
    bins is found by halving: values above it are alone, and a run of others between two
    cuts is divided evenly into as few bins as it takes. Of equal runs the first is divided
    first, so that ties do not waste bins.
    """
    if len(mass) <= max_bins:
        return np.ones(len(apart), np.bool_)
    best, too_small, enough = apart, float(np.min(mass)), float(np.sum(mass))
    middle = np.cumsum(mass) - mass / 2
    for _ in range(MAX_STEPS):
        if np.count_nonzero(best) + 1 >= max_bins:
            break
        share = np.sqrt(too_small) * np.sqrt(enough)
        heavy = mass > share
        ends = apart | heavy[1:] | heavy[:-1]
        start = np.append(0, np.flatnonzero(ends) + 1)
        run = np.append(0, np.cumsum(ends))
        total = np.add.reduceat(mass, start)
        begin = middle[start] - mass[start] / 2
        bins = np.ceil(total / share * np.linspace(1.0, 1 - 1e-6, len(start)))
        slot = np.floor((middle - begin[run]) / total[run] * bins[run])
        trial = ends | (slot[1:] != slot[:-1])
        if np.count_nonzero(trial) + 1 <= max_bins:
            best, enough = trial, share
        else:
            too_small = share
    return best


# -- what the new bins hold -------------------------------------------------------------------


def _refine(
    old: NumberColumn, numbers: Floats, weight: Floats, max_bins: int, thresholds: Floats
) -> tuple[NumberColumn, Floats]:
    """Cut one column finer; returns it and the share of its old bin that each bin has."""
    sample = Sample.from_numbers(numbers, weight)
    edges = _finer(sample, old.edges, max_bins, thresholds)
    if len(edges) == len(old.edges):
        return old, np.ones(old.cardinality)
    bin_of = _lookup(edges, old.edges)
    bare = np.ones(old.cardinality, np.bool_)
    bare[np.searchsorted(old.edges, sample.values, side="right")] = False
    values, mass = _spread(old, edges, bin_of, np.flatnonzero(bare[bin_of]))
    row = float(np.mean(weight[weight > 0])) if len(weight) else 1.0
    cells = Cells(old.name, old.kind, old.dtype, np.append(numbers, values), zone=old.zone)
    heavy, none = np.append(weight, mass), np.zeros(0)
    new = fit_numbers(cells, old.kind, heavy, _line(edges), max_bins, none, ColumnNotes())
    assert new is not None  # what is bare was filled
    scale = old.counts / np.bincount(bin_of, new.counts)
    half = new.highs / 2 - new.lows / 2
    even = np.sqrt(half / 3) * np.sqrt(half + old.step)
    stds = np.where(bare[bin_of], even, new.stds)
    whole = (np.bincount(bin_of) == 1)[bin_of]
    lows = np.where(whole, old.lows[bin_of], new.lows)
    highs = np.where(whole, old.highs[bin_of], new.highs)
    means = np.where(whole, old.means[bin_of], new.means)
    shares = _shares(new.counts, bin_of, EMPTY_WEIGHT * row * _widths(old, edges, bin_of))
    steps = sample.values / (old.step or 1.0)
    column = replace(
        new,
        counts=new.counts * scale[bin_of],
        means=_moved(means, lows, highs, shares, bin_of, old.means),
        stds=np.where(whole, old.stds[bin_of], stds),
        lows=lows,
        highs=highs,
        step=old.step if np.all(np.rint(steps) == steps) else 0.0,
    )
    return column, shares


def _spread(old: NumberColumn, edges: Floats, bin_of: Ints, new: Ints) -> tuple[Floats, Floats]:
    """Return the ends of what some new bins hold of old ones, whose numbers X does not have.

    Each end has half of the weight. An old bin that held nothing counts as one number.
    """
    line, bins = _line(edges), bin_of[new]
    start, end = line[new], line[new + 1]
    pieces = zip(start.tolist(), end.tolist(), bins.tolist(), strict=True)
    with np.errstate(over="ignore"):  # an end that lies far beyond tiny numbers
        part = np.array([old.between(a, b, closed="left")[j] for a, b, j in pieces], np.float64)
    low = np.maximum(old.lows[bins], start)
    high = np.minimum(old.highs[bins], np.nextafter(end, -np.inf))
    if old.step:
        point = old.lows[bins] == old.highs[bins]  # which need be no step where nothing was
        low = np.where(point, low, np.ceil(low / old.step) * old.step)
        high = np.where(point, high, np.floor(high / old.step) * old.step)
    mass = part * np.where(old.counts > 0, old.counts, 1.0)[bins]
    kept = (mass > 0) & (low <= high)
    return np.append(low[kept], high[kept]), np.tile(mass[kept] / 2, 2)


def _widths(old: NumberColumn, edges: Floats, bin_of: Ints) -> Floats:
    """Return the part of its old bin's width that each new one has; none has nothing."""
    line = _line(edges)
    line[0] = min(float(old.lows[0]), edges[0])
    line[-1] = max(float(old.highs[-1]), edges[-1])
    half = line / 2  # so that no difference overflows
    wide = np.diff(half)
    whole = np.bincount(bin_of, wide)[bin_of]
    return np.maximum(wide / np.where(whole > 0, whole, 1.0), MIN_WIDTH)


def _shares(counts: Floats, bin_of: Ints, empty: Floats) -> Floats:
    """Return the share of its old bin that each new one has; what holds nothing is ``empty``."""
    filled = np.where(counts == 0, empty, counts)
    return filled / np.bincount(bin_of, filled)[bin_of]


def _moved(
    means: Floats, lows: Floats, highs: Floats, shares: Floats, bin_of: Ints, wanted: Floats
) -> Floats:
    """Move means inside their bins, all the same part of the way, to average as wanted."""
    scale = max(float(np.max(np.abs([lows, highs]))), 1e-300)
    unit = means / scale
    gap = wanted / scale - np.bincount(bin_of, shares * unit)
    way = np.where((gap > 0)[bin_of], highs, lows) / scale - unit
    reach = np.bincount(bin_of, shares * way)
    with np.errstate(over="ignore"):
        part = np.clip(gap / np.where(reach == 0, np.inf, reach), 0.0, 1.0)
    part[part < 1e-12] = 0.0  # no more than rounding
    return np.clip(
        np.where(part[bin_of] > 0, (unit + part[bin_of] * way) * scale, means), lows, highs
    )
