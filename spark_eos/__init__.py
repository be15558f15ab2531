"""Every process. Exactly-once Kafka for PySpark Structured Streaming.

This module loads no pyspark and no Kafka client: the command line starts fast and without a JVM.
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

    This is for a session whose Spark did not find `pyspark_txnkafka` at its start.
    """
    from spark_eos._datasource import TxnKafkaDataSource

    spark.dataSource.register(TxnKafkaDataSource)
