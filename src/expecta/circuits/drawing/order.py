"""Which item stands left of which: few crossings, by the barycentre method.

Sugiyama, Tagawa and Toda's method: sweep through the rows, sort each by the mean
position of its neighbours in the row before, and keep the best order seen.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence

from expecta.circuits.drawing.diagram import Diagram, Wire

__all__ = ["crossings", "ordered_rows"]

SWEEPS = 12


def ordered_rows(diagram: Diagram) -> list[list[int]]:
    """Return the items of each row, from left to right.

    >>> from expecta.circuits.drawing.diagram import Diagram, Item, Wire
    >>> items = [Item("or", 2, 0), Item("and", 2, 1), Item("and", 2, 1)]
    >>> items += [Item("literal", 0, 2), Item("literal", 1, 2)] * 2
    >>> wires = [Wire(1, 0, 0, ""), Wire(2, 0, 1, ""), Wire(5, 1, 0, ""), Wire(4, 1, 1, "")]
    >>> wires += [Wire(3, 2, 0, ""), Wire(6, 2, 1, "")]
    >>> ordered_rows(Diagram(items, wires))
    [[0], [1, 2], [5, 4, 3, 6]]
    """
    inputs: list[list[Wire]] = [[] for _ in diagram.items]
    outputs: list[list[Wire]] = [[] for _ in diagram.items]
    for wire in diagram.wires:
        inputs[wire.target].append(wire)
        outputs[wire.source].append(wire)
    rows = _depth_first(diagram, inputs)
    position = {item: float(i) for row in rows for i, item in enumerate(row)}

    def pull(item: int, upwards: bool) -> float:
        wires = inputs[item] if upwards else outputs[item]
        if not wires:
            return position[item]
        # The second input of an AND gate is on its right, which is what the share is for.
        if upwards:
            ends = [position[wire.source] - wire.port * _share(diagram, wire) for wire in wires]
        else:
            ends = [position[wire.target] + wire.port * _share(diagram, wire) for wire in wires]
        return sum(ends) / len(ends)

    best, fewest = [list(row) for row in rows], crossings(diagram, rows)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        upwards = sweep % 2 == 0
        for row in reversed(rows) if upwards else rows:
            pulls = {item: pull(item, upwards) for item in row}
            row.sort(key=pulls.__getitem__)
            position.update((item, float(i)) for i, item in enumerate(row))
        found = crossings(diagram, rows)
        if found < fewest:
            best, fewest = [list(row) for row in rows], found
    return best


def _depth_first(diagram: Diagram, inputs: Sequence[Sequence[Wire]]) -> list[list[int]]:
    """Walk from the root, left before right: no crossing at all where nothing is shared."""
    rows: list[list[int]] = [[] for _ in range(1 + max(item.row for item in diagram.items))]
    seen = {0}
    todo = [0]
    while todo:
        item = todo.pop()
        rows[diagram.items[item].row].append(item)
        for wire in sorted(inputs[item], key=lambda wire: -wire.port):
            if wire.source not in seen:
                seen.add(wire.source)
                todo.append(wire.source)
    return rows


def _share(diagram: Diagram, wire: Wire) -> float:
    # The inputs of an OR gate take whatever order suits the wires, those of an AND do not.
    return 0.5 if diagram.items[wire.target].kind == "and" else 0.0


def crossings(diagram: Diagram, rows: Sequence[Sequence[int]]) -> int:
    """Count the pairs of wires that cross when rows stand in the given order."""
    position = {item: i for row in rows for i, item in enumerate(row)}
    ends: dict[int, list[tuple[float, int]]] = {}
    for wire in diagram.wires:
        upper = position[wire.target] + wire.port * _share(diagram, wire)
        row = diagram.items[wire.target].row
        ends.setdefault(row, []).append((upper, position[wire.source]))
    total = 0
    for pairs in ends.values():
        # Sorted by their upper ends, two wires cross when their lower ends are inverted.
        before: list[int] = []
        for _, lower in sorted(pairs):
            total += len(before) - bisect_right(before, lower)
            insort(before, lower)
    return total
