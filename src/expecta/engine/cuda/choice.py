"""Decide where a walk runs: here, or on a card where one was asked for and pays."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

from expecta.common.errors import DeviceError
from expecta.common.settings import current
from expecta.engine.algebras import width
from expecta.engine.plan import Plan

# What a call costs once its kernels are compiled, in seconds: fitted to 72 cases on an H200 beside
# two cores (docs/gpu.md)
CARD_CALL = 0.17e-3  # launches and copies, whatever its size
CARD_ROW = 0.016e-6
CARD_NUMBER = 2e-12  # per number of a join
CPU_CALL = 0.4e-3
CPU_NUMBER = 0.5e-9  # on one thread

# The same of a step of EM: fitted to steps over 48,000 images with 32 and 64 states
CARD_STEP = 5e-3  # launches for the levels of a tree of hundreds of nodes
CARD_STATE = 13e-12  # per row and state of a node
CARD_PRODUCT = 0.03e-12
CPU_STATE = 1.1e-9  # on one thread
CPU_PRODUCT = 12e-12


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
    numbers = float(plan.n_joins + len(plan.p.target)) * width(algebra) * tables * rows
    card = CARD_CALL + CARD_ROW * rows + CARD_NUMBER * numbers
    return card < CPU_CALL + CPU_NUMBER * numbers / current().n_threads()


def step_pays(states: float, products: float) -> bool:
    """Whether a card is faster at a step of EM: over rows, states of nodes and multiply-adds."""
    card = CARD_STEP + CARD_STATE * states + CARD_PRODUCT * products
    return card < (CPU_STATE * states + CPU_PRODUCT * products) / current().n_threads()


def the_card() -> Any:
    """Return the card of this process."""
    from expecta.engine.cuda.card_work import cuda_device

    return cuda_device(os.getpid())


def failed_on_card(problem: DeviceError) -> None:
    """Say that a card failed and the processor does its work, or pass the error on."""
    if current().device != "auto":
        raise problem
    warnings.warn(f"{problem}: computed on the processor", RuntimeWarning, stacklevel=2)
