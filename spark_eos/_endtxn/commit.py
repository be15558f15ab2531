"""Planner and commit worker. Commit what is decided: the one place that does. Step 6 and recovery
both come through here.

EndTxn(commit) with the logged producer id and epoch is both the completion and the question what
became of a transaction: it is idempotent under the pinned version. Where the coordinator refuses
(the id was used since, or it timed the transaction out) the data itself is asked.
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
from spark_eos.errors import (
    BrokerUnreachableError,
    CorruptLogError,
    TopicReplacedError,
)


def _raise_if_not_allowed(
    first: TransactionRecord, answers: Mapping[str, EndAnswer], servers: str
) -> None:
    """A right that was taken away says nothing of a transaction: it is open, and stays decided."""
    for name, answer in answers.items():
        if answer.code in AUTHORIZATION:
            error = txn_error(servers, Api.END_TXN, name, answer.code, error_name(answer.code))
            raise error.preceded_by(
                f"batch {first.batch_id} of query {first.query_id} is decided, and this user has"
                " lost a right. Grant it and start the query again before the batch's transactions"
                " time out: "
            )


def _check_ids(records: Sequence[TransactionRecord]) -> None:
    """A row that was written by hand must not end a transaction of another query."""
    for record in records:
        parsed = parse_transactional_id(record.identity.transactional_id)
        if parsed is None or parsed.query_id != record.query_id:
            raise CorruptLogError(
                f"a row of batch {record.batch_id} of query {record.query_id} in the transaction"
                f" log names '{record.identity.transactional_id}', which is not an id of this"
                " query. Nothing was ended. The log was changed by hand: restore it, or start with"
                " a new checkpointLocation or txnAppId"
            )


def await_topics(
    session: Session, records: Sequence[TransactionRecord], deadline: Deadline
) -> dict[str, str | None]:
    """Return when each partition has a leader; the answer has the topics that were replaced, with
    their new id. An EndTxn would be answered with success there, and commit nothing.
    """
    written = {p.topic_partition for record in records for p in record.partitions}
    ids = dict(pair for record in records for pair in record.topic_ids)
    return session.cluster.coordinator.await_leaders(written, ids, deadline)


def replaced_code(first: TransactionRecord, replaced: Mapping[str, str | None]) -> str:
    """What a person has to say to go on."""
    facts = (first.query_id, first.batch_id, *sorted(replaced.items()))
    return acknowledgement(Risk.LOST_TOPIC, *facts)


def replaced_error(
    first: TransactionRecord, replaced: Mapping[str, str | None]
) -> TopicReplacedError:
    """The error for a decided batch whose topic is not there any more."""
    batch = f"batch {first.batch_id} of query {first.query_id}"
    gone = [topic for topic, now in replaced.items() if now is None]
    if gone:
        return TopicReplacedError(
            f"topic '{gone[0]}' was deleted after {batch} was decided, and rows of the batch went"
            " with it. Create the topic and start the query again: it then says how the rows can be"
            " written to the new topic"
        )
    topic, now = next(iter(replaced.items()))
    return TopicReplacedError(
        f"topic '{topic}' was deleted and created again after {batch} was decided (its id is {now}"
        " now), and rows of the batch went with it. Nothing of them was written to the new topic."
        " To write them there, set option acknowledge to"
        f" '{replaced_code(first, replaced)}' for one start. Rows that the batch has committed to"
        " other topics are not written again"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The fate of each transaction, and what the coordinator said where it refused."""

    fates: dict[str, Fate]
    refusals: dict[str, str]


def commit_decided(
    session: Session,
    records: Sequence[TransactionRecord],
    deadline: Deadline,
    *,
    end_orphans: bool = False,
) -> Completion:
    """Commit decided transactions and say which are committed. Raises while one is unknown.

    An open transaction of an attempt that was never decided would hold back the look at the data
    and at the group. Pass `end_orphans` if every other open transaction of the query is abandoned.
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
            f"batch {records[0].batch_id} of query {records[0].query_id} is decided, but"
            f" {cluster.config.bootstrap_servers} did not say within the deadline that {unknown[0]}"
            f" and {len(unknown) - 1} more are committed"
            f" ({error_name(answers[unknown[0]].code)}). Nothing is lost: start the query again"
            " when the brokers answer, and it completes the batch"
        )
    found = {name: Fate.COMMITTED for name, a in answers.items() if a.outcome is Outcome.DONE}
    refused = [r for r in records if r.identity.transactional_id not in found]
    if refused and end_orphans:
        abort_orphans(session, deadline)
    if refused:
        looked = [(r.identity.transactional_id, r.partitions) for r in refused if not r.group_id]
        found |= cluster.fates(looked, deadline)
    for r in refused:
        if r.group_id and r.source_offsets:  # it wrote no records: its group tells
            name = r.identity.transactional_id
            found[name] = cluster.groups.offsets_fate(r.group_id, r.source_offsets, deadline)
    return Completion(
        fates=found,
        refusals={
            r.identity.transactional_id: error_name(answers[r.identity.transactional_id].code)
            for r in refused
        },
    )
