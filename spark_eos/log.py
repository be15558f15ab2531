"""Every process. For readers of the transaction log, with any Delta client (docs/design/log.md)."""

from spark_eos._log.record import COMPACTED_VIEW_SQL

__all__ = ["COMPACTED_VIEW_SQL"]
