"""Name the ways in which a number can be right: the words that answers and reports say."""

from __future__ import annotations

from enum import StrEnum


class Trust(StrEnum):
    """How far a number can be trusted, given the learned density; docs/trust.md is the contract.

    >>> print(f"Mean: {Trust.EXACT}.")
    Mean: exact.
    """

    EXACT = "exact"  # the sum over all that is unknown, to rounding; proved
    WITHIN = "within"  # computed, with a bound on the error that is never exceeded
    CHECKED = "checked"  # computed as if exact, from what was tried on rows and not proved
    SAMPLED = "sampled"  # an average over draws, with a standard error
    ASSUMED = "assumed"  # not computed: what all the others rest on
