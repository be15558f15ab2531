"""Found by Spark itself, so that `format("txnkafka")` works after a plain install.

At its start Spark imports every top-level module named `pyspark_*` and registers the class it
calls `DefaultSource` (see `pyspark/sql/worker/lookup_data_sources.py`). It has no other use.
"""

from spark_eos._datasource import TxnKafkaDataSource as DefaultSource

__all__ = ["DefaultSource"]
