"""Write the words and numbers of a picture, and choose its colours."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence

from expecta.circuits.vtree import Vtree
from expecta.common.errors import StructureError
from expecta.common.text import printable

MAX_NAME_LETTERS = 28
MAX_RUNS = 6  # runs of values that a label lists before it gives up

# Orange and blue first, as in the paper's Figure 1; all dark enough to be told apart on
# white and light enough for a dark outline to stand out.
_PALETTE = (
    *("#f0ab2e", "#3f8fa6", "#c4647d", "#7aa64a", "#8a78c2"),
    *("#d9774a", "#4fae95", "#b58d5a", "#5b86d6", "#b3b03c"),
)


def variable_names(n: int, names: Sequence[str] | None) -> list[str]:
    """Return a short, printable name for each variable: the user's, or X0, X1, ... by column."""
    if names is None:
        return [f"X{variable}" for variable in range(n)]
    if isinstance(names, str) or len(names) != n:
        given = "one string" if isinstance(names, str) else f"{len(names)} names"
        raise StructureError(f"{given} for {n} variables: give a sequence of {n} names")
    return [_printable(str(name)) or f"X{variable}" for variable, name in enumerate(names)]


def _printable(name: str) -> str:
    name = printable(" ".join(name.split()))
    return name if len(name) <= MAX_NAME_LETTERS else name[: MAX_NAME_LETTERS - 1] + "…"


def literal_text(name: str, values: Sequence[int], cardinality: int) -> str:
    """Say that a variable has one of the given values, in the paper's notation.

    >>> literal_text("X2", [0], 2), literal_text("X2", [3], 5), literal_text("X2", [0, 3], 5)
    ('¬X2', 'X2 = 3', 'X2 ∈ {0, 3}')
    >>> literal_text("age > 40", [0], 2), literal_text("X2", [0, 1, 2, 3, 7], 9)
    ('¬(age > 40)', 'X2 ∈ {0..3, 7}')
    """
    if len(values) == cardinality and cardinality > 1:
        return f"any {name}"
    if cardinality == 2:
        if values[0] == 1:
            return name
        return f"¬({name})" if " " in name else f"¬{name}"
    if len(values) == 1:
        return f"{name} = {values[0]}"
    return f"{name} ∈ {{{runs(values)}}}"


def runs(values: Sequence[int]) -> str:
    """Write 0, 1, 2, 3, 7 as ``0..3, 7``, and end a long list early."""
    consecutive: list[list[int]] = []
    for value in sorted(values):
        if consecutive and value == consecutive[-1][-1] + 1:
            consecutive[-1].append(value)
        else:
            consecutive.append([value])
    parts: list[str] = []
    for run in consecutive:
        parts += [f"{run[0]}..{run[-1]}"] if len(run) > 2 else map(str, run)
    return ", ".join(parts if len(parts) <= MAX_RUNS else [*parts[: MAX_RUNS - 1], "…"])


def number_text(value: float) -> str:
    """Write a number with about three significant digits, the shortest way.

    >>> [number_text(x) for x in (0.5, -5.3, 1 / 3, 1234.5, 2.5e-7, 3e9, -0.0)]
    ['0.5', '-5.3', '0.333', '1234', '2.5e-7', '3e9', '0']
    """
    if value == 0:
        return "0"
    if 100 <= abs(value) < 1e5:
        return f"{value:.0f}"
    mantissa, exponent_mark, exponent = f"{value:.3g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent_mark else mantissa


def parameter_text(parameters: Sequence[float]) -> str:
    """Write an edge's parameters, one per output; many are only counted.

    >>> parameter_text([2.0, -1.25]), parameter_text([1.0, 2.0, 3.0])
    ('2, -1.25', '(3 outputs)')
    """
    if len(parameters) > 2:
        return f"({len(parameters)} outputs)"
    return ", ".join(map(number_text, parameters))


def count(n: int, thing: str) -> str:
    """Write ``1 gate``, ``2 gates``, ``12,000 gates``."""
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def colours(vtree: Vtree) -> dict[int, str]:
    """Give every inner vtree node its colour, the same one in every picture.

    >>> from expecta import Vtree
    >>> colours(Vtree.from_nested((0, (1, 2))))
    {4: '#f0ab2e', 3: '#3f8fa6'}
    """
    from_the_root = reversed(list(vtree.inner()))
    return {v: _colour(position) for position, v in enumerate(from_the_root)}


def _colour(position: int) -> str:
    if position < len(_PALETTE):
        return _PALETTE[position]
    # Steps of the golden ratio never come close to a hue they have just been at.
    hue = position * 0.618034 % 1.0
    lightness = (0.52, 0.66, 0.59)[position % 3]
    red, green, blue = colorsys.hls_to_rgb(hue, lightness, 0.45)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"
