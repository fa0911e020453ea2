"""What the words and numbers of a report mean."""

from __future__ import annotations

from expecta.report.html import Html, join, tag

__all__ = ["glossary"]

WORDS = (
    (
        "model's output",
        "What the model predicts: a number in the target's units, or the probability of a class.",
    ),
    (
        "density",
        "The joint distribution of the columns that was learned from the training rows. Unknown "
        "columns are averaged over by it, given what is known.",
    ),
    (
        "mean over a group",
        "The expectation of the model's output over everyone the density holds to be in the "
        "group. It says what the model predicts, not what was observed.",
    ),
    (
        "standard deviation, spread",
        "How much the model's output differs between members of a group, because what else is "
        "known of them differs. It is not the uncertainty of the target.",
    ),
    (
        "held-out error",
        "The standard deviation of the target about predictions for complete rows that were not "
        "learned from.",
    ),
    (
        "share",
        "The probability of a group under the density.",
    ),
    (
        "training rows' average",
        "The plain average of the target over the training rows that are in a group for certain. "
        "Few rows make it uncertain.",
    ),
    (
        "variance taken away",
        "By how much the variance of the model's output is expected to fall once a column is "
        "known, as a share of what it is now.",
    ),
    (
        "given a column",
        "The expectation among those who have a value: other columns are what goes with it.",
    ),
    (
        "alone changed (partial dependence)",
        "The expectation if the column alone were set to a value for everyone and all others "
        "stayed as they are. It also asks about combinations that never occur.",
    ),
    (
        "disclosing",
        "A group's expected output with an attribute less the same without it: how much the "
        "attribute moves what the model says of the group.",
    ),
    (
        "parity",
        "The largest difference between the expected outputs for the values of a sensitive column.",
    ),
    (
        "nats",
        "The unit of log-probabilities: a score higher by 1 means 2.7 times as likely.",
    ),
)


def glossary() -> Html:
    """Write the section."""
    pairs = (join([tag("dt", word), tag("dd", meaning)]) for word, meaning in WORDS)
    return tag("dl", *pairs, class_="words")
