"""The transaction log, for whoever reads it: it is a Delta table, so any Delta client can.

Its columns are described in docs/design/log.md.
"""

from spark_eos._log.record import COMPACTED_VIEW_SQL

__all__ = ["COMPACTED_VIEW_SQL"]
