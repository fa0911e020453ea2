"""Whatever ``save`` accepts, ``load`` reads: the rest is refused before there is a file."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expecta import (
    ChowLiu,
    CircuitRegressor,
    Density,
    DomainError,
    Encoder,
    FormatError,
    NaiveBayes,
    Pair,
    ProbabilisticCircuit,
    Vtree,
    random_probabilistic,
    random_regression,
)
from expecta.circuits.probabilistic import ProbabilisticCircuit as P
from expecta.common.errors import ExpectaError
from expecta.files.schema import LOADERS, Kind, Record, Scalar, Value

LONG = "a" * 65_537
TABLE = {LONG: [1, 2, 3, 4] * 6, "b": ["x", "y"] * 12}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Encoder().fit(TABLE),
        lambda: ChowLiu().fit(TABLE),
        lambda: NaiveBayes("b").fit(TABLE),
        lambda: CircuitRegressor(density=ChowLiu(), max_splits=1).fit(TABLE, np.arange(24.0)),
    ],
)
def test_a_column_with_too_long_a_name(tmp_path, make):
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(DomainError, match=r"cannot hold this .*too long: more than 65,536"):
        make().save(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_pair_with_weights_that_are_not_normalised(tmp_path):
    vtree = Vtree.balanced(3)
    p, g = random_probabilistic(vtree, seed=0), random_regression(vtree, seed=0)
    wrong = P(p.structure, p.log_weight + 0.1)
    wrong.save(tmp_path / "p")
    Pair(p, g).save(tmp_path / "pair")
    data, weights = (tmp_path / "pair").read_bytes(), p.log_weight.tobytes()
    assert data.count(weights) == 1
    (tmp_path / "pair").write_bytes(data.replace(weights, wrong.log_weight.tobytes()))
    with pytest.raises(FormatError, match=r"pair: .*normalised"):
        Pair.load(tmp_path / "pair")
    assert not ProbabilisticCircuit.load(tmp_path / "p").properties.normalised.holds


class Even:
    """Refuses what its file may hold, for a reason that its fields do not know."""

    def __init__(self, number):
        self.number = number


def even(number):
    if number % 2:
        raise DomainError("the number is odd")
    return Even(number)


def test_what_would_be_refused_later_is_refused_now(tmp_path, monkeypatch):
    monkeypatch.setitem(LOADERS, "even", "load")
    kind = Kind("even", Record({"number": Scalar(int)}, even))
    kind.save(Even(2), tmp_path / "file")
    with pytest.raises(DomainError, match="cannot hold this even: the number is odd"):
        kind.save(Even(3), tmp_path / "file")
    assert kind.load(tmp_path / "file").number == 2
    free = Kind("even", Record({"value": Value()}))
    endless = []
    endless.append(endless)
    for value in (endless, [[[[[[1]]]]]], 10**5_000, object()):
        with pytest.raises(DomainError, match="cannot hold this even"):
            free.save({"value": value}, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_header_that_no_reader_takes(tmp_path):
    """The layout allows headers of 100 MB; more is refused before it is saved."""
    table = {
        "a": ["a" * 25_000_001, "b" * 25_000_001] * 2,
        "b": ["c" * 25_000_001, "d" * 25_000_000] * 2,
    }
    with pytest.raises(DomainError, match=r"cannot hold this encoder: .*(?i:header ?too ?large)"):
        Encoder().fit(table).save(tmp_path / "file")
    assert not (tmp_path / "file").exists()


cells = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(), max_size=5),
    st.dates(),
    st.datetimes(timezones=st.just(dt.UTC) | st.none()),
    st.timedeltas(),
)
columns = st.lists(cells, min_size=6, max_size=6) | st.sampled_from(
    [st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=3)]
).flatmap(lambda kind: st.lists(kind, min_size=6, max_size=6))
tables = st.dictionaries(st.text(st.characters(), max_size=8), columns, min_size=1, max_size=3)


@settings(max_examples=100)
@given(tables, st.sampled_from(["encoder", "density"]), st.data())
def test_what_is_saved_can_be_read(tmp_path_factory, table, kind, data):
    names = st.sampled_from(sorted(table))
    options = {
        "max_bins": data.draw(st.integers(2, 9)),
        "max_categories": data.draw(st.integers(2, 9)),
        "missing_is_value": data.draw(st.lists(names, max_size=2)) or False,
        "categorical": data.draw(st.lists(names, max_size=1)) or None,
    }
    try:
        encoder = Encoder(**options)
        value = encoder.fit(table) if kind == "encoder" else ChowLiu(encoder=encoder).fit(table)
    except ExpectaError:
        return  # such a table cannot be learned from
    path = tmp_path_factory.getbasetemp() / "saved"
    try:
        value.save(path)
    except DomainError:
        return  # it is told now, not when the file is read
    again = (Encoder if kind == "encoder" else Density).load(path)
    first = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == first
