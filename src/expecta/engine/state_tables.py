"""Write the states of evidence as kernels read them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Floats, Ints
from expecta.engine.layers import TINY

if TYPE_CHECKING:
    from expecta.engine.cuda.rows_on_card import RowsOnCard


@dataclass(frozen=True)
class StateTables:
    """The weights of all states of evidence, the greatest of a state taken out.

    e(x) = weight · 2^(256 exponent) · greatest. Posteriors do not need the greatest.
    """

    evidence: Any  # Evidence, or rows on a card
    weight: Floats  # variable by variable (states, values)
    exponent: Floats
    start: Ints  # where the table of each variable begins  # (variables + 1,)
    n_states: Ints  # (variables,)
    plain: bool  # whether the greatest weight of every state is one (or zero)
    scaled: bool  # whether a weight has an exponent

    @classmethod
    def of(cls, evidence: Evidence | RowsOnCard) -> StateTables:
        """Read the evidence. Cost: the cells of its states, unless they are as they were."""
        return cls(evidence, *_kept_tables(evidence.states))

    @cached_property
    def n_values(self) -> Ints:
        """How many values each variable has.  # (variables,)."""
        return np.asarray(np.diff(self.start) // self.n_states)

    def log_scale(self) -> Floats:
        """Return the logarithm of the greatest weights of each row, multiplied.  # (rows,)."""
        total = np.zeros(len(self.evidence))
        if not self.plain:
            for table, codes in zip(self.evidence.states, self.evidence.codes, strict=True):
                greatest = table.max(axis=1, initial=0.0)
                total += np.log(np.where(greatest > 0.0, greatest, 1.0))[codes]
        return total


Tables = tuple[Floats, Floats, Ints, Ints, bool, bool]
_kept: dict[tuple[int, ...], tuple[tuple[Floats, ...], Tables]] = {}  # by the states' addresses


def _kept_tables(states: tuple[Floats, ...]) -> Tables:
    """Return the tables of states: of a model that is asked again and again, from memory."""
    key = tuple(map(id, states))
    kept = _kept.get(key)
    if kept is not None:
        return kept[1]
    found = _tables(states)
    if not any(table.flags.writeable for table in states):  # what may change is not kept
        if len(_kept) >= 8:
            _kept.clear()
        _kept[key] = states, found  # the states too, so that nothing else has their addresses
    return found


def _tables(states: tuple[Floats, ...]) -> Tables:
    weight = np.concatenate([table.reshape(-1) for table in states])
    of_state = np.concatenate([table.max(axis=1, initial=0.0) for table in states])
    exponent = np.zeros_like(weight)
    other = (weight > 0) & (weight < TINY)
    greatest: Floats = np.broadcast_to(1.0, weight.shape)
    plain = bool(np.all((of_state == 1.0) | (of_state == 0.0)))
    if not plain:
        n_values = np.concatenate([np.full(len(table), table.shape[1]) for table in states])
        greatest = np.repeat(of_state, n_values)
        other |= (greatest != 1.0) & (greatest != 0.0)
    if np.any(other):
        # Weights may lie 600 decimal orders apart: divide fractions, subtract powers.
        fraction, power = np.frexp(weight[other])
        greatest_fraction, greatest_power = np.frexp(greatest[other])
        power = np.where(fraction > 0, power - greatest_power, 0)
        exponent[other] = -(-power // 256)
        weight[other] = np.ldexp(fraction / greatest_fraction, power + -power // 256 * 256)
    start = np.cumsum([0, *(table.size for table in states)])
    n_states = np.array([len(table) for table in states])
    return weight, exponent, start, n_states, plain, bool(np.any(exponent))
