"""Which input each output of a transformer comes from: known for each kind, never guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_selection import SelectorMixin

from expecta.readers import Unreadable, probes
from expecta.readers import frames as raw
from expecta.readers.library_class import library_class

__all__ = ["Link", "absent", "follow"]


class Link(NamedTuple):
    """The input that an output comes from, -1 if from none, and whether it grows with it.

    The sign is 1 if it never falls as the input grows, -1 if it never rises, 0 if neither is
    known.
    """

    input: int
    sign: int


def absent(step: Any) -> bool:
    """Whether a step of a pipeline does nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def follow(step: Any, data: Any, notes: list[str]) -> tuple[list[Link], Any]:
    """Return what each output of a fitted transformer comes from, and the output for some rows.

    Parameters
    ----------
    step
        The transformer.
    data
        Some complete rows of its input.
    notes
        What a user should know is added here.

    Raises
    ------
    Unreadable
        If an output comes from several inputs, or nobody knows what the transformer does.
    """
    if absent(step):
        return _same(raw.width(data)), data
    name = library_class(step, ["transform"])
    if name == "FrozenEstimator":
        return follow(step.estimator, data, notes)
    if name == "Pipeline":
        return _pipeline(step, data, notes)
    if name == "ColumnTransformer":
        found = _column_transformer(step, data, notes)
    elif name == "FeatureUnion":
        found = _union(step, data, notes)
    elif name == "FunctionTransformer":
        signs = probes.signs(step, data, notes)
        single = raw.width(data) == 1
        found = [Link(0 if single else j, sign) for j, sign in enumerate(signs)]
    elif name is not None and isinstance(step, SelectorMixin):
        found = [Link(int(j), 1) for j in step.get_support(indices=True)]
    elif name in RULES:
        found = RULES[name](step, raw.width(data))
    else:
        raise Unreadable(
            f"{type(step).__name__} mixes columns, or is not known not to; sampling is used instead"
        )
    output = raw.transformed(step, data)
    if raw.width(output) != len(found):
        raise Unreadable(
            f"{type(step).__name__} gives {raw.width(output)} columns where {len(found)} were "
            f"expected; sampling is used instead"
        )
    return found, output


def _same(width: int) -> list[Link]:
    return [Link(j, 1) for j in range(width)]


def _then(first: Sequence[Link], second: Iterable[Link]) -> list[Link]:
    """Put one after the other."""
    return [
        Link(first[b].input, first[b].sign * sign) if b >= 0 else Link(-1, sign)
        for b, sign in second
    ]


def _pipeline(pipeline: Any, data: Any, notes: list[str]) -> tuple[list[Link], Any]:
    found = _same(raw.width(data))
    for _, step in pipeline.steps:
        links, data = follow(step, data, notes)
        found = _then(found, links)
    return found, data


def _weight(parent: Any, name: str) -> int:
    return int(np.sign((parent.transformer_weights or {}).get(name, 1.0)))


def _union(union: Any, data: Any, notes: list[str]) -> list[Link]:
    found: list[Link] = []
    for name, step in union.transformer_list:
        if not isinstance(step, str) or step != "drop":
            links, _ = follow(step, data, notes)
            found += [Link(j, sign * _weight(union, name)) for j, sign in links]
    return found


def _column_transformer(parent: Any, data: Any, notes: list[str]) -> list[Link]:
    """Follow each part; columns were chosen in training, and are found by name if they have one."""
    known = [str(name) for name in getattr(parent, "feature_names_in_", [])]
    there = raw.names(data)
    found: list[Link] = []
    for name, step, chosen in parent.transformers_:
        places = _places(chosen, known, int(parent.n_features_in_))
        if not places or (isinstance(step, str) and step == "drop"):
            continue
        if known and there is not None:
            places = [there.index(known[j]) for j in places]
        part = raw.pick(data, places, flat=isinstance(chosen, str | int | np.integer))
        links, _ = follow(step, part, notes)
        if parent.output_indices_[name] != slice(len(found), len(found) + len(links)):
            raise Unreadable(
                f"the part {name!r} of the ColumnTransformer gives other columns than it did in "
                f"training; sampling is used instead"
            )
        own = [Link(j, 1) for j in places]
        found += [Link(j, sign * _weight(parent, name)) for j, sign in _then(own, links)]
    return found


def _places(chosen: Any, known: Sequence[str], width: int) -> list[int]:
    """Return the places of columns chosen by name, number, slice or mask."""
    if isinstance(chosen, slice):
        if not isinstance(chosen.start, str) and not isinstance(chosen.stop, str):
            return list(range(width)[chosen])
        first = 0 if chosen.start is None else known.index(chosen.start)
        last = width - 1 if chosen.stop is None else known.index(chosen.stop)
        return list(range(width)[first : last + 1 : chosen.step])  # names are inclusive
    every = [chosen] if isinstance(chosen, str | int | np.integer) else list(chosen)
    if every and all(isinstance(c, bool | np.bool_) for c in every):
        return [j for j, c in enumerate(every) if c]
    return [known.index(c) if isinstance(c, str) else range(width)[int(c)] for c in every]


def _counted(counts: Iterable[int]) -> list[Link]:
    """Return outputs that come in groups, one after the other, a group of each input."""
    return [Link(j, 0) for j, count in enumerate(counts) for _ in range(count)]


def _growing(step: Any, width: int) -> list[Link]:
    return _same(width)


def _ordinal(step: Any, width: int) -> list[Link]:
    # numbers between the categories are unknown ones, and may become any number
    return _counted([1] * width)


def _bins(step: Any, width: int) -> list[Link]:
    if step.encode == "ordinal":
        return _same(width)
    found = []
    for j, bins in enumerate(np.asarray(step.n_bins_).tolist()):
        # x is in the first bin until it leaves it, and in the last from where it enters it
        found += [Link(j, int(k == bins - 1) - int(k == 0 < bins - 1)) for k in range(bins)]
    return found


def _one_hot(step: Any, width: int) -> list[Link]:
    infrequent = getattr(step, "infrequent_categories_", None) or [None] * width
    dropped = [None] * width if step.drop_idx_ is None else list(step.drop_idx_)
    return _counted(
        len(categories) - (0 if rare is None else len(rare) - 1) - (drop is not None)
        for categories, rare, drop in zip(step.categories_, infrequent, dropped, strict=True)
    )


def _target(step: Any, width: int) -> list[Link]:
    each = len(step.classes_) if step.target_type_ == "multiclass" else 1
    return _counted([each] * width)


def _splines(step: Any, width: int) -> list[Link]:
    return _counted([int(step.n_features_out_) // width] * width)


def _powers(step: Any, width: int) -> list[Link]:
    found = []
    for powers in np.asarray(step.powers_):
        (inputs,) = np.nonzero(powers)
        if len(inputs) > 1:
            raise Unreadable(
                "PolynomialFeatures multiplies columns with each other; sampling is used instead"
            )
        odd = int(powers.sum()) % 2
        found.append(Link(int(inputs[0]), odd) if len(inputs) else Link(-1, 1))
    return found


def _missing_sign(step: Any) -> int:
    """Numbers stay in order, unless one of them stands for an unknown value."""
    marked = step.missing_values
    return int(not isinstance(marked, int | float | np.number) or bool(np.isnan(marked)))


def _imputed(step: Any, width: int) -> list[Link]:
    sign = _missing_sign(step)
    # a column of which nothing was known in training is left out
    empty = [isinstance(s, float) and bool(np.isnan(s)) for s in step.statistics_]
    kept = [j for j in range(width) if step.keep_empty_features or not empty[j]]
    marks = [] if step.indicator_ is None else step.indicator_.features_.tolist()
    return [Link(j, sign) for j in kept + marks]


def _marks(step: Any, width: int) -> list[Link]:
    return [Link(int(j), _missing_sign(step)) for j in step.features_]


RULES: dict[str | None, Callable[[Any, int], list[Link]]] = {
    "StandardScaler": _growing,
    "MinMaxScaler": _growing,
    "MaxAbsScaler": _growing,
    "RobustScaler": _growing,
    "PowerTransformer": _growing,
    "QuantileTransformer": _growing,
    "Binarizer": _growing,
    "KBinsDiscretizer": _bins,
    "OneHotEncoder": _one_hot,
    "OrdinalEncoder": _ordinal,
    "TargetEncoder": _target,
    "SplineTransformer": _splines,
    "PolynomialFeatures": _powers,
    "SimpleImputer": _imputed,
    "MissingIndicator": _marks,
}
