"""Pure. The codes with which a person lets a stopped query go on (docs/design/ownership.md)."""

import hashlib
from datetime import datetime
from enum import Enum
from typing import Final

from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import ProducerIdentity, TransactionRecord

# For a query that has no batch in the log.
NO_BATCH: Final = -1


class Risk(Enum):
    """The risk that a person accepts."""

    OLDER_LOG = "older-log"  # batches that this log does not have may be written twice
    OLDER_KAFKA = "older-kafka"  # rows that are committed in the log may be gone
    LOST_TOPIC = "lost-topic"  # rows that were committed to a deleted topic are gone
    EDITED_CHECKPOINT = "edited-checkpoint"  # source offsets were moved: rows come twice or never
    OTHER_OPTIONS = "other-options"  # nobody knows what a start with other options did

    def is_accepted_by(self, row: TransactionRecord) -> bool:
        """Whether the row accepts this risk."""
        return row.acknowledged is not None and row.acknowledged.startswith(f"{self.value}-")


def acknowledgement(risk: Risk, *facts: object) -> str:
    """The code that accepts `risk` in the state that `facts` describe."""
    digest = hashlib.blake2b(repr(facts).encode(), digest_size=4).hexdigest()
    return f"{risk.value}-{digest}"


def acknowledged_row(
    code: str,
    transactional_id: str,
    *,
    query_id: str,
    batch_id: int,
    cluster_id: str,
    at: datetime,
) -> TransactionRecord:
    """The row that keeps the code, under the query's own id. It belongs to no transaction."""
    return TransactionRecord(
        identity=ProducerIdentity(
            transactional_id=transactional_id, producer_id=-1, producer_epoch=-1
        ),
        transaction_timeout_ms=0,
        state=TransactionState.EMPTY,
        partitions=(),
        entry_timestamp=at,
        start_timestamp=None,
        query_id=query_id,
        run_id="",
        batch_id=batch_id,
        sink_partition=None,
        sink_partitions=0,
        digest="",
        input_digest="",
        cluster_id=cluster_id,
        acknowledged=code,
    )
