"""Commit worker. A micro-batch or a batch write failed, or the query was stopped: end what is open,
undo nothing that is decided.

The log is asked first. If the batch is decided (the commit failed behind the decision) it is
completed. Else the transactions that the messages name are aborted, in Kafka's own order: the
intent is logged before one ends. A query that is stopped while it commits has a `commit` that still
runs, in another process: of intent and decision the log takes one. A partition without a message
may still have a task running, because Spark calls `abort` before killed tasks have ended: its id
is fenced, and watched until Spark must have ended the task.
"""

import logging
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from spark_eos._deadline import Deadline
from spark_eos._endtxn.fence import fence_open, fence_running
from spark_eos._protocol.transactions.decision import abort_rows, is_as_left
from spark_eos._protocol.transactions.outcome import Outcome
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import ProducerIdentity
from spark_eos._recovery.ownership import Ownership
from spark_eos._session import Session
from spark_eos._sink.driver.complete import complete
from spark_eos._sink.message import TaskMessage, running_batch
from spark_eos.errors import FencedError, SparkEosError, StaleLogError

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedBatch:
    """A batch that failed. `messages` are those of its tasks that ended well."""

    query_id: str
    batch_id: int
    messages: Sequence[TaskMessage]
    sink_partitions: int

    @property
    def identities(self) -> list[ProducerIdentity]:
        """The transactions that the messages name."""
        return [m.result.transaction.identity for m in self.messages if m.result.transaction]

    @property
    def may_be_committing(self) -> bool:
        """Whether Spark may have called `commit`: it does when every task has ended well."""
        return len(self.messages) == self.sink_partitions


@contextmanager
def not_raising(what: str) -> Iterator[None]:
    """Tell an error to the log alone: Spark would show "Writing job failed" instead of the one that
    the batch failed with. What could not be ended here is ended by the next start or its time-out.
    """
    try:
        yield
    except Exception:
        _LOG.exception("%s could not be aborted whole", what)


def abort(
    session: Session, messages: Sequence[TaskMessage], batch_id: int, sink_partitions: int
) -> None:
    """Complete what is decided, end what is open, and tell the log of it."""
    deadline = session.deadline()
    failed = FailedBatch(
        query_id=session.query_id,
        batch_id=batch_id,
        messages=messages,
        sink_partitions=sink_partitions,
    )
    if not session.has_log:
        _end_unlogged(session, failed, deadline)
        return
    session.newest_log()
    owner = Ownership(session)
    _log_intent(session, failed, owner, deadline)
    decided = _decided_identities(session, failed)
    ended = _abort_prepared(session, failed.identities, decided, deadline)
    if owner.is_overtaken():
        return  # what is decided, and what is open under these ids, is the other's
    if _complete_if_decided(session, failed, owner, deadline):
        return
    if not decided.isdisjoint(failed.identities) or _is_overtaken(session, failed):
        return
    if session.group_id is not None:
        fence_open(session, session.transactional_id(None), deadline)
    _fence_silent(session, failed, deadline)
    if ended:
        _log_end(session, failed)


def _end_unlogged(session: Session, failed: FailedBatch, deadline: Deadline) -> None:
    """Of a batch write without a log. Where `commit` may run, it may have sent its first commit
    request, and nothing may be aborted any more: see commit_without_log.
    """
    if not failed.may_be_committing:
        _abort_prepared(session, failed.identities, (), deadline)
        _fence_silent(session, failed, deadline)


def _log_intent(
    session: Session,
    failed: FailedBatch,
    owner: Ownership,
    deadline: Deadline,
) -> None:
    """Log the abort, unless it is certain already that `commit` cannot decide the batch any more.

    Raises where the log cannot be written and `commit` may still run: what is open stays open then,
    for the next start or its time-out.
    """
    if not _may_be_decided(session, failed, deadline) or owner.is_overtaken():
        return
    log = session.log
    try:
        batch = running_batch(session, failed.messages, failed.batch_id, failed.sink_partitions)
        batch = replace(batch, cluster_id=session.cluster.coordinator.cluster_id(deadline))
        at = log.next_timestamp(failed.query_id)
        rows = abort_rows(batch, log.last_batch(failed.query_id), at)
        log.append(failed.query_id, failed.batch_id, rows)
    except FencedError:  # the decision was first
        log.refresh()
    except SparkEosError:
        if failed.may_be_committing:
            raise
        _LOG.warning("the abort of batch %d is not logged", failed.batch_id, exc_info=True)


def _may_be_decided(session: Session, failed: FailedBatch, deadline: Deadline) -> bool:
    """Whether nothing has happened yet to what the tasks left, in Kafka and in the log.

    A row moves the log, and a driver that took these ids over would be stopped by it.
    """
    if not failed.identities:
        return False
    ids = [identity.transactional_id for identity in failed.identities]
    found = session.cluster.coordinator.describe(ids, deadline)
    session.log.refresh()  # behind the look: whoever ended one has logged why before
    recovered = failed.messages[0].recovered
    return session.log.newest_entry(failed.query_id) == recovered.newest_entry and all(
        is_as_left(identity, found[identity.transactional_id]) for identity in failed.identities
    )


def _log_end(session: Session, failed: FailedBatch) -> None:
    """Behind the intent, if it was logged. It decides nothing: no record means abort."""
    log = session.log
    batch, at = log.last_batch(failed.query_id), log.next_timestamp(failed.query_id)
    pending = batch.pending if batch is not None else ()
    own = [record for record in pending if record.identity in failed.identities]
    if own:
        ends = [record.moved_to(TransactionState.COMPLETE_ABORT, at) for record in own]
        log.append(failed.query_id, failed.batch_id, ends)


def _is_overtaken(session: Session, failed: FailedBatch) -> bool:
    """Whether another driver has gone on: then what is open under these ids is the other's.

    It has no later than when the batch is complete. A driver that begins after that has nothing
    open: its tasks write no row.
    """
    last = session.log.last_batch(failed.query_id)
    if last is None or last.batch_id < failed.batch_id:
        return False
    return last.batch_id > failed.batch_id or last.is_whole


def _fence_silent(session: Session, failed: FailedBatch, deadline: Deadline) -> None:
    """Fence the ids of the partitions without a message, until no task of them can be left."""
    told = {message.task.partition for message in failed.messages}
    silent = [p for p in range(failed.sink_partitions) if p not in told]
    fence_running(session, [session.transactional_id(p) for p in silent], deadline)


def _decided_identities(session: Session, failed: FailedBatch) -> set[ProducerIdentity]:
    """The transactions with which the log has decided the batch. Whatever became of them is in the
    log, and is not for `abort` to tell: the answer of a `commit` that ended well may be lost.
    """
    log, query_id = session.log, failed.query_id
    batch = log.last_batch(query_id) if log.last_batch_id(query_id) == failed.batch_id else None
    records = batch.records if batch is not None else ()
    return {r.identity for r in records if r.state is not TransactionState.PREPARE_ABORT}


def _complete_if_decided(
    session: Session, failed: FailedBatch, owner: Ownership, deadline: Deadline
) -> bool:
    """Whether the batch was decided; then it is complete when this returns."""
    log = session.log
    if log.last_batch_id(failed.query_id) != failed.batch_id:
        return False
    batch = log.last_batch(failed.query_id)
    decided = batch.decided if batch is not None else ()
    if decided:
        log.sync()
        _complete_move(session, failed, owner, deadline)
    complete(session, decided, deadline)
    return bool(decided)


def _complete_move(
    session: Session, failed: FailedBatch, owner: Ownership, deadline: Deadline
) -> None:
    """Where another log has gone on, this decision counts for nobody: end what it left open."""
    try:
        owner.complete_move(deadline)
    except StaleLogError:
        coordinator = session.cluster.coordinator
        coordinator.end(failed.identities, committed=False, deadline=deadline)
        raise


def _abort_prepared(
    session: Session,
    identities: Sequence[ProducerIdentity],
    decided: Container[ProducerIdentity],
    deadline: Deadline,
) -> bool:
    """Abort what the messages name, but nothing that is decided. Another driver may have decided
    the same batch with transactions of its own: then none of these is. Returns whether each was
    ended here, by its own epoch.

    Whatever the answer: a transaction that is refused here has ended, or its id belongs to a newer
    attempt; one that is unknown is aborted by its id's next user or by its time-out.
    """
    undecided = [identity for identity in identities if identity not in decided]
    if not undecided:
        return True
    coordinator = session.cluster.coordinator
    answers = coordinator.end(undecided, committed=False, deadline=deadline)
    return all(answer.outcome is Outcome.DONE for answer in answers.values())
