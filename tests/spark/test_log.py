"""What Spark sees of the log, with nothing but its own Delta reader."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from chispa import assert_df_equality

from spark_eos._log import COMPACTED_VIEW_SQL, TransactionLog, retention
from spark_eos._log.files import FileStore
from spark_eos._log.record import SCHEMA, to_table
from spark_eos._log.table import LogTable
from tests.unit.log.builders import OTHER, QUERY, decide

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "string": "string",
    "timestamp[us, tz=UTC]": "timestamp",
}
ARRAYS = {
    "transaction_partitions": "topic: string, partition: int, first_offset: bigint,"
    " last_offset: bigint, records: bigint",
    "topic_ids": "topic: string, topic_id: string",
}


@pytest.mark.slow
def test_spark_reads_what_was_appended_at_any_stage_of_maintenance(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

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
    table = LogTable(FileStore(location, {}))
    retention.compact(table)
    check()
    table.delta.create_checkpoint()
    written += decide(log, range(20, 26))
    table.refresh()
    retention.clean_log(table)
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
    return ", ".join(
        f"{field.name} array<struct<{ARRAYS[field.name]}>>"
        if field.name in ARRAYS
        else f"{field.name} {TYPES[str(field.type)]}"
        for field in SCHEMA
    )


REFUSED_BY_DELTA = (
    "DELETE FROM delta.`{}`",
    "UPDATE delta.`{}` SET transaction_status = 'CompleteAbort'",
    "INSERT OVERWRITE delta.`{0}` SELECT * FROM delta.`{0}` WHERE false",
    "TRUNCATE TABLE delta.`{}`",
)
HARMLESS = (
    "OPTIMIZE delta.`{}`",
    "VACUUM delta.`{}`",
    "VACUUM delta.`{}` LITE",
    "ALTER TABLE delta.`{}` ADD COLUMNS (note STRING)",
    "ALTER TABLE delta.`{}` SET TBLPROPERTIES ('delta.appendOnly' = 'false')",
)


@pytest.mark.slow
def test_commands_of_spark_on_the_log(spark: SparkSession, tmp_path: Path) -> None:
    """Between two runs: it is append-only, and goes on."""
    location = str(tmp_path / "log")
    written = decide(TransactionLog.open(location), range(4))
    for command in REFUSED_BY_DELTA:
        with pytest.raises(Exception, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
            spark.sql(command.format(location))
    for batch_id, command in enumerate(HARMLESS, start=4):
        spark.sql(command.format(location)).collect()
        written += decide(TransactionLog.open(location), [batch_id])
        assert TransactionLog.open(location).records().num_rows == len(written)
    spark.sql(f"RESTORE TABLE delta.`{location}` TO VERSION AS OF 2").collect()
    log = TransactionLog.open(location)
    assert (log.last_batch_id(QUERY), log.last_batch(QUERY)) == (8, None)
