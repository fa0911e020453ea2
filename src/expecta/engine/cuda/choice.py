"""Decide where a walk runs: here, or on a card where one was asked for and pays."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DeviceError
from expecta.common.settings import current
from expecta.engine.algebras import scratch, width
from expecta.engine.plan import Plan
from expecta.engine.schedule import Sizes

# What a call costs once its kernels are compiled, in seconds, by what `WalkWork` counts: fitted to
# a grid of cases on an H200 beside two cores (`python -m benchmarks.cards --grid`)
CARD_COSTS = (51e-6, 11.6e-6, 0.064e-9, 6.6e-9, 1.36e-12)
CPU_COSTS = (392e-6, 7.5e-6, 0.0, 110e-9, 0.6e-9)
ONE_ROW_COSTS = (35e-6, 0.34e-6, 0.0, 0.0, 4.0e-9)
MIN_THREADED = 1e6  # products: see `engine.run`
MAX_LANES = 243  # of a table that a card computes once for a model, and not for each call

# The same of a step of EM: fitted to steps over 512 to 48,000 images with 32 to 256 states, each
# within a quarter on the card, and a sixth on the processor
CARD_STEP = 3.8e-3  # launches for the levels of a tree of hundreds of nodes
CARD_PARAMETER = 5.3e-9  # which goes there, and comes back as a count
CARD_STATE = 10e-12  # per row and state of a node
CARD_PRODUCT = 0.021e-12
CPU_PARAMETER = 9.9e-9
CPU_STATE = 0.23e-9  # on one thread
CPU_PRODUCT = 20e-12


def on_card(plan: Plan, algebra: Any, tables: int, rows: int) -> bool:
    """Whether the settings in force send a walk to the card."""
    return bool(rows) and wanted(lambda: pays(plan, algebra, tables, rows))


def wanted(pays: Callable[[], bool]) -> bool:
    """Whether the settings in force send work to the card that may pay there."""
    device = current().device
    if device == "cpu" or (device == "auto" and not pays()):
        return False
    if device == "auto":
        try:
            the_card()
        except DeviceError:
            return False
    return True


def pays(plan: Plan, algebra: Any, tables: int, rows: int) -> bool:
    """Whether a card is faster, by a model of the cost of both."""
    here, there = WalkWork.of(plan, algebra, tables, rows)
    costs = ONE_ROW_COSTS if rows == 1 else CPU_COSTS
    threads = current().n_threads() if here.products > MIN_THREADED else 1
    return there.seconds(CARD_COSTS, 1) < here.seconds(costs, threads)


class WalkWork(NamedTuple):
    """What decides how long a walk takes."""

    calls: float  # one
    nodes: float  # of the vtree; for a card, its levels above tables
    cells: float  # of evidence
    rows: float  # and tables of constants
    products: float  # of numbers, in rows, or combinations of values where these are fewer

    @classmethod
    def of(cls, plan: Plan, algebra: Any, tables: int, rows: int) -> tuple[WalkWork, WalkWork]:
        """Count it for the processor, and for a card. Cost: the nodes of the vtree."""
        patterns, levels = _plan_size(plan)
        cost = _costs(plan, algebra)
        cells, n = float(rows * len(plan.cardinalities)), float(rows * tables)
        shared = float(cost @ np.minimum(patterns, rows)) * tables
        alone = float(cost[patterns > MAX_LANES].sum()) * n
        return cls(1.0, len(patterns), cells, n, shared), cls(1.0, levels, cells, n, alone)

    def seconds(self, costs: Sequence[float], threads: int) -> float:
        """Return the time, products being shared among threads."""
        alone = sum(cost * count for cost, count in zip(costs[:-1], self[:-1], strict=True))
        return alone + costs[-1] * self.products / threads


_sizes: WeakKeyDictionary[Plan, tuple[Floats, int]] = WeakKeyDictionary()
_layer_costs: WeakKeyDictionary[Plan, dict[int, Ints]] = WeakKeyDictionary()


def _plan_size(plan: Plan) -> tuple[Floats, int]:
    """Count combinations of values and "unknown" below each vtree node, and levels above tables."""
    if plan not in _sizes:
        tree = plan.vtree
        patterns, level = np.empty(len(tree)), np.zeros(len(tree), np.int64)
        for v in range(len(tree)):
            if tree.variable[v] >= 0:
                patterns[v] = plan.cardinalities[tree.variable[v]] + 1.0
                continue
            left, right = tree.left[v], tree.right[v]
            patterns[v] = min(patterns[left] * patterns[right], 1e18)
            if patterns[v] > MAX_LANES:
                level[v] = 1 + max(level[left], level[right])
        _sizes[plan] = patterns, int(level.max())
    return _sizes[plan]


def _costs(plan: Plan, algebra: Any) -> Ints:
    """Return the multiplications of each layer."""
    kept, numbers = _layer_costs.setdefault(plan, {}), width(algebra)
    if numbers not in kept:
        kept[numbers] = Sizes.of(plan, numbers, scratch(algebra)).cost
    return kept[numbers]


def step_pays(parameters: float, states: float, products: float) -> bool:
    """Whether a card is faster at a step of EM: by parameters, rows x states, multiply-adds."""
    card = CARD_STEP + CARD_PARAMETER * parameters + CARD_STATE * states + CARD_PRODUCT * products
    shared = (CPU_STATE * states + CPU_PRODUCT * products) / current().n_threads()
    return card < CPU_PARAMETER * parameters + shared


def the_card() -> Any:
    """Return the card of this process."""
    from expecta.engine.cuda.card_work import cuda_device

    return cuda_device(os.getpid())


def failed_on_card(problem: DeviceError) -> None:
    """Say that a card failed and the processor does its work, or pass the error on."""
    if current().device != "auto":
        raise problem
    warnings.warn(f"{problem}: computed on the processor", RuntimeWarning, stacklevel=2)
