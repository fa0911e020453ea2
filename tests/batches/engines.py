"""Predict with other engines, as docs/batches.md shows: ENGINE MODEL INPUT OUTPUT."""

from __future__ import annotations

import os
import sys

import pyarrow as pa
from pyarrow import parquet

from expecta import predict_batches


def spark(model, source, target):
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    local = {"spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false"}
    session = SparkSession.builder.master("local[2]").config(map=local).getOrCreate()
    rows = session.read.parquet(source).repartition(3)

    def add_predictions(batches):
        return predict_batches(model, batches)

    schema = f"{rows._jdf.schema().toDDL()}, cost_predicted double"
    rows.mapInArrow(add_predictions, schema).write.parquet(target)
    session.stop()


def ray(model, source, target):
    import ray as engine

    engine.init(num_cpus=2, include_dashboard=False, log_to_driver=False)

    def add_predictions(table):
        return pa.Table.from_batches(predict_batches(model, table.to_batches()))

    rows = engine.data.read_parquet(source)
    rows.map_batches(add_predictions, batch_format="pyarrow", batch_size=50).write_parquet(target)
    engine.shutdown()


def duckdb(model, source, target):
    import duckdb as engine

    reading, writing = engine.connect(), engine.connect()
    rows = reading.sql(f"select * from read_parquet('{source}')").fetch_record_batch(50)
    schema, batches = streamed(predict_batches(model, rows))
    writing.register("predicted", pa.RecordBatchReader.from_batches(schema, batches))
    writing.sql(f"copy (select * from predicted) to '{target}' (format parquet)")


def streamed(batches):
    """The schema of the first batch, and all of them."""
    first = next(batches)

    def everything():
        yield first
        yield from batches

    return first.schema, everything()


def polars(model, source, target):
    import polars as engine

    def add_predictions(frame):
        batches = predict_batches(model, frame.to_arrow().to_batches())
        return engine.from_arrow(pa.Table.from_batches(batches))

    rows = engine.scan_parquet(source)
    schema = {**rows.collect_schema(), "cost_predicted": engine.Float64}
    rows.map_batches(add_predictions, schema=schema).sink_parquet(target)


def pyarrow(model, source, target):
    import pyarrow.dataset as ds

    first, batches = streamed(predict_batches(model, ds.dataset(source).to_batches(batch_size=50)))
    with parquet.ParquetWriter(target, first) as writer:
        for batch in batches:
            writer.write_batch(batch)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
