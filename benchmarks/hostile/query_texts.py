"""Write conditions by the grammar and beyond it, and read them."""

from __future__ import annotations

import datetime as dt

import numpy as np

from expecta import ChowLiu, CircuitRegressor, DomainError, Encoder
from expecta.ask.language.query import Query

from .mutations import pick

ASKED_SHARE = 0.01  # of the conditions that can be read: asked of a model too
N = 40
RNG = np.random.default_rng(0)
TABLE = {
    "age": RNG.integers(18, 80, N).tolist(),
    "smoker": RNG.choice(["yes", "no"], N).tolist(),
    "body mass": RNG.normal(25, 4, N).tolist(),
    "é`": RNG.choice(["a'b", 'c"d', "\\", "é", ""], N).tolist(),
    "flag": (RNG.random(N) < 0.5).tolist(),
    "day": [dt.date(2024, 1, 1) + dt.timedelta(int(k)) for k in RNG.integers(0, 99, N)],
    "at": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=int(k)) for k in range(N)],
    "lasts": [dt.timedelta(seconds=int(k)) for k in RNG.integers(0, 999, N)],
    "mixed": ([1, "1", 2.5, True] * N)[:N],
    "nothing": [None] * N,
    "and": RNG.integers(0, 3, N).tolist(),
}
GOOD = {
    "age": ["30", "45", "18.5", "-1", "1e308", "79", "0"],
    "smoker": ["'yes'", '"no"'],
    "`body mass`": ["25.5", "20", "30.25", "24", "-1e-300", "1e999"],
    "`é```": ["'a\\'b'", '"c\\"d"', "'\\\\'", "'é'", "''"],
    "flag": ["true", "false"],
    "day": ["'2024-02-01'", "'2024-01-15'", "'2023-12-31'"],
    "at": ["'2024-01-01T05:00'", "'2024-01-02'", "'2024-01-01T05:00:00+02:00'"],
    "lasts": ["'0:05:00'", "300", "'1 day'"],
    "mixed": ["1", "'1'", "2.5", "true"],
    "nothing": ["1"],
    "`and`": ["0", "1", "2"],
}
FEW_ROWS = {name: cells[:4] for name, cells in TABLE.items()}
ODD = [
    "nan",
    "inf",
    "None",
    "'" + "z" * 500 + "'",
    "9" * 400,
    "0.1e-400",
    "'2024-13-99'",
    "+5",
    "'",
]
ODD_COLUMNS = ["agee", "``", "`", "and", "é", "_", "x" * 300]
VALUES = [*ODD, *(value for values in GOOD.values() for value in values)]
ORDERED = ("age", "`body mass`", "day", "at", "lasts", "`and`")
SIGNS = ["==", "!=", "<", "<=", ">", ">=", "=", "<>", "is", "in", "not in", "=>"]
MARKS = [*"()[],'\"`\\=<>!&|~#;:+-*/%^.$@?{} \t\n\r\0\u2028\ufeff\ud800é", "and", "or", "not", "in"]


class QueryAttack:
    """Texts of conditions by number."""

    def __init__(self, seed):
        self.seed = seed
        self.encoder = Encoder(max_bins=8).fit(TABLE)
        density = ChowLiu(encoder=Encoder(max_bins=8))
        self.model = CircuitRegressor(density=density, max_splits=2, random_state=0)
        self.model.fit(TABLE, np.arange(float(N)))

    def __call__(self, case):
        rng = np.random.default_rng([self.seed, case % 2**32])
        text = condition(rng, int(rng.integers(5)))
        if rng.random() < 0.5:
            text = garbled(text, rng)
        if rng.random() < 0.001:
            text = extreme(text, rng)
        try:
            query = Query.read(text, self.encoder)
            query.evidence(self.encoder)
            query.matches(FEW_ROWS)
            assert str(query) == text.strip()
            if rng.random() < ASKED_SHARE or case < 0:
                self.model.ask(text)
                return "read and asked"
        except DomainError:
            return "refused"
        except Exception as problem:
            problem.add_note(f"query: {text!r:.2000}")
            raise
        return "read"


def fact(rng):
    """Return a column, and a function that picks a value, mostly one of the column's."""
    name = pick(rng, list(GOOD) if rng.random() < 0.97 else ODD_COLUMNS)
    good = GOOD.get(name, VALUES)
    return name, lambda: pick(rng, good if rng.random() < 0.97 else VALUES)


def condition(rng, depth):
    """Return a text that is mostly a condition."""
    how = rng.integers(8) if depth else rng.integers(3)
    name, value = fact(rng)
    if how == 0:
        signs = SIGNS[: 6 if name in ORDERED else 2] if rng.random() < 0.97 else SIGNS
        return f"{name} {pick(rng, signs)} {value()}"
    if how == 1 and name in ORDERED:
        sign = pick(rng, ["<", "<=", ">", ">="])
        return f"{value()} {sign} {name} {sign} {value()}"
    if how <= 2:
        values = ", ".join(value() for _ in range(rng.integers(rng.random() < 0.97, 5)))
        return f"{name} {'not ' * int(rng.integers(2))}in ({values})"
    if how == 3:
        return f"not {condition(rng, depth - 1)}"
    if how == 4:
        return f"({condition(rng, depth - 1)})"
    word = pick(rng, ["and", "or", "or", "AND", "&&"] if rng.random() < 0.1 else ["and", "or"])
    return f"{condition(rng, depth - 1)} {word} {condition(rng, depth - 1)}"


def garbled(text, rng):
    """Insert, remove, repeat and replace characters."""
    for _ in range(rng.integers(1, 5)):
        at, size = int(rng.integers(len(text) + 1)), int(rng.integers(1, 6))
        how = rng.integers(4)
        if how == 0:
            text = text[:at] + pick(rng, MARKS) + text[at:]
        elif how == 1:
            text = text[:at] + text[at + size :]
        elif how == 2:
            text = text[:at] + text[at : at + 4 * size] * int(rng.integers(1, 4)) + text[at:]
        else:
            text = text[:at] + chr(int(rng.integers(0x11_0000))) + text[at + 1 :]
    return text


def extreme(text, rng):
    """Make a text that is very long or very deep."""
    many = int(10 ** rng.uniform(1, 4.5))
    return pick(
        rng,
        [
            "(" * many + text + ")" * many,
            "not " * many + text,
            " or ".join([text] * min(many, 3_000)),
            " and ".join(f"age != {i}" for i in range(min(many, 5_000))),
            "age in (" + ", ".join(map(str, range(many))) + ")",
            text + " " * many,
            "`" * many + text,
            "'" + "\\" * many + "'" + text,
            "age < " + "9" * many,
            "0 < " * many + "age",
        ],
    )
