"""Planner worker. Step 1: check the cluster, take the query over and recover it.

The cluster is checked at the first plan of a query in this process; a batch write has one plan.
Orphans are looked for then, after a batch that may have failed, and every 30 s: a task of an
overtaken driver may open a transaction late, under an id that no batch uses for long.
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

_LOOK_FOR_ORPHANS_EVERY_S: Final = 30.0  # each look costs a request to each broker


def plan(session: Session) -> RecoveredQuery:
    """Return what the tasks must know, after ending what earlier runs left."""
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
    if is_first and recovered.complete:  # an open orphan would hold back the group
        restore_group_offsets(session, deadline)
    memory.planned, memory.last_batch_id = True, recovered.last_batch_id
    failpoint("planned")
    return replace(recovered, recovered_at=session.clock.monotonic())


def _has_gone_on(memory: Memory, last_batch_id: int | None) -> bool:
    """Whether the log has a newer batch than at the last plan.

    If not, the query may have been started again, on a log that may have been restored.
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
    """A log inside the checkpoint must know the checkpoint's query: see ownership.md."""
    options, log, query_id = session.options, session.log, session.query_id
    if not isinstance(options, SinkOptions) or options.log_is_shared:
        return
    if log.knows(query_id) or log.version == 0:
        return
    raise OperatorError(
        "the transaction log in {option} '{location}' holds another query than {query_id}. The"
        " checkpoint's file 'metadata' was replaced, and the last batch could be written twice."
        " Restore the file, or start with a new {option}",
        option="checkpointLocation",
        location=options.checkpoint_location,
        query_id=query_id,
    )
