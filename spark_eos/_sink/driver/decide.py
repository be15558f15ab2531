"""Commit worker. Step 5: decide. One Delta commit, and the batch is committed for good.

First every transaction is looked at: it must be as its task left it, in the topics that it wrote
to, and no other driver may have taken the query over. Then the rows go into the log
from the very snapshot that was looked at, guarded by (query id, batch id): of two drivers one wins.
Until the append returns nothing was decided, and any error means that Spark runs the batch again.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from spark_eos._deadline import OUTDATED_S, Backoff, Deadline
from spark_eos._failpoints import failpoint
from spark_eos._log import TransactionLog
from spark_eos._protocol.transactions.batch import RecoveredQuery, RunningBatch
from spark_eos._protocol.transactions.decision import (
    check_prepared,
    check_same_topics,
    decision_rows,
    is_stale,
)
from spark_eos._protocol.transactions.ownership import Token
from spark_eos._protocol.transactions.replay import check_same_batch, check_same_partitions
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import TransactionDescription, TransactionRecord
from spark_eos._recovery.ownership import Ownership
from spark_eos._session import Session
from spark_eos.errors import FencedError, SparkEosError


def is_visible_already(batch: RunningBatch, recovered: RecoveredQuery, log: TransactionLog) -> bool:
    """Whether the batch ran again after it was committed: then there is nothing to decide.

    Raises where what is in the log and what ran now are not the same batch.
    """
    now = (log.newest_entry(batch.query_id), log.driver(batch.query_id))
    if now != (recovered.newest_entry, recovered.driver):
        raise FencedError(
            f"another driver moved the log to batch {log.last_batch_id(batch.query_id)} of query"
            f" {batch.query_id} while this one ran batch {batch.batch_id} after"
            f" {recovered.last_batch_id}. Only one may run: this one stops"
        )
    if recovered.last_batch_id is None or batch.batch_id > recovered.last_batch_id:
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
    if batch.batch_id < recovered.last_batch_id or recovered.complete:
        return True
    if logged is not None and not recovered.rows_complete:
        check_same_partitions(logged, batch.results)
    return False


def check(session: Session, batch: RunningBatch, recovered_at: float, deadline: Deadline) -> None:
    """Raise unless every transaction is open, has time left, and can be ended. For a batch write
    without a log.

    Topics and leaders first: what times out between the look and the end must be little.
    """
    check_topics(session, batch, deadline)
    _check_transactions(session, batch, _describe(session, batch, None, deadline), recovered_at)


def check_topics(session: Session, batch: RunningBatch, deadline: Deadline) -> None:
    """Raise unless the topics are the ones that were written to, and have leaders."""
    coordinator = session.cluster.coordinator
    check_same_topics(batch, coordinator.await_leaders(batch.written, batch.topic_ids, deadline))


def _check_transactions(
    session: Session,
    batch: RunningBatch,
    found: Mapping[str, TransactionDescription | None],
    recovered_at: float,
) -> None:
    check_prepared(
        batch,
        found,
        now_ms=session.clock.time() * 1000,
        age_at_most_ms=(session.clock.monotonic() - recovered_at) * 1000,
    )


def _describe(
    session: Session, batch: RunningBatch, owner: Ownership | None, deadline: Deadline
) -> dict[str, TransactionDescription | None]:
    """The batch's transactions, and in the same request the query's own id."""
    ids = [prepared.identity.transactional_id for _, prepared in batch.transactions]
    if not ids:
        return {}
    if owner is not None:
        ids += owner.watched_ids(deadline)
    backoff = Backoff(deadline.at_most_s(OUTDATED_S))
    while True:
        found = session.cluster.coordinator.describe(ids, deadline)
        ask_again = is_stale(batch, found) or (
            owner is not None and owner.is_outdated(found, deadline)
        )
        if not ask_again or not backoff.wait():
            return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided: the rows of the transactions that are now to be completed, and the move of
    the query's own epoch that comes before; None where nobody else can know the query.
    """

    records: tuple[TransactionRecord, ...]
    token: Token | None


def decide(
    session: Session, batch: RunningBatch, recovered_at: float, deadline: Deadline
) -> Decision:
    """Write the decision."""
    log, coordinator, owner = session.log, session.cluster.coordinator, Ownership(session)
    last, at = log.last_batch(batch.query_id), log.next_timestamp(batch.query_id)
    token: Token | None = None
    try:
        check_topics(session, batch, deadline)
        found = _describe(session, batch, owner, deadline)
        _check_transactions(session, batch, found, recovered_at)
        here = replace(batch, cluster_id=coordinator.cluster_id(deadline))
        rows = decision_rows(here, last, found, at)
        if batch.transactions:
            token = owner.next_token(found, deadline)
    except SparkEosError:
        _give_up_offsets(session, batch, deadline)
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
            _give_up_offsets(session, batch, deadline)
            raise
    return Decision(records=decided, token=token)


def _give_up_offsets(session: Session, batch: RunningBatch, deadline: Deadline) -> None:
    """End the driver's own transaction: no task's message names it, so `abort` may not find it."""
    if batch.offsets is not None:
        with suppress(SparkEosError):
            session.cluster.coordinator.end(
                [batch.offsets.identity], committed=False, deadline=deadline
            )
