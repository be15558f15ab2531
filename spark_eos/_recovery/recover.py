"""Planner worker. Step 1: recover, before the tasks of a batch start.

Before, because a task's first act is to fence its transactional id, and that would abort what the
last run decided and did not complete. In the common case this costs a look at the log's tail and at
one file of the checkpoint: `commits/<last batch>` is there, so the batch is complete.
"""

from dataclasses import replace

from spark_eos._deadline import Deadline
from spark_eos._endtxn.commit import Completion, await_topics, commit_decided, replaced_code
from spark_eos._endtxn.lost_topic import give_up_lost
from spark_eos._failpoints import failpoint
from spark_eos._protocol.transactions.batch import LoggedBatch, RecoveredQuery
from spark_eos._protocol.transactions.fate import Fate
from spark_eos._protocol.transactions.recovery_plan import RecoveryPlan, Verdict, plan_recovery
from spark_eos._recovery.ownership import Ownership
from spark_eos._session import Session
from spark_eos.errors import OutcomeUnknownError, RetriableError


def recover(session: Session, deadline: Deadline) -> RecoveredQuery:
    """Complete the last decided batch of the query, or find out what is left of it.

    A batch write has no checkpoint: it logs its completion itself.
    """
    query_id, log = session.query_id, session.log
    last_batch_id = log.last_batch_id(query_id)
    if last_batch_id is None or session.has_commit(last_batch_id):
        return _complete(session)
    batch = log.last_batch(query_id)
    if batch is None and not session.is_streaming and not log.has_lost_rows(query_id):
        return _complete(session)  # a version without rows, or long complete and expired
    if batch is None:
        raise OutcomeUnknownError(
            f"the log's last batch of query {query_id} is {last_batch_id}, and its rows were taken"
            f" out of the transaction log at {log.location}, by a RESTORE to an older version for"
            " example. Restore the newest version that has them, and start the query again. Where"
            " there is none, see whether the rows of the batch are in the topic, write what is"
            " missing by hand, and start with a new checkpointLocation or txnAppId"
        )
    if batch.pending:
        log.sync()
    if batch.decided:
        Ownership(session).complete_move(deadline)
    code, lost = _accepted_loss(session, batch, deadline)
    found = commit_decided(
        session,
        [r for r in batch.decided if r.identity.transactional_id not in lost],
        deadline,
        end_orphans=True,  # what is decided was just asked to commit: what is still open was not
    )
    plan = plan_recovery(batch, found.fates | lost)
    _raise_if_unclear(plan, found)
    failpoint("surveyed")
    rows = plan.rows(log.next_timestamp(query_id))
    if code is not None:
        rows = tuple(replace(row, acknowledged=code) for row in rows)
    if rows:
        log.append(query_id, batch.batch_id, rows)
    return RecoveredQuery(
        query_id=query_id,
        last_batch_id=batch.batch_id,
        newest_entry=log.newest_entry(query_id),
        driver=log.driver(query_id),
        complete=plan.verdict is Verdict.ALL_COMMITTED,
        rows_complete=plan.rows_complete,
        committed_partitions=plan.committed_partitions,
        committed_offsets=any(r.sink_partition is None for r in plan.committed),
    )


def _accepted_loss(
    session: Session, batch: LoggedBatch, deadline: Deadline
) -> tuple[str | None, dict[str, Fate]]:
    """Where a person has said to go on without a topic that was replaced: what they said, and what
    became of the transactions that wrote to it.
    """
    acknowledged = session.options.acknowledge
    if acknowledged is None or not batch.decided:
        return None, {}
    replaced = await_topics(session, batch.decided, deadline)
    code = replaced_code(batch.decided[0], replaced)
    if not replaced or code != acknowledged:
        return None, {}
    return code, give_up_lost(session, batch.decided, replaced, deadline)


def _complete(session: Session) -> RecoveredQuery:
    query_id, log = session.query_id, session.log
    return RecoveredQuery(
        query_id=query_id,
        last_batch_id=log.last_batch_id(query_id),
        newest_entry=log.newest_entry(query_id),
        driver=log.driver(query_id),
    )


def _raise_if_unclear(plan: RecoveryPlan, found: Completion) -> None:
    if not plan.unclear:
        return
    record = plan.unclear[0]
    name = record.identity.transactional_id
    where = (
        f"batch {record.batch_id} of query {record.query_id} is decided; the coordinator refuses"
        f" to commit {name}, producer {record.identity.producer_id} epoch"
        f" {record.identity.producer_epoch} ({found.refusals.get(name)})"
    )
    if plan.verdict is Verdict.STILL_OPEN:
        raise RetriableError(
            f"{where}, and an open transaction holds back the last stable offset of"
            f" {_places(plan)}, so that its outcome cannot be read yet. Find it with"
            " kafka-transactions.sh find-hanging, end it, and start the query again"
        )
    raise OutcomeUnknownError(
        f"{where}, and its records in {_places(plan)} are deleted or compacted away: nobody can"
        " tell whether it was committed. Compare the topic with the source for this batch, write"
        " what is missing by hand, and start with a new checkpointLocation"
    )


def _places(plan: RecoveryPlan) -> str:
    return ", ".join(f"{p.topic_partition}@{p.first_offset}" for p in plan.unclear[0].partitions)
