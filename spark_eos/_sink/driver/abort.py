"""Commit worker. A batch failed or the query was stopped: end what is open, undo nothing decided.

If the log has decided the batch, `abort` completes it. If not, `abort` logs its intent and then
aborts the transactions that the messages name: `commit` may still run, and the log takes either the
intent or the decision. Spark calls `abort` before killed tasks have ended, so the id of a partition
without a message is fenced until its task must have ended. See docs/design/abort.md.
"""

import logging
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from spark_eos._deadline import Deadline
from spark_eos._endtxn.fence import fence_open, fence_running
from spark_eos._protocol.transactions.batch import LoggedBatch
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
    """A batch that failed. `messages` are those of its tasks that succeeded."""

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
        """Whether Spark may have called `commit`. Spark does so when every task has succeeded."""
        return len(self.messages) == self.sink_partitions


@contextmanager
def not_raising(what: str) -> Iterator[None]:
    """Log an error instead of raising it: Spark would show it in place of the batch's own error."""
    try:
        yield
    except Exception:
        _LOG.exception("%s could not be aborted completely", what)


def abort(
    session: Session, messages: Sequence[TaskMessage], batch_id: int, sink_partitions: int
) -> None:
    """Complete what is decided, end what is open, and log the end."""
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
        return  # the other driver owns the decision, and what is open under these ids
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
    """`commit` may have sent its first request. After that nothing may be aborted."""
    if not failed.may_be_committing:
        _abort_prepared(session, failed.identities, (), deadline)
        _fence_silent(session, failed, deadline)


def _log_intent(
    session: Session, failed: FailedBatch, owner: Ownership, deadline: Deadline
) -> None:
    """Log the abort, unless `commit` certainly cannot decide the batch.

    Raises if the log cannot be written and `commit` may still run. Nothing is ended then.
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
    except FencedError:  # the decision came first
        log.refresh()
    except SparkEosError:
        if failed.may_be_committing:
            raise
        _LOG.warning("the abort of batch %d is not logged", failed.batch_id, exc_info=True)


def _may_be_decided(session: Session, failed: FailedBatch, deadline: Deadline) -> bool:
    """Whether the log and the transactions are unchanged since the plan and the tasks.

    If not, no intent is logged: its row would stop a driver that has taken over these ids.
    """
    if not failed.identities:
        return False
    ids = [identity.transactional_id for identity in failed.identities]
    found = session.cluster.coordinator.describe(ids, deadline)
    session.log.refresh()  # after `describe`: a transaction ends only after its reason is logged
    recovered = failed.messages[0].recovered
    return session.log.newest_entry(failed.query_id) == recovered.newest_entry and all(
        is_as_left(identity, found[identity.transactional_id]) for identity in failed.identities
    )


def _log_end(session: Session, failed: FailedBatch) -> None:
    """Complete a logged intent. This decides nothing, because no record means abort."""
    log = session.log
    batch, at = log.last_batch(failed.query_id), log.next_timestamp(failed.query_id)
    pending = batch.pending if batch is not None else ()
    own = [record for record in pending if record.identity in failed.identities]
    if own:
        ends = [record.moved_to(TransactionState.COMPLETE_ABORT, at) for record in own]
        log.append(failed.query_id, failed.batch_id, ends)


def _is_overtaken(session: Session, failed: FailedBatch) -> bool:
    """Whether another driver has gone on. That driver then owns what is open under these ids.

    A driver that starts when the batch is complete has nothing open: its tasks write no row.
    """
    last = session.log.last_batch(failed.query_id)
    if last is None or last.batch_id < failed.batch_id:
        return False
    return last.batch_id > failed.batch_id or last.is_whole


def _fence_silent(session: Session, failed: FailedBatch, deadline: Deadline) -> None:
    """Fence the ids of partitions without a message until no task of them can be running."""
    silent = set(range(failed.sink_partitions)) - {m.task.partition for m in failed.messages}
    fence_running(session, [session.transactional_id(p) for p in sorted(silent)], deadline)


def _logged(session: Session, failed: FailedBatch) -> LoggedBatch | None:
    log, query_id = session.log, failed.query_id
    return log.last_batch(query_id) if log.last_batch_id(query_id) == failed.batch_id else None


def _decided_identities(session: Session, failed: FailedBatch) -> set[ProducerIdentity]:
    """The transactions with which the log has decided the batch.

    `abort` must not log their end: the response to a successful `commit` may be lost.
    """
    batch = _logged(session, failed)
    records = batch.records if batch is not None else ()
    return {r.identity for r in records if r.state is not TransactionState.PREPARE_ABORT}


def _complete_if_decided(
    session: Session, failed: FailedBatch, owner: Ownership, deadline: Deadline
) -> bool:
    """Whether the batch was decided. If so, it is complete when this returns."""
    batch = _logged(session, failed)
    if batch is None or not batch.decided:
        return False
    session.log.sync()
    try:
        owner.complete_move(deadline)
    except StaleLogError:  # another log has gone on, so nobody completes this decision
        session.cluster.coordinator.end(failed.identities, committed=False, deadline=deadline)
        raise
    complete(session, batch.decided, deadline)
    return True


def _abort_prepared(
    session: Session,
    identities: Sequence[ProducerIdentity],
    decided: Container[ProducerIdentity],
    deadline: Deadline,
) -> bool:
    """Abort what the messages name, except what is decided. Return whether this ended them all.

    Another driver may have decided the batch with other transactions. A refused transaction has
    ended, or its id has a newer owner. An unknown one ends with the next owner or the time-out.
    """
    undecided = [identity for identity in identities if identity not in decided]
    if not undecided:
        return True
    answers = session.cluster.coordinator.end(undecided, committed=False, deadline=deadline)
    return all(answer.outcome is Outcome.DONE for answer in answers.values())
