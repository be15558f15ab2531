"""Exactly-once Kafka for PySpark Structured Streaming.

Runs in the driver, in Spark's Python workers and in the command line alike, so importing it loads
neither pyspark nor a Kafka client: an operator's command must start fast and without a JVM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_eos._foreach_batch import txn_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["__version__", "register", "txn_options"]

__version__ = "0.1.0"


def register(spark: SparkSession) -> None:
    """Make `format("txnkafka")` known to this session.

    Only needed where Spark did not find `pyspark_txnkafka` by itself at its start, for instance
    when the package came on the path later.
    """
    from spark_eos._datasource import TxnKafkaDataSource

    spark.dataSource.register(TxnKafkaDataSource)
