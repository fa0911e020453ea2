"""Tell which input each output of a transformer comes from: known for each kind, never guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from expecta.readers import Unreadable, frames
from expecta.readers.function_transformers import function_signs
from expecta.readers.library_class import library_class

GROWING = (
    *("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"),
    *("PowerTransformer", "QuantileTransformer", "Binarizer"),
)


class FeatureSource(NamedTuple):
    """The input that an output comes from, -1 if from none, and whether it grows with it.

    The sign is 1 if it never falls as the input grows, -1 if it never rises, 0 if neither is
    known.
    """

    input: int
    sign: int


def does_nothing(step: Any) -> bool:
    """Whether a step of a pipeline does nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def follow(step: Any, data: Any, tried: list[str]) -> tuple[list[FeatureSource], Any]:
    """Return what each output of a fitted transformer comes from, and the output for the rows.

    Parameters
    ----------
    step
        The transformer.
    data
        Complete rows of its input.
    tried
        What is tried on the rows, and is not known, is added here.

    Raises
    ------
    Unreadable
        If an output comes from several inputs, or it is not known what the transformer does.
    """
    if does_nothing(step):
        return _same(frames.width(data)), data
    name = library_class(step)
    if name == "FrozenEstimator":
        return follow(step.estimator, data, tried)
    if name == "Pipeline":
        return follow_all([step for _, step in step.steps], data, tried)
    if name == "ColumnTransformer":
        sources = _column_transformer(step, data, tried)
    elif name == "FeatureUnion":
        sources = _union(step, data, tried)
    elif name == "FunctionTransformer":
        single = frames.width(data) == 1
        signs = function_signs(step, data, tried)
        sources = [FeatureSource(0 if single else j, sign) for j, sign in enumerate(signs)]
    elif name is not None and _selects(step):
        sources = [FeatureSource(int(j), 1) for j in step.get_support(indices=True)]
    elif name in RULES:
        sources = RULES[name](step, frames.width(data))
    else:
        raise Unreadable(
            f"{type(step).__name__} mixes columns, or is not known not to; sampling is used instead"
        )
    output = frames.transformed(step, data)
    if frames.width(output) != len(sources):
        raise Unreadable(
            f"{type(step).__name__} gives {frames.width(output)} columns where {len(sources)} were "
            f"expected; sampling is used instead"
        )
    return sources, output


def _selects(step: Any) -> bool:
    from sklearn.feature_selection import SelectorMixin  # a tenth of a second, for these only

    return isinstance(step, SelectorMixin)


def _same(width: int) -> list[FeatureSource]:
    return [FeatureSource(j, 1) for j in range(width)]


def _then(first: Sequence[FeatureSource], second: Iterable[FeatureSource]) -> list[FeatureSource]:
    """Put one after the other."""
    return [
        FeatureSource(first[b].input, first[b].sign * sign) if b >= 0 else FeatureSource(-1, sign)
        for b, sign in second
    ]


def follow_all(
    steps: Iterable[Any], data: Any, tried: list[str]
) -> tuple[list[FeatureSource], Any]:
    """Follow transformers that come one after the other; see :func:`follow`."""
    sources = _same(frames.width(data))
    for step in steps:
        inner, data = follow(step, data, tried)
        sources = _then(sources, inner)
    return sources, data


def _weight(parent: Any, name: str) -> int:
    return int(np.sign((parent.transformer_weights or {}).get(name, 1.0)))


def _union(union: Any, data: Any, tried: list[str]) -> list[FeatureSource]:
    sources: list[FeatureSource] = []
    for name, step in union.transformer_list:
        if not isinstance(step, str) or step != "drop":
            inner, _ = follow(step, data, tried)
            sources += [FeatureSource(j, sign * _weight(union, name)) for j, sign in inner]
    return sources


def _column_transformer(parent: Any, data: Any, tried: list[str]) -> list[FeatureSource]:
    """Follow each part; its columns are looked up by name if they have one."""
    known = [str(name) for name in getattr(parent, "feature_names_in_", [])]
    names = frames.names(data)
    sources: list[FeatureSource] = []
    for name, step, chosen in parent.transformers_:
        columns = _positions(chosen, known, int(parent.n_features_in_))
        if not columns or (isinstance(step, str) and step == "drop"):
            continue
        if known and names is not None:
            columns = [names.index(known[j]) for j in columns]
        part = frames.pick(data, columns, flat=isinstance(chosen, str | int | np.integer))
        inner, _ = follow(step, part, tried)
        if parent.output_indices_[name] != slice(len(sources), len(sources) + len(inner)):
            raise Unreadable(
                f"the part {name!r} of the ColumnTransformer gives other columns than it did in "
                f"training; sampling is used instead"
            )
        outer = [FeatureSource(j, 1) for j in columns]
        sources += [
            FeatureSource(j, sign * _weight(parent, name)) for j, sign in _then(outer, inner)
        ]
    return sources


def _positions(chosen: Any, known: Sequence[str], width: int) -> list[int]:
    """Return the positions of columns chosen by name, number, slice or mask."""
    if isinstance(chosen, slice):
        if not isinstance(chosen.start, str) and not isinstance(chosen.stop, str):
            return list(range(width)[chosen])
        first = 0 if chosen.start is None else known.index(chosen.start)
        last = width - 1 if chosen.stop is None else known.index(chosen.stop)
        return list(range(width)[first : last + 1 : chosen.step])  # names are inclusive
    choices = [chosen] if isinstance(chosen, str | int | np.integer) else list(chosen)
    if choices and all(isinstance(c, bool | np.bool_) for c in choices):
        return [j for j, c in enumerate(choices) if c]
    return [known.index(c) if isinstance(c, str) else range(width)[int(c)] for c in choices]


def _counted(counts: Iterable[int]) -> list[FeatureSource]:
    """Return outputs that come in groups, one after the other, a group of each input."""
    return [FeatureSource(j, 0) for j, count in enumerate(counts) for _ in range(count)]


def _ordinal(step: Any, width: int) -> list[FeatureSource]:
    # numbers between the categories are unknown ones, and may become any number
    return _counted([1] * width)


def _bins(step: Any, width: int) -> list[FeatureSource]:
    if step.encode == "ordinal":
        return _same(width)
    sources = []
    for j, bins in enumerate(np.asarray(step.n_bins_).tolist()):
        # x is in the first bin until it leaves it, and in the last from where it enters it
        sources += [
            FeatureSource(j, int(k == bins - 1) - int(k == 0 < bins - 1)) for k in range(bins)
        ]
    return sources


def _one_hot(step: Any, width: int) -> list[FeatureSource]:
    infrequent = getattr(step, "infrequent_categories_", None) or [None] * width
    dropped = [None] * width if step.drop_idx_ is None else list(step.drop_idx_)
    return _counted(
        len(categories) - (0 if rare is None else len(rare) - 1) - (drop is not None)
        for categories, rare, drop in zip(step.categories_, infrequent, dropped, strict=True)
    )


def _target(step: Any, width: int) -> list[FeatureSource]:
    outputs = len(step.classes_) if step.target_type_ == "multiclass" else 1
    return _counted([outputs] * width)


def _splines(step: Any, width: int) -> list[FeatureSource]:
    return _counted([int(step.n_features_out_) // width] * width)


def _powers(step: Any, width: int) -> list[FeatureSource]:
    sources = []
    for powers in np.asarray(step.powers_):
        (inputs,) = np.nonzero(powers)
        if len(inputs) > 1:
            raise Unreadable(
                "PolynomialFeatures multiplies columns with each other; sampling is used instead"
            )
        odd = int(powers.sum()) % 2
        sources.append(FeatureSource(int(inputs[0]), odd) if len(inputs) else FeatureSource(-1, 1))
    return sources


def _missing_sign(step: Any) -> int:
    """Numbers stay in order, unless one of them stands for a missing value."""
    mark = step.missing_values
    return int(not isinstance(mark, int | float | np.number) or bool(np.isnan(mark)))


def _imputed(step: Any, width: int) -> list[FeatureSource]:
    sign = _missing_sign(step)
    # a column of which nothing was known in training is left out
    empty = [isinstance(s, float) and bool(np.isnan(s)) for s in step.statistics_]
    kept = [j for j in range(width) if step.keep_empty_features or not empty[j]]
    marks = [] if step.indicator_ is None else step.indicator_.features_.tolist()
    return [FeatureSource(j, sign) for j in kept + marks]


def _missing_marks(step: Any, width: int) -> list[FeatureSource]:
    return [FeatureSource(int(j), _missing_sign(step)) for j in step.features_]


RULES: dict[str | None, Callable[[Any, int], list[FeatureSource]]] = {
    **dict.fromkeys(GROWING, lambda step, width: _same(width)),
    "KBinsDiscretizer": _bins,
    "OneHotEncoder": _one_hot,
    "OrdinalEncoder": _ordinal,
    "TargetEncoder": _target,
    "SplineTransformer": _splines,
    "PolynomialFeatures": _powers,
    "SimpleImputer": _imputed,
    "MissingIndicator": _missing_marks,
}
