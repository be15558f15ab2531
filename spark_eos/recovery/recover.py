"""Planner worker. Step 1: recover, before the tasks of a batch start.

Before, because a task's first act is to fence its transactional id, and that would abort what the
last run decided and did not complete. In the common case this costs a look at the log's tail and at
one file of the checkpoint: `commits/<last batch>` is there, so the batch is complete.
"""

from dataclasses import replace

from spark_eos.deadline import Deadline
from spark_eos.errors import OutcomeUnknownError, RetriableError
from spark_eos.failpoints import failpoint
from spark_eos.kafka.client_config import ClientConfig
from spark_eos.kafka.coordinator import CoordinatorClient
from spark_eos.log import TransactionLog
from spark_eos.protocol.batch import LoggedBatch
from spark_eos.protocol.fate import Fate
from spark_eos.protocol.recovery_plan import RecoveryPlan, Verdict, plan_recovery
from spark_eos.protocol.replay import QueryTail
from spark_eos.recovery.checkpoint import Checkpoint
from spark_eos.recovery.decided_here import check_decided_here
from spark_eos.recovery.lost_topic import give_up_lost
from spark_eos.recovery.orphans import abort_orphans
from spark_eos.recovery.ownership import Ownership
from spark_eos.recovery.survey import Survey, await_topics, replaced_code, survey


def recover(
    query_id: str,
    *,
    log: TransactionLog,
    checkpoint: Checkpoint | None,
    config: ClientConfig,
    coordinator: CoordinatorClient,
    ownership: Ownership | None,
    timeout_ms: int,
    deadline: Deadline,
) -> QueryTail:
    """Complete the last decided batch of the query, or find out what is left of it.

    A batch write has no checkpoint: it logs its completion itself.
    """
    last_batch_id = log.last_batch_id(query_id)
    if last_batch_id is None or (checkpoint and checkpoint.has_commit(last_batch_id)):
        return _complete_tail(query_id, log)
    batch = log.last_batch(query_id)
    if batch is None and checkpoint is None and not log.has_lost_rows(query_id):
        return _complete_tail(query_id, log)  # a version without rows, or long complete and expired
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
    if batch.decided and ownership is not None:
        ownership.complete_move(deadline)
    code, lost = _accepted_loss(batch, ownership, config, coordinator, deadline)
    found = survey(
        [r for r in batch.decided if r.identity.transactional_id not in lost],
        config=config,
        coordinator=coordinator,
        deadline=deadline,
        # What is decided was just asked to commit: whatever is still open was not.
        end_orphans=lambda: abort_orphans(
            query_id, coordinator=coordinator, timeout_ms=timeout_ms, deadline=deadline
        ),
    )
    plan = plan_recovery(batch, found.fates | lost)
    _raise_if_unclear(plan, found)
    if plan.verdict is Verdict.SOME_COMMITTED:
        check_decided_here(
            plan.committed, config=config, coordinator=coordinator, deadline=deadline
        )
    failpoint("surveyed")
    rows = plan.rows(log.next_timestamp(query_id))
    if code is not None:
        rows = tuple(replace(row, acknowledged=code) for row in rows)
    if rows:
        log.append(query_id, batch.batch_id, rows)
    return QueryTail(
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
    batch: LoggedBatch,
    ownership: Ownership | None,
    config: ClientConfig,
    coordinator: CoordinatorClient,
    deadline: Deadline,
) -> tuple[str | None, dict[str, Fate]]:
    """Where a person has said to go on without a topic that was replaced: what they said, and what
    became of the transactions that wrote to it.
    """
    if ownership is None or ownership.acknowledge is None or not batch.decided:
        return None, {}
    check_decided_here(batch.decided, config=config, coordinator=coordinator, deadline=deadline)
    replaced = await_topics(batch.decided, coordinator, deadline)
    code = replaced_code(batch.decided[0], replaced)
    if not replaced or code != ownership.acknowledge:
        return None, {}
    return code, give_up_lost(
        batch.decided, replaced, config=config, coordinator=coordinator, deadline=deadline
    )


def _complete_tail(query_id: str, log: TransactionLog) -> QueryTail:
    return QueryTail(
        query_id=query_id,
        last_batch_id=log.last_batch_id(query_id),
        newest_entry=log.newest_entry(query_id),
        driver=log.driver(query_id),
    )


def _raise_if_unclear(plan: RecoveryPlan, found: Survey) -> None:
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
    return ", ".join(
        f"{p.topic}-{p.partition}@{p.first_offset}" for p in plan.unclear[0].partitions
    )
