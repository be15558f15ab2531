"""Driver and snapshot reader. The transaction log: docs/design/log.md has its decisions.

It is a Delta table that acts as Kafka's `__transaction_state`. Only this package imports deltalake.
"""

from spark_eos._log.record import COMPACTED_VIEW_SQL
from spark_eos._log.retention import Retention
from spark_eos._log.transaction_log import TransactionLog

__all__ = ["COMPACTED_VIEW_SQL", "Retention", "TransactionLog"]
