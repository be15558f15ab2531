"""Commit worker. Step 5: decide. One Delta commit decides the batch for good.

Before it, each transaction must be as its task left it, its topics must be the same, and no other
driver may own the query. The rows extend the snapshot of the log that was checked, so only one of
two drivers can append. Until the append returns, any failure means that Spark runs the batch again.
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
    """Whether the batch ran again after it was committed. Then there is nothing to decide.

    Raises if the log has moved since the plan, or if its batch is not the one that ran.
    """
    now = (log.newest_entry(batch.query_id), log.driver(batch.query_id))
    if now != (recovered.newest_entry, recovered.driver):
        raise FencedError(
            "another driver moved the log to batch {logged} of query {query_id} while this driver"
            " ran batch {batch_id} after batch {planned}. Only one may run: this driver stops",
            logged=log.last_batch_id(batch.query_id),
            query_id=batch.query_id,
            batch_id=batch.batch_id,
            planned=recovered.last_batch_id,
        )
    if recovered.last_batch_id is None or batch.batch_id > recovered.last_batch_id:
        return False
    logged = log.batch(batch.query_id, batch.batch_id)
    if logged is None and batch.is_batch_write:  # complete, and expired from the log
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
    """For a batch write without a log: raise unless each transaction is open and can be ended.

    The transactions come last, to leave little time for a time-out before they are committed.
    """
    check_topics(session, batch, deadline)
    _check_transactions(session, batch, _describe(session, batch, None, deadline), recovered_at)


def check_topics(session: Session, batch: RunningBatch, deadline: Deadline) -> None:
    """Raise unless the topics are those that were written to, and have leaders."""
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
    """The batch's transactions, and the query's own id in the same request."""
    ids = [prepared.identity.transactional_id for _, prepared in batch.transactions]
    if not ids:
        return {}
    if owner is not None:
        ids += owner.watched_ids(deadline)
    backoff = Backoff(deadline.at_most_s(OUTDATED_S))
    while True:
        found = session.cluster.coordinator.describe(ids, deadline)
        ask_again = is_stale(batch, found) or (owner and owner.is_outdated(found, deadline))
        if not ask_again or not backoff.wait():
            return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The transactions to complete. `token`, if any, moves the query's epoch before that."""

    records: tuple[TransactionRecord, ...]
    token: Token | None


def decide(
    session: Session, batch: RunningBatch, recovered_at: float, deadline: Deadline
) -> Decision:
    """Check the batch and append the decision to the log."""
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
    own = (row for row in rows if row.batch_id == batch.batch_id)
    decided = tuple(row for row in own if row.state is TransactionState.PREPARE_COMMIT)
    failpoint("checked")
    if decided or any(row.state is TransactionState.EMPTY for row in rows):
        try:
            log.append(batch.query_id, batch.batch_id, rows, token)
        except FencedError:  # certainly refused: another driver came first
            _give_up_offsets(session, batch, deadline)
            raise
    return Decision(records=decided, token=token)


def _give_up_offsets(session: Session, batch: RunningBatch, deadline: Deadline) -> None:
    """End the offsets transaction here: no task's message names it for `abort`."""
    if batch.offsets is not None:
        own = [batch.offsets.identity]
        with suppress(SparkEosError):
            session.cluster.coordinator.end(own, committed=False, deadline=deadline)
