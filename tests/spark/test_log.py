"""What Spark sees of the log, with nothing but its own Delta reader."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from chispa import assert_df_equality

from spark_eos.log import COMPACTED_VIEW_SQL, TransactionLog, retention
from spark_eos.log.files import FileStore
from spark_eos.log.record import SCHEMA, to_table
from tests.unit.log.builders import OTHER, decide

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "string": "string",
    "timestamp[us, tz=UTC]": "timestamp",
}


@pytest.mark.slow
def test_spark_reads_what_was_appended_at_any_stage_of_maintenance(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltalake import DeltaTable

    monkeypatch.setattr(retention, "KEEP_COMMITS", 4)
    location = str(tmp_path / "log")
    log = TransactionLog.open(location)
    written = decide(log, range(20)) + decide(log, range(3), query_id=OTHER, partitions=3)

    def check() -> None:
        expected = spark.createDataFrame(to_table(written).to_pandas(), schema=ddl())
        assert_df_equality(
            spark.read.format("delta").load(location),
            expected,
            ignore_row_order=True,
            ignore_nullable=True,
        )

    check()
    table, store = DeltaTable(location), FileStore(location, {})
    retention.compact(table, store)
    check()
    table.create_checkpoint()
    written += decide(log, range(20, 26))
    table.update_incremental()
    retention.clean_log(table, store)
    assert not (tmp_path / "log" / "_delta_log" / f"{0:020}.json").exists()
    check()


def test_compacted_view_is_the_newest_row_of_each_id(spark: SparkSession, tmp_path: Path) -> None:
    location = str(tmp_path / "log")
    log = TransactionLog.open(location)
    decide(log, range(4), partitions=3)
    decide(log, [4], partitions=2)
    decide(log, range(2), query_id=OTHER)
    expected = spark.createDataFrame(to_table(log.current()).to_pandas(), schema=ddl())
    assert expected.count() == 3 + 2
    assert_df_equality(
        spark.sql(COMPACTED_VIEW_SQL.format(location=location)),
        expected,
        ignore_row_order=True,
        ignore_nullable=True,
    )


def ddl() -> str:
    """The columns as the design names them, for Spark."""
    partition = (
        "struct<topic: string, partition: int, first_offset: bigint, last_offset: bigint,"
        " records: bigint>"
    )
    return ", ".join(
        f"{field.name} {TYPES.get(str(field.type), f'array<{partition}>')}" for field in SCHEMA
    )
