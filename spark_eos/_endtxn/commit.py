"""Planner and commit worker. Steps 1 and 6: the one place that commits what is decided.

EndTxn(commit) with the logged producer id and epoch completes a transaction, or asks for its
outcome: it is idempotent under the pinned version. If the coordinator refuses (the id was used
since, or the transaction timed out), the data shows the outcome.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_eos._deadline import Deadline
from spark_eos._endtxn.decided_here import check_decided_here
from spark_eos._endtxn.fence import abort_orphans
from spark_eos._kafka.coordinator.client import EndAnswer, txn_error
from spark_eos._protocol.transactions.acknowledgement import Risk, acknowledgement
from spark_eos._protocol.transactions.fate import Fate
from spark_eos._protocol.transactions.outcome import AUTHORIZATION, Api, Outcome, error_name
from spark_eos._protocol.transactions.transaction import TransactionRecord
from spark_eos._protocol.transactions.transactional_id import parse_transactional_id
from spark_eos._session import Session
from spark_eos.errors import BrokerUnreachableError, CorruptLogError, TopicReplacedError


def _raise_if_not_allowed(
    first: TransactionRecord, answers: Mapping[str, EndAnswer], servers: str
) -> None:
    """A missing right does not end a transaction: it is open and stays decided."""
    for name, answer in answers.items():
        if answer.code in AUTHORIZATION:
            error = txn_error(servers, Api.END_TXN, name, answer.code, error_name(answer.code))
            raise error.preceded_by(
                f"batch {first.batch_id} of query {first.query_id} is decided, but this user has"
                " lost a right. Grant it and start the query again before the batch's transactions"
                " time out: "
            )


def _check_ids(records: Sequence[TransactionRecord]) -> None:
    """A row that was written by hand must not end a transaction of another query."""
    for record in records:
        parsed = parse_transactional_id(record.identity.transactional_id)
        if parsed is None or parsed.query_id != record.query_id:
            raise CorruptLogError(
                "the transaction log has '{transactional_id}' in batch {batch_id} of query"
                " {query_id}, which is not an id of this query. Nothing was ended. The log was"
                " changed by hand: restore it, or start with a new checkpointLocation or txnAppId",
                transactional_id=record.identity.transactional_id,
                batch_id=record.batch_id,
                query_id=record.query_id,
            )


def await_topics(
    session: Session, records: Sequence[TransactionRecord], deadline: Deadline
) -> dict[str, str | None]:
    """Wait for each partition's leader; return replaced topics with new ids (design/kafka.md)."""
    written = {p.topic_partition for record in records for p in record.partitions}
    ids = dict(pair for record in records for pair in record.topic_ids)
    return session.cluster.coordinator.await_leaders(written, ids, deadline)


def replaced_code(first: TransactionRecord, replaced: Mapping[str, str | None]) -> str:
    """The code with which a person accepts the loss."""
    facts = (first.query_id, first.batch_id, *sorted(replaced.items()))
    return acknowledgement(Risk.LOST_TOPIC, *facts)


def replaced_error(
    first: TransactionRecord, replaced: Mapping[str, str | None]
) -> TopicReplacedError:
    """The error for a decided batch whose topic is gone."""
    fields = {"batch_id": first.batch_id, "query_id": first.query_id}
    gone = [topic for topic, now in replaced.items() if now is None]
    if gone:
        return TopicReplacedError(
            "topic '{topic}' was deleted after batch {batch_id} of query {query_id} was decided."
            " The batch's rows in it are lost. Create the topic and start the query again: the next"
            " error says how to write the rows to the new topic",
            topic=gone[0],
            **fields,
        )
    topic, now = next(iter(replaced.items()))
    return TopicReplacedError(
        "topic '{topic}' was deleted and created again after batch {batch_id} of query {query_id}"
        " was decided (its id is {topic_id} now). The batch's rows in it are lost, and none of them"
        " is in the new topic. To write them there, set option {option} to '{code}' for one start."
        " Rows that the batch has committed to other topics are not written again",
        topic=topic,
        topic_id=now,
        option="acknowledge",
        code=replaced_code(first, replaced),
        **fields,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The fate of each transaction, and the coordinator's reason where it refused."""

    fates: dict[str, Fate]
    refusals: dict[str, str]


def commit_decided(
    session: Session,
    records: Sequence[TransactionRecord],
    deadline: Deadline,
    *,
    end_orphans: bool = False,
) -> Completion:
    """Commit decided transactions, and return which are committed. Raises while one is unknown.

    Pass `end_orphans` if every other open transaction of the query is abandoned. Such a transaction
    would hold back the look at the data or the group (docs/design/recovery.md).
    """
    if not records:
        return Completion(fates={}, refusals={})
    _check_ids(records)
    check_decided_here(session, records, deadline)
    replaced = await_topics(session, records, deadline)
    if replaced:
        raise replaced_error(records[0], replaced)
    cluster = session.cluster
    answers = cluster.coordinator.end(
        [r.identity for r in records], committed=True, deadline=deadline
    )
    _raise_if_not_allowed(records[0], answers, cluster.config.bootstrap_servers)
    unknown = [name for name, answer in answers.items() if answer.outcome is Outcome.UNKNOWN]
    if unknown:
        raise BrokerUnreachableError(
            "batch {batch_id} of query {query_id} is decided, but {servers} did not confirm within"
            " the deadline that {transactional_id} and {others} more are committed ({reason})."
            " Nothing is lost. Start the query again when the brokers answer: it completes the"
            " batch",
            batch_id=records[0].batch_id,
            query_id=records[0].query_id,
            servers=cluster.config.bootstrap_servers,
            transactional_id=unknown[0],
            others=len(unknown) - 1,
            reason=error_name(answers[unknown[0]].code),
        )
    found = {name: Fate.COMMITTED for name, a in answers.items() if a.outcome is Outcome.DONE}
    refused = [r for r in records if r.identity.transactional_id not in found]
    if refused and end_orphans:
        abort_orphans(session, deadline)
    if refused:
        looked = [(r.identity.transactional_id, r.partitions) for r in refused if not r.group_id]
        found |= cluster.fates(looked, deadline)
    for r in refused:
        if r.group_id and r.source_offsets:  # it has no records: only its group shows the outcome
            name = r.identity.transactional_id
            found[name] = cluster.groups.offsets_fate(r.group_id, r.source_offsets, deadline)
    names = [r.identity.transactional_id for r in refused]
    return Completion(fates=found, refusals={n: error_name(answers[n].code) for n in names})
