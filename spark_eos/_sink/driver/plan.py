"""Planner worker. Before a micro-batch or a batch write: check the job against the cluster, then
recover (step 1).

The cluster is checked at the first batch that this process plans for a query, and the query is
taken over from whichever driver had it before. Orphans are looked for then too, and whenever the
log has not moved since the batch before, or does not have that one as complete: it failed or was
stopped, and may have left something open. And every so often, because a task of a driver that was
overtaken may open one late, under an id that no batch uses again for long. All may happen in the
middle of a run, and are harmless there. A batch write has one batch, which is the first.
"""

from dataclasses import replace
from typing import Final

from spark_eos._endtxn.fence import abort_orphans
from spark_eos._failpoints import failpoint
from spark_eos._options import SinkOptions
from spark_eos._protocol.transactions.batch import RecoveredQuery
from spark_eos._recovery.edited_checkpoint import check_input_as_logged
from spark_eos._recovery.group_offsets import restore_group_offsets
from spark_eos._recovery.ownership import Ownership
from spark_eos._recovery.recover import recover
from spark_eos._session import Memory, Session
from spark_eos._sink.driver.preflight import check_cluster
from spark_eos._sink.driver.version import check_txn_version
from spark_eos.errors import OperatorError

# A look costs a request to each broker.
_LOOK_FOR_ORPHANS_EVERY_S: Final = 30.0


def plan(session: Session) -> RecoveredQuery:
    """Return what the tasks must know, when nothing of an earlier run is left over."""
    deadline, memory, now = session.deadline(), session.memory, session.clock.monotonic()
    is_first = not memory.planned or not session.is_streaming
    if is_first:
        check_cluster(session.options, session.cluster, deadline)
    if not session.has_log:
        return RecoveredQuery(query_id=session.query_id, recovered_at=session.clock.monotonic())
    log = session.newest_log()
    owner = Ownership(session)
    if not is_first and owner.is_overtaken():
        memory.planned = False
        raise owner.fenced()
    if is_first or not _has_gone_on(memory, log.last_batch_id(session.query_id)):
        _check_same_query(session)
        owner.take_over(deadline)
        if session.is_streaming:
            check_input_as_logged(session, deadline)
    recovered = recover(session, deadline)
    if not session.is_streaming:
        check_txn_version(session, recovered, deadline)
    if is_first or _may_have_orphans(memory, recovered, now):
        abort_orphans(session, deadline)
        memory.orphans_at = now
    if is_first and recovered.complete:  # behind the orphans: an open one may move the group
        restore_group_offsets(session, deadline)
    memory.planned, memory.last_batch_id = True, recovered.last_batch_id
    failpoint("planned")
    return replace(recovered, recovered_at=session.clock.monotonic())


def _has_gone_on(memory: Memory, last_batch_id: int | None) -> bool:
    """Whether the log has a newer batch than before. If not, the query may have been started again,
    on a log that may have been restored.
    """
    if last_batch_id is None or memory.last_batch_id is None:
        return last_batch_id is not None
    return last_batch_id > memory.last_batch_id


def _may_have_orphans(memory: Memory, recovered: RecoveredQuery, now: float) -> bool:
    is_long_ago = now - memory.orphans_at > _LOOK_FOR_ORPHANS_EVERY_S
    return (
        is_long_ago or not _has_gone_on(memory, recovered.last_batch_id) or not recovered.complete
    )


def _check_same_query(session: Session) -> None:
    """A log inside of the checkpoint belongs to one query: the one that the checkpoint is of."""
    options, log, query_id = session.options, session.log, session.query_id
    if not isinstance(options, SinkOptions) or options.log_is_shared:
        return
    if log.knows(query_id) or log.version == 0:
        return
    raise OperatorError(
        f"the transaction log in checkpointLocation '{options.checkpoint_location}' holds another"
        f" query than {query_id}: the checkpoint's file 'metadata' was replaced, and"
        " the last batch could be written twice. Restore it, or start with a new checkpointLocation"
    )
