"""The session of the tests has what the tests rely on: Delta, and Spark's own Kafka connector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chispa import assert_df_equality

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_eos.testing import EmbeddedKafka
    from tests.conftest import TopicFactory


def test_session_writes_and_reads_a_delta_table(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(10)
    table = str(tmp_path / "table")
    rows.write.format("delta").save(table)
    assert_df_equality(
        spark.read.format("delta").load(table), rows, ignore_nullable=True, ignore_row_order=True
    )


def test_session_writes_and_reads_kafka_with_sparks_own_connector(
    spark: SparkSession, kafka: EmbeddedKafka, topic: TopicFactory
) -> None:
    name = topic(partitions=2)
    options = {"kafka.bootstrap.servers": kafka.bootstrap_servers}
    rows = spark.range(10).selectExpr("CAST(id AS STRING) AS value")
    rows.write.format("kafka").options(**options).option("topic", name).save()
    back = spark.read.format("kafka").options(**options).option("subscribe", name).load()
    assert_df_equality(
        back.selectExpr("CAST(value AS STRING)"), rows, ignore_nullable=True, ignore_row_order=True
    )
