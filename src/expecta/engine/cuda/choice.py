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
    numbers = float(plan.n_joins + len(plan.p.target)) * width(algebra) * tables * rows
    card = CARD_CALL + CARD_ROW * rows + CARD_NUMBER * numbers
    return card < CPU_CALL + CPU_NUMBER * numbers / current().n_threads()


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
