"""Servers that are another cluster than the one on which a batch was decided.

It does not know the transactions, and its topics may have the same names, with records at the
very offsets that the log names: a cluster that another was mirrored to, for example.
"""

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from spark_eos._deadline import Deadline
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._log import TransactionLog
from spark_eos._options import batch_write_options, stream_options
from spark_eos._protocol.transactions.batch import RecoveredQuery
from spark_eos._protocol.transactions.decision import decision_rows
from spark_eos._session import read_session_of, session_of
from spark_eos._sink.driver import commit as commit_step
from spark_eos._sink.message import running_batch
from spark_eos._source.snapshot import Snapshot
from spark_eos.errors import OperatorError, OptionError, TransactionLostError
from tests.integration.test_commit_and_abort import Query, refuse_to_complete
from tests.steps import commit_batch, commit_write, plan_batch, plan_write

PARTITIONS = 2
RECORDS = 10


@pytest.fixture
def query(tmp_path, kafka, topic):
    return Query(tmp_path, kafka, topic(PARTITIONS))


@pytest.fixture
def elsewhere(query, kafka3):
    """The options of the query, for a cluster with a topic of the same name that has records."""
    servers = kafka3.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    created = admin.create_topics([NewTopic(query.topic, num_partitions=PARTITIONS)])
    created[query.topic].result(30)
    producer = Producer({"bootstrap.servers": servers})
    for number in range(PARTITIONS * RECORDS):
        producer.produce(query.topic, "not ours", partition=number % PARTITIONS)
    assert producer.flush(30) == 0
    client = ClientConfig.from_options({"bootstrap.servers": servers})
    return replace(query.options, client=client)


def decide_only(query, monkeypatch):
    """The driver dies behind its decision."""
    with monkeypatch.context() as patched:
        patched.setattr(commit_step, "complete", refuse_to_complete)
        with pytest.raises(TransactionLostError):
            commit_batch(query.options, query.write(0, ["a"], ["b"]), 0)


def test_decided_batch_is_not_looked_for_on_another_cluster(query, elsewhere, monkeypatch):
    decide_only(query, monkeypatch)
    with pytest.raises(OperatorError, match="is decided on the Kafka cluster"):
        plan_batch(elsewhere)
    assert plan_batch(query.options).complete
    query.check("a", "b")


def test_decision_of_an_older_release_is_not_looked_for_on_another_cluster(query, elsewhere):
    """Its log says nothing of the query's own epoch, and must not learn that of the wrong one."""
    recovered = RecoveredQuery(query_id=query.query_id)
    messages = query.write(0, ["a"], ["b"], recovered=recovered)
    session, deadline = session_of(query.options), Deadline.after_ms(30_000)
    here = session.cluster.coordinator.cluster_id(deadline)
    batch = replace(running_batch(session, messages, 0, len(messages)), cluster_id=here)
    ids = [message.result.transaction.identity.transactional_id for message in messages]
    rows = decision_rows(batch, None, dict.fromkeys(ids), datetime.now(UTC))
    session.newest_log().append(query.query_id, 0, rows)  # without a token
    with pytest.raises(OperatorError, match="is decided on the Kafka cluster"):
        plan_batch(elsewhere)
    assert plan_batch(query.options).complete
    query.check("a", "b")


def test_torn_batch_is_not_written_on_elsewhere(query, elsewhere, monkeypatch):
    """One transaction is committed, the other one was lost, and recovery has told the log."""
    decide_only(query, monkeypatch)
    coordinator = session_of(query.options).cluster.coordinator
    kept, lost = (
        TransactionLog.existing(query.options.transaction_log).last_batch(query.query_id).pending
    )
    for record in (kept, lost):
        committed = record is kept
        coordinator.end([record.identity], committed=committed, deadline=Deadline.after_ms(30_000))
    assert plan_batch(query.options).committed_partitions == {0}
    with pytest.raises(OperatorError, match="is decided on the Kafka cluster"):
        plan_batch(elsewhere)
    assert plan_batch(query.options).committed_partitions == {0}


def test_version_of_an_application_is_written_on_one_cluster(query, elsewhere, tmp_path):
    """Else it would be taken for written on the other one too."""
    given = {"topic": query.topic, "transactionLog": str(tmp_path / "log")}
    given |= {"txnAppId": query.topic, "apiTimeoutMs": "10000"}

    def options(client, version):
        servers = {"kafka.bootstrap.servers": client.bootstrap_servers}
        return batch_write_options(given | servers | {"txnVersion": str(version)})

    here = options(query.options.client, 5)
    query.query_id = here.query_id
    commit_write(here, query.write(5, ["a"], recovered=plan_write(here)))
    assert plan_write(here).complete
    with pytest.raises(OperatorError, match=r"batch 5 .* is decided on the Kafka cluster"):
        plan_write(options(elsewhere.client, 5))
    assert plan_write(options(elsewhere.client, 6)).last_batch_id == 5


def test_query_whose_last_batch_is_complete_may_go_on_elsewhere(query, elsewhere):
    commit_batch(query.options, query.write(0, ["a"], ["b"]), 0)
    (query.checkpoint / "commits" / "0").touch()
    assert plan_batch(elsewhere).last_batch_id == 0


def test_query_that_was_started_elsewhere_by_mistake_goes_on_where_a_person_says_so(
    query, elsewhere
):
    commit_batch(query.options, query.write(0, ["a"], ["b"]), 0)
    (query.checkpoint / "commits" / "0").touch()
    plan_batch(elsewhere)
    query.options = replace(query.options, acknowledge="other-options-00000000")
    with pytest.raises(OperatorError, match="or on another Kafka cluster than") as said:
        plan_batch(query.options)
    (code,) = re.findall(r"acknowledge to '(other-options-[0-9a-f]{8})'", str(said.value))
    query.options = replace(query.options, acknowledge=code)
    commit_batch(query.options, query.write(1, ["c"], ["d"]), 1)
    query.check("a", "b", "c", "d")
    rows = TransactionLog.existing(query.options.transaction_log).records().to_pylist()
    assert [row["acknowledged"] for row in rows].count(code) == 1


def test_snapshot_is_that_of_the_cluster_that_is_read(query, elsewhere):
    """Else records of somebody else would be read at the offsets of another cluster."""
    commit_batch(query.options, query.write(0, ["a"], ["b"]), 0)
    (query.checkpoint / "commits" / "0").touch()

    def snapshot(options):
        given = {"subscribe": query.topic, "isolation.level": "snapshot"}
        given["transactionLog"] = options.transaction_log
        given["kafka.bootstrap.servers"] = options.client.bootstrap_servers
        read = stream_options(given)
        return Snapshot(read_session_of(read), read.snapshot)

    with pytest.raises(OptionError, match=r"the output of query .* is on the Kafka cluster"):
        snapshot(elsewhere).batches(0, 0)
    home, query.options = query.options, elsewhere
    commit_batch(elsewhere, query.write(1, ["c"], ["d"]), 1)
    assert [batch.batch_id for batch in snapshot(home).batches(0, 0)] == [0]
    assert [batch.batch_id for batch in snapshot(elsewhere).batches(1, 1)] == [1]
    with pytest.raises(OptionError, match="Complete there: 1 to 1"):
        snapshot(elsewhere).batches(0, 1)
