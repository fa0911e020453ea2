"""Keep counts and sums over groups of training rows, in place of the rows.

For every column, and every two columns while there are not too many, the values are divided into
groups, and each cell (a group, or a combination of two) holds how many rows it has, their weights,
and the weighted sums of the target and its square, and of the model's outputs and their squares.
Every cell has no row or at least `MIN_ROWS`.
The cells of two columns are a grid, so that no smaller ones follow from the differences between
cells and the margins. Rows in which a column is missing are in no cell of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from expecta.common.arrays import Bools, Floats, Ints
from expecta.common.errors import DomainError
from expecta.files import schema
from expecta.tables.encoder import Encoder
from expecta.tables.number_column import NumberColumn
from expecta.tables.training_rows import Average, TrainingRows, average_from_sums

MIN_ROWS = 5  # of a cell that is not empty
MAX_GROUPS = 256  # of a column by itself
MAX_PAIR_GROUPS = 32  # of a column beside another
MAX_NUMBERS = 1 << 18  # sums of all pairs of columns: two megabytes
MAX_ROWS = 1e15  # that make sense
MAX_CREDIBILITY = 100.0  # numbers of how far a density is typically off
MAX_WORK = 200_000_000  # rows times pairs of columns, which are left out beyond


class GroupTotals(NamedTuple):
    """Counts and sums over some parts of the training rows."""

    rows: Floats  # (parts,)
    weight: Floats
    weight_squares: Floats
    sums: Floats  # (parts, outcomes)
    squares: Floats
    output_sums: Floats  # (parts, outputs)
    output_squares: Floats
    exact: Bools  # whether each part is made of whole cells


@dataclass(frozen=True, eq=False)
class GroupTable:
    """Sums over the cells of no column, one or two.

    Attributes
    ----------
    variables, groups
        The columns, and for each the group of every code, -1 for one that no training row has.
    rows, weight, weight_squares
        How many rows each cell has, the sum of their weights, and of the weights' squares.
    sums, squares
        The sum over each cell of weight times outcome less its centre, and of weight times the
        square of that.  # (cells, outcomes)
    output_sums, output_squares
        The same of the model's outputs.  # (cells, outputs)
    """

    variables: tuple[int, ...]
    groups: tuple[Ints, ...]
    rows: Floats
    weight: Floats
    weight_squares: Floats
    sums: Floats
    squares: Floats
    output_sums: Floats
    output_squares: Floats

    @property
    def cell(self) -> Ints:
        """The cell of every combination of codes, -1 for one that no training row has."""
        return _combined(self.groups)

    def divide(
        self, counts: Sequence[Floats], part: Ints, share: Floats, n_parts: int
    ) -> GroupTotals:
        """Return the totals of parts, each made of combinations of codes by their share.

        A cell that is divided counts by how common the codes in it are.

        Parameters
        ----------
        counts
            How common each code of each column is.
        part, share
            The part of every combination of codes, -1 for none, and how much of it is in there.
        n_parts
            How many parts there are.
        """
        cell, part, share = self.cell.ravel(), part.ravel(), share.ravel()
        mass = np.ones(1)
        for count in counts:
            mass = np.multiply.outer(mass, count + 1e-9 * max(float(count.max()), 1.0))
        mass = np.where(cell >= 0, mass.ravel(), 0.0)
        whole = np.bincount(np.maximum(cell, 0), mass, len(self.rows))
        inside = (part >= 0) & (share > 0) & (cell >= 0)
        at, into = cell[inside], part[inside]
        taken = mass[inside] * share[inside] / whole[at]

        def total(values: Floats) -> Floats:
            columns = values.reshape(len(values), -1).T
            return _sum_by(into, [taken * column[at] for column in columns], n_parts)

        return GroupTotals(
            total(self.rows)[:, 0],
            total(self.weight)[:, 0],
            total(self.weight_squares)[:, 0],
            total(self.sums),
            total(self.squares),
            total(self.output_sums),
            total(self.output_squares),
            self._exact(np.where(inside, part, -1), share, n_parts),
        )

    def _exact(self, part: Ints, share: Floats, n_parts: int) -> Bools:
        cell = self.cell.ravel()
        known = cell >= 0
        cell, part, share = cell[known], part[known], share[known]
        lowest = np.full(len(self.rows), n_parts)
        highest = np.full(len(self.rows), -1)
        np.minimum.at(lowest, cell, part)
        np.maximum.at(highest, cell, part)
        mixed = (lowest != highest)[cell] | ((part >= 0) & (share < 1)) & (self.rows[cell] > 0)
        exact = np.ones(n_parts, np.bool_)
        exact[part[mixed & (part >= 0) & (self.rows[cell] > 0)]] = False
        return exact


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Counts and sums of training rows by groups of values.

    Attributes
    ----------
    name, n_rows
        What the target is called, and how many training rows there were.
    center
        What is taken off each outcome before it is summed: the mean of a target of numbers. The
        outcomes are the target, or for classes whether it is each of them; none without a target.
    missing
        For each column the share of the rows, by weight, in which it is missing.
    tables
        The sums by columns: of all rows for none, of each column, and of pairs.
    counts
        How common each code of each column is, which divides a cell that a question divides.
    output_center
        What is taken off each output of the model before it is summed: its mean. None where the
        model has no output for some row.
    credibility
        How far the density's means over groups are typically off, for each output: bias, spread
        and shared of `expecta.ask.credibility.Credibility`.  # (outputs, 3)
    """

    name: str
    n_rows: int
    center: Floats
    missing: Floats
    tables: Mapping[tuple[int, ...], GroupTable]
    counts: tuple[Floats, ...]
    output_center: Floats
    credibility: Floats

    @classmethod
    def from_rows(
        cls,
        training: TrainingRows,
        encoder: Encoder,
        n_classes: int | None,
        outputs: Floats,
        credibility: Floats,
    ) -> GroupSums | None:
        """Sum over training rows, and the model's outputs for them; None for fewer than five.

        Cost: a pass over the rows for each pair of columns.
        """
        used = training.weight > 0
        if used.sum() < MIN_ROWS:
            return None
        weight, columns = training.weight[used], encoder.columns_
        codes = [training.codes(column, v)[used] for v, column in enumerate(columns)]
        outcomes, center = _outcomes(training, used, n_classes)
        outputs = outputs[used]
        if np.any(np.isnan(outputs)):
            outputs = outputs[:, :0]
        output_center = weight @ outputs / weight.sum()
        ordered = [isinstance(column.plain, NumberColumn) for column in columns]

        rows = _Rows(codes, weight, outcomes, outputs - output_center)
        tables: dict[tuple[int, ...], GroupTable] = {(): rows.table((), ())}
        fine: dict[int, Ints] = {}
        for v, column in enumerate(columns):
            counts = np.bincount(codes[v][codes[v] >= 0], minlength=column.cardinality)
            if counts.sum() >= MIN_ROWS:
                fine[v] = _divide_values(counts, ordered[v], MAX_GROUPS)
                tables[v,] = rows.table((v,), (fine[v],))
        n_pairs = len(fine) * (len(fine) - 1) // 2
        n_groups = _pair_groups(n_pairs, len(weight), outcomes.shape[1] + outputs.shape[1])
        coarse: dict[int, Ints] = {}
        for v, group in fine.items() if n_groups > 1 else ():
            # groups of groups: else smaller ones would be the differences between the two
            larger = _divide_values(tables[v,].rows.astype(np.int64), ordered[v], n_groups)
            coarse[v] = np.where(group >= 0, larger[group], -1)
        for a, b in combinations(coarse, 2):
            grid = _grid((coarse[a], coarse[b]), (codes[a], codes[b]))
            if grid is not None:
                tables[a, b] = rows.table((a, b), grid)
        missing = [float(weight[of_row < 0].sum() / weight.sum()) for of_row in codes]
        return cls(
            training.name,
            len(training),
            center,
            np.array(missing),
            tables,
            tuple(column.counts for column in columns),
            output_center,
            credibility,
        )

    def __len__(self) -> int:
        return self.n_rows

    def average(self, totals: GroupTotals, part: int, of_class: int | None) -> Average | None:
        """Return the average of a target over a part; None for fewer than two rows."""
        if not len(self.center) or round(float(totals.rows[part])) < 2:
            return None
        index = of_class or 0
        return average_from_sums(
            float(totals.weight[part]),
            float(totals.weight_squares[part]),
            float(totals.sums[part, index]),
            float(totals.squares[part, index]),
            float(self.center[index]),
            of_class is not None,
        )

    def missing_share(self, variable: int) -> float:
        """Return the share of the rows, by weight, in which a column is missing."""
        return float(self.missing[variable])

    def class_shares(self, n_classes: int) -> Floats | None:
        """Return the share of each class in the target; None without a target."""
        counts = self.tables[()].sums[0]
        return counts / counts.sum() if len(counts) == n_classes else None

    @classmethod
    def from_file(
        cls, fields: Mapping[str, Any], encoder: Encoder, n_classes: int | None
    ) -> GroupSums:
        """Make sums of what a file holds, or raise a DomainError that says what is wrong."""
        n_outcomes = len(fields["center"])
        if n_outcomes not in (0, 1 if n_classes is None else n_classes):
            raise DomainError("its sums of training rows have other outcomes than its target")
        if len(fields["missing"]) != len(encoder.columns_):
            raise DomainError("its sums of training rows have other columns than its density")
        n_outputs = len(fields["output_center"])
        learned = fields["credibility"]
        if learned.shape[1] != 3 or n_outputs not in (0, len(learned)):
            raise DomainError("its sums of training rows have other outputs than its model")
        if np.any(learned[:, :2] <= 0) or np.any(np.abs(learned[:, 2]) > 1):
            raise DomainError("its density is said to be off in a way that none can be")
        tables: dict[tuple[int, ...], GroupTable] = {}
        for one in fields["tables"]:
            table = _table(one, encoder.cardinalities_, n_outcomes, n_outputs)
            tables[table.variables] = table
        if () not in tables or len(tables) < len(fields["tables"]):
            raise DomainError("its sums of training rows lack the total, or name columns twice")
        counts = tuple(column.counts for column in encoder.columns_)
        names = ("name", "n_rows", "center", "missing", "output_center", "credibility")
        made = {key: fields[key] for key in names}
        return cls(**made, tables=tables, counts=counts)


def _table(
    fields: dict[str, Any], cardinalities: Ints, n_outcomes: int, n_outputs: int
) -> GroupTable:
    variables, groups = tuple(fields["variables"].tolist()), tuple(fields["groups"])
    good = len(variables) == len(groups) <= 2 and list(variables) == sorted(set(variables))
    good = good and all(v < len(cardinalities) for v in variables)
    good = good and all(
        len(group) == cardinalities[v] and 0 <= group.max() < len(group)
        for v, group in zip(variables, groups, strict=True)
    )
    n_cells = int(np.prod([float(group.max() + 1) for group in groups])) if good else -1
    shapes = (("sums", n_outcomes), ("output_sums", n_outputs))
    good = all(fields[name].shape[1] == size for name, size in shapes)
    if len(fields["rows"]) != n_cells or not good:
        raise DomainError("its sums of training rows are not those of their groups")
    if np.any((fields["rows"] > 0) & ~((fields["weight"] > 0) & (fields["weight_squares"] > 0))):
        raise DomainError("its sums of training rows have rows without weight")
    return GroupTable(variables, groups, **{key: fields[key] for key in _TOTALS})


_TOTALS = (
    *("rows", "weight", "weight_squares", "sums", "squares"),
    *("output_sums", "output_squares"),
)
_SUMS = schema.Array("float64", "cells", low=0)
# What they are the sums of is known to an encoder: what is read is for GroupSums.from_file.
GROUP_SUMS = schema.Record(
    {
        "name": schema.Scalar(str),
        "n_rows": schema.Scalar(int, low=1, high=MAX_ROWS),
        "center": schema.Array("float64", "outcomes"),
        "missing": schema.Array("float64", None, low=0, high=1),
        "tables": schema.Many(
            schema.Record(
                {
                    "variables": schema.Array("int64", None, low=0),
                    "groups": schema.Many(schema.Array("int32", None, low=-1)),
                    "rows": _SUMS,
                    "weight": _SUMS,
                    "weight_squares": _SUMS,
                    "sums": schema.Array("float64", "cells", None),
                    "squares": schema.Array("float64", "cells", None, low=0),
                    "output_sums": schema.Array("float64", "cells", None),
                    "output_squares": schema.Array("float64", "cells", None, low=0),
                }
            )
        ),
        "output_center": schema.Array("float64", None),
        "credibility": schema.Array("float64", None, None, low=-1, high=MAX_CREDIBILITY),
    },
    parts=lambda sums: {**vars(sums), "tables": list(sums.tables.values())},
)


def _outcomes(training: TrainingRows, used: Bools, n_classes: int | None) -> tuple[Floats, Floats]:
    """Return what is summed for each row, less its centre; and the centres."""
    if training.target is None:
        return np.zeros((int(used.sum()), 0)), np.zeros(0)
    target = training.target[used]
    if n_classes is not None:
        return (target[:, None] == np.arange(n_classes)).astype(np.float64), np.zeros(n_classes)
    center = np.average(target, weights=training.weight[used], keepdims=True)
    return target[:, None] - center, center


TrainingData: TypeAlias = TrainingRows | GroupSums  # what is kept of the training rows


class _Rows(NamedTuple):
    """Rows of positive weight that are summed."""

    codes: Sequence[Ints]
    weight: Floats
    outcomes: Floats  # (rows, outcomes)
    outputs: Floats  # (rows, outputs)

    def table(self, variables: tuple[int, ...], groups: tuple[Ints, ...]) -> GroupTable:
        inside = np.ones(len(self.weight), np.bool_)
        for v in variables:
            inside &= self.codes[v] >= 0
        cell = _combined(groups)[tuple(self.codes[v][inside] for v in variables)]
        at = np.broadcast_to(cell, int(inside.sum()))
        w = self.weight[inside]
        n_cells = int(np.prod([group.max() + 1 for group in groups]))
        rows, weight, weight_squares = _sum_by(at, [np.ones(len(w)), w, w**2], n_cells).T
        sums = [
            _sum_by(at, list(w * values[inside].T ** power), n_cells)
            for values in (self.outcomes, self.outputs)
            for power in (1, 2)
        ]
        return GroupTable(variables, groups, rows, weight, weight_squares, *sums)


def _sum_by(index: Ints, columns: Sequence[Floats], size: int) -> Floats:
    """Return the sums of some columns over the rows of each index, (size, columns)."""
    sums: Floats = np.zeros((size, len(columns)))
    for i, column in enumerate(columns):
        sums[:, i] = np.bincount(index, column, size)
    return sums


def _combined(groups: Sequence[Ints]) -> Ints:
    """Return the cell of every combination of codes, -1 where a code has no group."""
    cell: Ints = np.zeros((), np.int64)
    for group in groups:
        size = int(group.max()) + 1
        inner = np.add.outer(cell * size, group.astype(np.int64))
        cell = np.where(np.logical_and.outer(cell >= 0, group >= 0), inner, -1)
    return cell


def _divide_values(counts: Ints, ordered: bool, n_groups: int) -> Ints:
    """Return the group of each value: neighbours of numbers, the rarest of categories, together."""
    if ordered:
        smallest = max(MIN_ROWS, -(-int(counts.sum()) // n_groups))
        order, single = np.arange(len(counts)), counts >= smallest
    else:
        order = np.argsort(-counts, kind="stable")
        single = counts >= MIN_ROWS
        single[order[n_groups - 1 :]] = False
        smallest = int(counts.sum())
    group, current, held = np.full(len(counts), -1), 0, 0
    for code in order.tolist():
        if counts[code]:
            group[code] = current
            held += int(counts[code])
            if held >= smallest or single[code]:
                current, held = current + 1, 0
    if 0 < held < MIN_ROWS and current:
        group[group == current] = current - 1
    return group


def _pair_groups(n_pairs: int, n_rows: int, n_outcomes: int) -> int:
    """Return how many groups columns have beside each other; 0 where there are too many pairs."""
    if not n_pairs or n_pairs * n_rows > MAX_WORK:
        return 0
    cells = MAX_NUMBERS / (n_pairs * (3 + 2 * n_outcomes))
    return min(MAX_PAIR_GROUPS, int(np.sqrt(cells)))


def _grid(groups: tuple[Ints, Ints], codes: tuple[Ints, Ints]) -> tuple[Ints, Ints] | None:
    """Merge groups of two columns until no combination has few rows; None if one group is left.

    Neighbours are merged, those of categories being as common, whichever leaves most of the grid
    for each combination of few rows that vanishes.
    """
    known = (codes[0] >= 0) & (codes[1] >= 0)
    sizes = [int(group.max()) + 1 for group in groups]
    cell = _combined(groups)[codes[0][known], codes[1][known]]
    rows = np.bincount(cell, minlength=sizes[0] * sizes[1]).reshape(sizes)
    merged = [group.copy() for group in groups]
    while min(rows.shape) > 1 and np.any(_few(rows)):
        choices = []
        for axis in (0, 1):
            lines = np.moveaxis(rows, axis, 0)
            few = _few(lines).sum(axis=1)
            vanish = few[1:] + few[:-1] - _few(lines[1:] + lines[:-1]).sum(axis=1)
            at = int(np.argmax(vanish))
            choices.append((vanish[at] / lines.shape[1], len(lines), axis, at))
        _, _, axis, at = max(choices)
        lines = np.moveaxis(rows, axis, 0)
        lines[at] += lines[at + 1]
        rows = np.delete(rows, at + 1, axis)
        merged[axis] -= merged[axis] > at
    return None if min(rows.shape) < 2 else (merged[0], merged[1])


def _few(rows: Ints) -> Bools:
    return (rows > 0) & (rows < MIN_ROWS)
