"""Commit worker. Steps 4 to 6 of a micro-batch or a batch write: offsets, decide, complete.

The completion of a micro-batch is logged with the next decision. The completion of a batch write is
logged at once, because there may be no next write.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

from spark_eos._deadline import Deadline
from spark_eos._failpoints import failpoint
from spark_eos._protocol.transactions.batch import RecoveredQuery, RunningBatch
from spark_eos._protocol.transactions.decision import completion_rows
from spark_eos._recovery.ownership import Ownership
from spark_eos._session import Session
from spark_eos._sink.driver.commit_without_log import commit_without_log
from spark_eos._sink.driver.complete import complete
from spark_eos._sink.driver.decide import decide, is_visible_already
from spark_eos._sink.driver.offsets import prepare_offsets
from spark_eos._sink.driver.version import check_written_rows
from spark_eos._sink.message import TaskMessage, running_batch, same_batch
from spark_eos.errors import SparkEosError

_LOG = logging.getLogger(__name__)


def commit(session: Session, messages: Sequence[TaskMessage], batch_id: int) -> None:
    """Return when every row of the batch is visible. Raise if the batch has to run again."""
    deadline = session.deadline()
    if not session.has_log:
        commit_without_log(session, messages, batch_id, deadline)
        return
    recovered = same_batch(messages, batch_id)
    batch = running_batch(session, messages, batch_id, len(messages))
    batch = _with_older_digest(session, batch, recovered)
    log = session.newest_log()
    if is_visible_already(batch, recovered, log):
        if batch.is_batch_write:
            check_written_rows(session, batch.results)
        return
    if recovered.moves_offsets(batch_id) and session.group_id is not None:
        prepared = prepare_offsets(session, session.group_id, batch_id, deadline)
        batch = replace(batch, offsets=prepared)
    _decide_and_complete(session, batch, recovered.recovered_at, deadline)
    if batch.is_batch_write:
        _log_completion(session, batch_id)
    else:
        log.maintain()


def _with_older_digest(
    session: Session, batch: RunningBatch, recovered: RecoveredQuery
) -> RunningBatch:
    """The log may have this batch with the input digest of an older release."""
    is_new = recovered.last_batch_id is None or batch.batch_id > recovered.last_batch_id
    if is_new or batch.is_batch_write:
        return batch
    older = session.checkpoint.input_digest_of_version_2(batch.batch_id)
    return replace(batch, older_input_digest=older)


def _decide_and_complete(
    session: Session, batch: RunningBatch, recovered_at: float, deadline: Deadline
) -> None:
    decision = decide(session, batch, recovered_at, deadline)
    failpoint("decided")
    if decision.token is not None and decision.records:
        Ownership(session).move_on(decision.token, deadline)
        failpoint("moved")
    complete(session, decision.records, deadline)
    failpoint("completed")


def _log_completion(session: Session, version: int) -> None:
    log, query_id = session.log, session.query_id
    try:
        last = log.last_batch(query_id)
        if last is not None and last.pending:
            rows = completion_rows(last, log.next_timestamp(query_id))
            log.append(query_id, version, rows)
        log.maintain()
    except SparkEosError:
        # Do not fail: the rows are visible, and the next run logs the completion.
        _LOG.warning("version %d is complete, but this is not logged", version, exc_info=True)
