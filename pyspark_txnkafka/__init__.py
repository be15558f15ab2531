"""Every process. Lets Spark find `format("txnkafka")` after a plain install.

At its start Spark imports each top-level module `pyspark_*` and registers the `DefaultSource` in it
(`pyspark/sql/worker/lookup_data_sources.py`). This module has no other use.
"""

from spark_eos._datasource import TxnKafkaDataSource as DefaultSource

__all__ = ["DefaultSource"]
