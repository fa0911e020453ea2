"""Streams of batches: the library's predictions, in order; what is at fault is named."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expecta import BatchError, DomainError, MissingColumnsWarning, config_context, predict_batches
from expecta.batches import model_cache
from expecta.estimators.expected_estimator import ExpectedEstimator
from served import people


def incomplete(n, seed=1):
    table = people(n, seed)[0]
    hidden = np.random.default_rng(seed).random(table.shape) < 0.5
    return pa.Table.from_pandas(table.mask(hidden), preserve_index=False)


def answered(model, batches, **asked):
    return pa.Table.from_batches(list(predict_batches(model, batches, **asked)))


@settings(max_examples=4, deadline=None)
@given(cuts=st.lists(st.integers(0, 60), max_size=6))
def test_any_batches_give_the_predictions_of_the_library(models, cuts):
    table = incomplete(60)
    ends = [0, *sorted(cuts), 60]  # equal cuts are empty batches
    batches = [
        pa.RecordBatch.from_arrays(
            [pa.array(column.to_pylist(), column.type) for column in table.slice(a, b - a).columns],
            schema=table.schema,
        )
        for a, b in pairwise(ends)
    ]
    found = answered(models["cost"], batches, std=True, error=True)
    mean, std = models["cost"].predict(table, return_std=True)
    assert found.select(table.column_names).equals(table)  # in their order
    assert np.array_equal(found["cost_predicted"], mean)
    assert np.array_equal(found["cost_std"], std)
    assert np.array_equal(found["cost_error"], np.zeros(60))


def test_intervals_and_quantiles(models):
    table = incomplete(6)
    found = answered(
        models["cost"], table.to_batches(max_chunksize=4), interval=0.8, quantiles=[0.5]
    )
    ends = models["cost"].predict_interval(table, 0.8)
    assert np.array_equal(np.stack([found["cost_low"], found["cost_high"]], 1), ends)
    assert "cost_quantile_0.5" in found.column_names


def test_classes(models):
    table = incomplete(40).drop_columns("region")
    found = answered(models["region"], table.to_batches(max_chunksize=7), proba=True)
    assert found["region_predicted"].to_pylist() == models["region"].predict(table).tolist()
    shares = models["region"].predict_proba(table)
    names = [f"region_probability_{label}" for label in models["region"].classes_]
    assert np.array_equal(np.stack([found[name] for name in names], 1), shares)


def test_no_batches_and_empty_ones(models):
    assert list(predict_batches(models["cost"], [])) == []
    (empty,) = predict_batches(
        models["cost"],
        incomplete(3).slice(0, 0).to_batches()
        or [pa.RecordBatch.from_pylist([], schema=incomplete(3).schema)],
    )
    assert empty.num_rows == 0
    assert empty.schema.field("cost_predicted").type == pa.float64()


def test_rows_that_are_impossible_or_all_unknown_have_the_types_of_others(models):
    labels = answered(models["smoker"], incomplete(5).drop_columns("smoker").to_batches())
    assert labels.schema.field("smoker_predicted").type == pa.string()


def test_a_model_file_is_loaded_once(cost_file, monkeypatch):
    loads = []
    load = ExpectedEstimator.load
    monkeypatch.setattr(ExpectedEstimator, "load", lambda path: loads.append(path) or load(path))
    monkeypatch.setattr(model_cache, "_models", type(model_cache._models)())
    batches = incomplete(6).to_batches()
    first, second = (answered(cost_file, batches) for _ in range(2))
    assert first.equals(second)
    assert len(loads) == 1
    cost_file.touch()  # another version, as far as anyone can tell
    answered(str(cost_file), batches)
    assert len(loads) == 2


def bad_batches(change):
    good = incomplete(8).to_batches()[0]
    return [good, good, change(good)]


def error_of(model, batches, **asked):
    done = []
    with pytest.raises(BatchError) as caught:
        done.extend(predict_batches(model, batches, **asked))
    assert len(done) == 2  # what came before is answered
    assert isinstance(caught.value, DomainError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.batch, again.row) == (str(caught.value), 2, caught.value.row)
    return caught.value


def with_column(batch, name, values):
    return batch.set_column(batch.schema.names.index(name), name, values)


@pytest.mark.parametrize("row", [0, 5, 7])
def test_a_bad_cell_is_named(models, row):
    def change(batch):
        return with_column(batch, "age", pa.array([np.inf if i == row else 30.0 for i in range(8)]))

    error = error_of(models["cost"], bad_batches(change))
    assert (error.batch, error.row, error.before) == (2, row, 16)
    assert str(error).startswith(f"batch 2, row {row} (row {16 + row} of all): column 'age'")


def test_a_missing_column_in_a_later_batch_is_refused(models):
    error = error_of(models["cost"], bad_batches(lambda b: b.drop_columns("age")))
    assert error.row is None
    assert "has no column 'age', which the first batch has" in str(error)
    error = error_of(models["cost"], bad_batches(lambda b: b.append_column("more", b["age"])))
    assert "has a column 'more', which the first batch lacks" in str(error)
    error = error_of(models["cost"], bad_batches(lambda b: b.select(b.schema.names[::-1])))
    assert "another order" in str(error)


def test_a_column_that_all_batches_lack_is_unknown(models):
    table = incomplete(8).drop_columns("age")
    with pytest.warns(MissingColumnsWarning, match="no column 'age'") as caught:
        found = answered(models["cost"], table.to_batches(max_chunksize=2))
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.array_equal(found["cost_predicted"], models["cost"].predict(table))
    with config_context(columns="strict"), pytest.raises(BatchError, match=r"batch 0: .*'age'"):
        answered(models["cost"], table.to_batches())


def test_a_missing_column_is_said_once_where_a_cell_is_at_fault(models):
    batch = incomplete(8).drop_columns("smoker").to_batches()[0]
    bad = with_column(batch, "age", pa.array([30.0] * 7 + [np.inf]))
    with (
        pytest.warns(MissingColumnsWarning) as caught,
        pytest.raises(BatchError, match="batch 0, row 7"),
    ):
        answered(models["cost"], [bad])
    assert len(caught) == 1


def test_another_type_becomes_that_of_the_first_batch_or_is_refused(models):
    good = incomplete(8).to_batches()[0]
    whole = with_column(good, "age", pa.array([30] * 8))
    narrow = with_column(good, "age", pa.array([30] * 8, pa.int16()))
    found = answered(models["cost"], [whole, narrow])
    assert found.schema.field("age").type == pa.int64()
    assert found["cost_predicted"][:8].equals(found["cost_predicted"][8:])
    cut = with_column(good, "age", pa.array([30.5] * 8))
    with pytest.raises(BatchError, match="batch 1: column 'age' is double here and int64"):
        answered(models["cost"], [whole, cut])


def test_an_unseen_category_is_unknown(models):
    table = incomplete(4)
    odd = table.set_column(1, "smoker", pa.array(["perhaps"] * 4))
    nothing = table.set_column(1, "smoker", pa.nulls(4, pa.string()))
    found, want = (answered(models["cost"], rows.to_batches()) for rows in (odd, nothing))
    assert found["cost_predicted"].equals(want["cost_predicted"])


def test_what_a_model_cannot_be_asked_is_told_before_any_batch(models):
    def batches():
        raise AssertionError("nothing is read")
        yield

    with pytest.raises(DomainError, match="proba is for classes"):
        next(predict_batches(models["cost"], batches(), proba=True))


def test_memory_is_that_of_one_batch(models):
    one = incomplete(500).combine_chunks().to_batches()[0]

    def peak(count):
        tracemalloc.start()
        for _ in predict_batches(models["cost"], (one for _ in range(count))):
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak(1)
    assert peak(20) < 1.5 * peak(2)


def test_a_null_that_the_first_batch_rules_out_is_named(models):
    whole = pa.schema([pa.field("age", pa.float64(), nullable=False)])
    first = pa.record_batch([pa.array([40.0])], schema=whole)
    later = pa.record_batch({"age": pa.array([None, 30.0])})
    with pytest.warns(MissingColumnsWarning), pytest.raises(BatchError, match="null") as error:
        list(predict_batches(models["cost"], [first, later]))
    assert error.value.batch == 1
