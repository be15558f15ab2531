"""Commit worker. Step 5: decide. One Delta commit, and the batch is committed for good.

First every transaction is looked at: it must be as its task left it, in the topics that it wrote
to, and no other driver may have taken the query over. Then the rows go into the log
from the very snapshot that was looked at, guarded by (query id, batch id): of two drivers one wins.
Until the append returns nothing was decided, and any error means that Spark runs the batch again.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from spark_eos.deadline import OUTDATED_S, Backoff, Deadline
from spark_eos.errors import FencedError, SparkEosError
from spark_eos.failpoints import failpoint
from spark_eos.kafka.coordinator import CoordinatorClient
from spark_eos.log import TransactionLog
from spark_eos.protocol.batch import LoggedBatch
from spark_eos.protocol.decision import (
    RunningBatch,
    check_prepared,
    check_same_topics,
    decision_rows,
    is_from_the_past,
)
from spark_eos.protocol.ownership import Token
from spark_eos.protocol.replay import QueryTail, check_same_batch, check_same_partitions
from spark_eos.protocol.state import TransactionState
from spark_eos.protocol.transaction import TransactionDescription, TransactionRecord
from spark_eos.recovery.ownership import Ownership


def is_visible_already(batch: RunningBatch, tail: QueryTail, log: TransactionLog) -> bool:
    """Whether the batch ran again after it was committed: then there is nothing to decide.

    Raises where what is in the log and what ran now are not the same batch.
    """
    now = (log.newest_entry(batch.query_id), log.driver(batch.query_id))
    if now != (tail.newest_entry, tail.driver):
        raise FencedError(
            f"another driver moved the log to batch {log.last_batch_id(batch.query_id)} of query"
            f" {batch.query_id} while this one ran batch {batch.batch_id} after"
            f" {tail.last_batch_id}. Only one may run: this one stops"
        )
    if tail.last_batch_id is None or batch.batch_id > tail.last_batch_id:
        return False
    logged = log.batch(batch.query_id, batch.batch_id)
    if logged is None and batch.is_batch_write:  # long complete, and expired
        return True
    check_same_batch(
        logged,
        query_id=batch.query_id,
        batch_id=batch.batch_id,
        input_digest=batch.input_digest,
        older_input_digest=batch.older_input_digest,
        results=batch.results,
    )
    if batch.batch_id < tail.last_batch_id or tail.complete:
        return True
    if logged is not None and not tail.rows_complete:
        check_same_partitions(logged, batch.results)
    return False


def check(
    batch: RunningBatch,
    last: LoggedBatch | None,
    coordinator: CoordinatorClient,
    planned_at: float,
    at: datetime,
    deadline: Deadline,
) -> tuple[TransactionRecord, ...]:
    """Look at each transaction; returns the rows of the decision that nothing stands against.

    Topics and leaders first: what times out between the look and the end must be little.
    """
    check_same_topics(batch, coordinator.await_leaders(batch.written, batch.topic_ids, deadline))
    found = _describe(batch, coordinator, None, deadline)
    return _rows(batch, last, coordinator, found, planned_at, at, deadline)


def _rows(
    batch: RunningBatch,
    last: LoggedBatch | None,
    coordinator: CoordinatorClient,
    descriptions: Mapping[str, TransactionDescription | None],
    planned_at: float,
    at: datetime,
    deadline: Deadline,
) -> tuple[TransactionRecord, ...]:
    check_prepared(
        batch,
        descriptions,
        now_ms=time.time() * 1000,
        age_at_most_ms=(time.monotonic() - planned_at) * 1000,
    )
    here = replace(batch, cluster_id=coordinator.cluster_id(deadline))
    return decision_rows(here, last, descriptions, at)


def _describe(
    batch: RunningBatch,
    coordinator: CoordinatorClient,
    ownership: Ownership | None,
    deadline: Deadline,
) -> dict[str, TransactionDescription | None]:
    """The batch's transactions, and in the same request the query's own id."""
    ids = [prepared.identity.transactional_id for _, prepared in batch.transactions]
    if not ids:
        return {}
    if ownership is not None:
        ids += ownership.watched_ids(deadline)
    backoff = Backoff(deadline.at_most_s(OUTDATED_S))
    while True:
        found = coordinator.describe(ids, deadline)
        is_outdated = is_from_the_past(batch, found) or (
            ownership is not None and ownership.is_outdated(found, deadline)
        )
        if not is_outdated or not backoff.wait():
            return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided: the rows of the transactions that are now to be completed, and the move of
    the query's own epoch that comes before; None where nobody else can know the query.
    """

    records: tuple[TransactionRecord, ...]
    token: Token | None


def decide(
    batch: RunningBatch,
    *,
    log: TransactionLog,
    coordinator: CoordinatorClient,
    ownership: Ownership | None,
    planned_at: float,
    deadline: Deadline,
) -> Decision:
    """Write the decision."""
    last, at = log.last_batch(batch.query_id), log.next_timestamp(batch.query_id)
    token: Token | None = None
    try:
        replaced = coordinator.await_leaders(batch.written, batch.topic_ids, deadline)
        check_same_topics(batch, replaced)
        found = _describe(batch, coordinator, ownership, deadline)
        rows = _rows(batch, last, coordinator, found, planned_at, at, deadline)
        if ownership is not None and batch.transactions:
            token = ownership.next_token(found, deadline)
    except SparkEosError:
        _give_up_offsets(batch, coordinator, deadline)
        raise
    decided = tuple(
        row
        for row in rows
        if row.state is TransactionState.PREPARE_COMMIT and row.batch_id == batch.batch_id
    )
    failpoint("checked")
    if decided or any(row.state is TransactionState.EMPTY for row in rows):
        try:
            log.append(batch.query_id, batch.batch_id, rows, token)
        except FencedError:  # refused for certain: another driver was first
            _give_up_offsets(batch, coordinator, deadline)
            raise
    return Decision(records=decided, token=token)


def _give_up_offsets(
    batch: RunningBatch, coordinator: CoordinatorClient, deadline: Deadline
) -> None:
    """End the driver's own transaction: no task's message names it, so `abort` may not find it."""
    if batch.offsets is not None:
        with suppress(SparkEosError):
            coordinator.end([batch.offsets.identity], committed=False, deadline=deadline)
