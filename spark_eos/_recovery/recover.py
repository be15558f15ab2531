"""Planner worker. Step 1: recover, before the tasks of a batch start.

A task first fences its transactional id. That would abort what the last run decided and did not
complete. In the common case this costs a look at the log's tail and at one file of the checkpoint:
if `commits/<last batch>` is there, the batch is complete. See docs/design/recovery.md.
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
    """Complete the last decided batch of the query, or find out what is left of it."""
    query_id, log = session.query_id, session.log
    last_batch_id = log.last_batch_id(query_id)
    if last_batch_id is None or session.has_commit(last_batch_id):
        return _as_logged(session)
    batch = log.last_batch(query_id)
    if batch is None and not session.is_streaming and not log.has_lost_rows(query_id):
        return _as_logged(session)  # the version had no rows, or it is complete and expired
    if batch is None:
        raise OutcomeUnknownError(
            "the log's last batch of query {query_id} is {batch_id}, and its rows were taken out of"
            " the transaction log at {location}, by a RESTORE to an older version for example."
            " Restore the newest version that has them, and start the query again. If there is"
            " none, see whether the rows of the batch are in the topic, and write what is missing"
            " by hand. Then start with a new checkpointLocation or txnAppId",
            query_id=query_id,
            batch_id=last_batch_id,
            location=log.location,
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
        end_orphans=True,  # decided ones are asked to commit first, so an open one is not decided
    )
    plan = plan_recovery(batch, found.fates | lost)
    _raise_if_unclear(plan, found)
    failpoint("surveyed")
    rows = plan.rows(log.next_timestamp(query_id))
    if code is not None:
        rows = tuple(replace(row, acknowledged=code) for row in rows)
    if rows:
        log.append(query_id, batch.batch_id, rows)
    return replace(
        _as_logged(session),
        complete=plan.verdict is Verdict.ALL_COMMITTED,
        rows_complete=plan.rows_complete,
        committed_partitions=plan.committed_partitions,
        committed_offsets=any(r.sink_partition is None for r in plan.committed),
    )


def _accepted_loss(
    session: Session, batch: LoggedBatch, deadline: Deadline
) -> tuple[str | None, dict[str, Fate]]:
    """The code with which a person gave up the rows in a replaced topic, and the fates of the
    transactions that wrote to it.
    """
    acknowledged = session.options.acknowledge
    if acknowledged is None or not batch.decided:
        return None, {}
    replaced = await_topics(session, batch.decided, deadline)
    code = replaced_code(batch.decided[0], replaced)
    if not replaced or code != acknowledged:
        return None, {}
    return code, give_up_lost(session, batch.decided, replaced, deadline)


def _as_logged(session: Session) -> RecoveredQuery:
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
    fields: dict[str, object] = {
        "batch_id": record.batch_id,
        "query_id": record.query_id,
        "transactional_id": record.identity.transactional_id,
        "producer_id": record.identity.producer_id,
        "epoch": record.identity.producer_epoch,
        "refusal": found.refusals.get(record.identity.transactional_id),
        "places": ", ".join(f"{p.topic_partition}@{p.first_offset}" for p in record.partitions),
    }
    if plan.verdict is Verdict.STILL_OPEN:
        raise RetriableError(
            "batch {batch_id} of query {query_id} is decided, but the coordinator refuses to commit"
            " {transactional_id}, producer {producer_id} epoch {epoch} ({refusal}). Its outcome"
            " cannot be read yet: an open transaction holds back the last stable offset of"
            " {places}. Find it with kafka-transactions.sh find-hanging, end it, and start the"
            " query again",
            **fields,
        )
    raise OutcomeUnknownError(
        "batch {batch_id} of query {query_id} is decided, but the coordinator refuses to commit"
        " {transactional_id}, producer {producer_id} epoch {epoch} ({refusal}). Its records in"
        " {places} are deleted or compacted away: nobody can tell whether it was committed. Compare"
        " the topic with the source for this batch, and write what is missing by hand. Then start"
        " with a new checkpointLocation",
        **fields,
    )
