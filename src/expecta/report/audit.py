"""Where sensitive columns move the model's output."""

from __future__ import annotations

from expecta.ask.disparities import Disparities
from expecta.common.text import brief, figure, percent
from expecta.report.facts import Output
from expecta.report.figures import Bar, bars
from expecta.report.html import Html, figure_of, join, paragraphs, table, tag
from expecta.report.outputs import written

__all__ = ["audit"]

MOST = 10  # groups in a figure


def audit(output: Output) -> Html:
    """Write what disclosing each sensitive column does to the output."""
    return join(_disparities(output, found) for found in output.disparities)


def _disparities(output: Output, found: Disparities) -> Html:
    column = found.parity[0].column
    said = [
        join(
            [
                "How much the expected output changes when ",
                tag("strong", column),
                f" is disclosed of a group. {found.tried:,} groups were compared.",
            ]
        ),
        *(sentence for parity in found.parity for sentence in parity.sentences()),
    ]
    if not len(found.gap):
        return join([paragraphs(said), tag("p", "No group is large enough to be compared.")])
    rows = [
        Bar(brief(disclosed), gap, _moved(output, gap), below=f"in: {brief(group)}")
        for disclosed, group, gap in zip(
            found.disclosed[:MOST], found.group[:MOST], found.gap[:MOST].tolist(), strict=True
        )
    ]
    label = f"Largest changes of the expected {output.name} when {column} is disclosed"
    head = ["disclosed", "group", "without", "with", "change", "share"]
    lines = [
        [
            disclosed,
            group,
            written(output, without),
            written(output, value),
            _moved(output, gap),
            percent(share),
        ]
        for disclosed, group, without, value, gap, share in zip(
            found.disclosed,
            found.group,
            found.without.tolist(),
            found.value.tolist(),
            found.gap.tolist(),
            found.share.tolist(),
            strict=True,
        )
    ]
    card = figure_of(label, bars(rows, label))
    numbers = tag("div", table(head, lines, label, texts=2), class_="card")
    return join([paragraphs(said), tag("div", card, numbers, class_="grid two")])


def _moved(output: Output, gap: float) -> str:
    """Write by how much an output changes; probabilities by percentage points."""
    return (
        f"{figure(100 * gap, signed=True)} points" if output.is_share else figure(gap, signed=True)
    )
