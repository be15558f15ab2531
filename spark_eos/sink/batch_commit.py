"""Planner and commit worker. The driver's part of a batch write.

The same steps as of a micro-batch, without a checkpoint: the completion is logged at once, because
there may never be a next batch that could carry it.
"""

import logging
from collections.abc import Sequence

from spark_eos.endtxn.fence import abort_orphans
from spark_eos.errors import SparkEosError
from spark_eos.failpoints import failpoint
from spark_eos.protocol.decision import completion_rows
from spark_eos.protocol.replay import QueryTail
from spark_eos.recovery.ownership import Ownership
from spark_eos.recovery.recover import recover
from spark_eos.session import Session
from spark_eos.sink.abort import FailedBatch, end_failed
from spark_eos.sink.cluster import check_cluster
from spark_eos.sink.commit import decide_and_complete
from spark_eos.sink.commit_without_log import commit_without_log
from spark_eos.sink.decide import is_visible_already
from spark_eos.sink.message import TaskMessage, same_batch, written_batch
from spark_eos.sink.version import check_txn_version, check_written_rows, version_of

_LOG = logging.getLogger(__name__)


def plan_write(session: Session) -> QueryTail:
    """Planner worker. What the tasks must know of the log, when an earlier run is completed."""
    deadline = session.deadline()
    check_cluster(session.options, session.cluster, deadline)
    if not session.has_log:
        return QueryTail(query_id=session.query_id)
    session.newest_log()
    Ownership(session).take_over(deadline)
    tail = recover(session, deadline)
    check_txn_version(session, tail, deadline)
    abort_orphans(session, deadline)
    failpoint("planned")
    return tail


def commit_write(session: Session, messages: Sequence[TaskMessage]) -> None:
    """Return when every row is visible."""
    deadline, version = session.deadline(), version_of(session)
    if not session.has_log:
        commit_without_log(session, messages, deadline)
        return
    tail = same_batch(messages, version)
    batch = written_batch(messages, len(messages))
    if is_visible_already(batch, tail, session.newest_log()):
        check_written_rows(session, batch.results)
        return
    decide_and_complete(session, batch, messages[0].planned_at, deadline)
    try:
        _log_completion(session)
    except SparkEosError:
        # Do not fail: the rows are visible, and the next run logs it.
        _LOG.warning("version %d is complete, and not logged so", version, exc_info=True)


def _log_completion(session: Session) -> None:
    log, query_id = session.log, session.query_id
    last = log.last_batch(query_id)
    if last is not None and last.pending:
        rows = completion_rows(last, log.next_timestamp(query_id))
        log.append(query_id, last.batch_id, rows)
    log.maintain()


def abort_write(session: Session, messages: Sequence[TaskMessage], sink_partitions: int) -> None:
    """End whatever is open of a write that failed; never what is decided."""
    failed = FailedBatch(
        query_id=session.query_id,
        batch_id=version_of(session),
        messages=messages,
        sink_partitions=sink_partitions,
    )
    if session.has_log:
        session.newest_log()
    elif failed.may_be_committing:
        return  # it may have sent its first commit request: see commit_without_log
    end_failed(session, failed, running=lambda: written_batch(messages, sink_partitions))
