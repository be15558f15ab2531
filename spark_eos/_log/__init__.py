"""The transaction log: a Delta table that acts as Kafka's `__transaction_state`.

Written by drivers (the planner and commit workers) and by the command line, read by anything that
reads Delta. The only package that knows deltalake.
"""

from spark_eos._log.record import COMPACTED_VIEW_SQL
from spark_eos._log.retention import Retention
from spark_eos._log.transaction_log import TransactionLog

__all__ = ["COMPACTED_VIEW_SQL", "Retention", "TransactionLog"]
