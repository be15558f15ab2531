"""The driver's steps against a real broker and a real log, without Spark."""

import json
import uuid
from contextlib import nullcontext

import pytest

from spark_eos._deadline import Deadline
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.coordinator.client import CoordinatorClient
from spark_eos._kafka.produce.rows import Rows
from spark_eos._kafka.produce.transactional_producer import TransactionalProducer
from spark_eos._log import TransactionLog
from spark_eos._options import sink_options
from spark_eos._protocol.transactions.batch import RecoveredQuery, TaskResult
from spark_eos._sink.driver import commit as commit_step
from spark_eos._sink.driver import decide as decide_step
from spark_eos._sink.message import TaskMessage
from spark_eos._sink.task.context import Task
from spark_eos.errors import FencedError, TransactionLostError
from tests.chaos.oracle import assert_exactly_once, assert_none_open, committed_values
from tests.steps import abort_batch, commit_batch, plan_batch


class Query:
    """What Spark would have: a checkpoint, and tasks that write batches."""

    def __init__(self, folder, kafka, topic):
        self.topic = topic
        self.query_id = str(uuid.uuid4())
        self.checkpoint = folder / "checkpoint"
        (self.checkpoint / "commits").mkdir(parents=True)
        (self.checkpoint / "offsets").mkdir()
        (self.checkpoint / "metadata").write_text(json.dumps({"id": self.query_id}))
        self.options = sink_options(
            {
                "kafka.bootstrap.servers": kafka.bootstrap_servers,
                "kafka.transaction.timeout.ms": "60000",
                "checkpointLocation": str(self.checkpoint),
                "topic": topic,
                "apiTimeoutMs": "10000",
            }
        )

    def write(self, batch_id, *partitions, recovered=None):
        """Two tasks at most: each writes its values and leaves the transaction open."""
        (self.checkpoint / "offsets" / str(batch_id)).write_text(f'v1\n{{}}\n{{"end":{batch_id}}}')
        recovered = recovered or plan_batch(self.options)
        messages = []
        for number, values in enumerate(partitions):
            producer = TransactionalProducer(
                self.options.client,
                f"spark-eos-{self.query_id}-{number}",
                timeout_ms=self.options.transaction_timeout_ms,
                send_timeout_ms=30_000,
            )
            producer.partition_count(self.topic, Deadline.after_ms(30_000))
            producer.begin(Deadline.after_ms(30_000))
            rows = [value.encode() for value in values]
            producer.send(Rows(topic=self.topic, keys=[None] * len(rows), values=rows))
            messages.append(
                TaskMessage(
                    task=Task(
                        query_id=self.query_id, run_id="r", batch_id=batch_id, partition=number
                    ),
                    result=TaskResult(
                        partition=number,
                        records=len(rows),
                        digest=f"d{number}",
                        transaction=producer.prepare(Deadline.after_ms(30_000)),
                    ),
                    recovered=recovered,
                )
            )
        return messages

    def states(self):
        """(batch, partition, state) of each row of the log, in order."""
        rows = TransactionLog.existing(self.options.transaction_log).records().to_pylist()
        return [(r["batch_id"], r["sink_partition"], r["transaction_status"]) for r in rows]

    def check(self, *values):
        assert_exactly_once(self.options.client.bootstrap_servers, self.topic, values)


@pytest.fixture
def query(tmp_path, kafka, topic):
    return Query(tmp_path, kafka, topic(2))


def refuse_to_complete(*_args, **_kwargs):
    raise TransactionLostError("the brokers are out of reach")


def test_committed_batch_is_visible_and_logged(query):
    commit_batch(query.options, query.write(0, ["a", "b"], ["c"]), 0)
    query.check("a", "b", "c")
    assert query.states() == [(0, 0, "PrepareCommit"), (0, 1, "PrepareCommit")]


def test_abort_after_the_decision_completes_the_batch(query, monkeypatch):
    """`commit` raises behind the decision, and Spark calls `abort` with the same messages."""
    messages = query.write(0, ["a"], ["b"])
    with monkeypatch.context() as patched:
        patched.setattr(commit_step, "complete", refuse_to_complete)
        with pytest.raises(TransactionLostError):
            commit_batch(query.options, messages, 0)
    abort_batch(query.options, messages, 0, 2)
    query.check("a", "b")
    assert all(state == "PrepareCommit" for _, _, state in query.states())


def test_abort_before_the_decision_ends_the_transactions_and_tells_the_log(query):
    messages = query.write(0, ["a"], ["b"])
    abort_batch(query.options, messages, 0, 2)
    query.check()
    assert sorted(query.states()) == [
        *((0, 0, state) for state in ("CompleteAbort", "PrepareAbort")),
        *((0, 1, state) for state in ("CompleteAbort", "PrepareAbort")),
    ]
    commit_batch(query.options, query.write(0, ["a"], ["b"]), 0)
    query.check("a", "b")


@pytest.mark.parametrize(("step", "is_decided"), [("checked", False), ("decided", True)])
def test_query_that_is_stopped_while_it_commits_is_there_whole_or_not_at_all(
    query, monkeypatch, new_process, step, is_decided
):
    """Spark calls `abort` in another process, and `commit` goes on."""
    messages = query.write(0, ["a"], ["b"])

    def stop_at(name):
        if name == step:
            new_process()  # it has a log of its own
            abort_batch(query.options, messages, 0, 2)

    module = decide_step if step == "checked" else commit_step
    monkeypatch.setattr(module, "failpoint", stop_at)
    with nullcontext() if is_decided else pytest.raises(FencedError, match="has logged batch 0"):
        commit_batch(query.options, messages, 0)
    query.check(*("a", "b") if is_decided else ())


def test_abort_of_an_attempt_that_recovery_has_judged_changes_nothing(query, monkeypatch, caplog):
    """An old driver decided; a new one found a part of it lost and has told so; the old wakes."""
    messages = query.write(0, ["a"], ["b"])
    with monkeypatch.context() as patched:
        patched.setattr(commit_step, "complete", refuse_to_complete)
        with pytest.raises(TransactionLostError):
            commit_batch(query.options, messages, 0)
    coordinator = CoordinatorClient(ClientConfig(pairs=query.options.client.pairs))
    for message, committed in zip(messages, (True, False), strict=True):
        identity = message.result.transaction.identity
        coordinator.end([identity], committed=committed, deadline=Deadline.after_ms(30_000))
    coordinator.close()
    assert plan_batch(query.options).committed_partitions == {0}
    judged = query.states()
    abort_batch(query.options, messages, 0, 2)
    assert (query.states(), caplog.records) == (judged, [])
    assert plan_batch(query.options).committed_partitions == {0}


def test_abort_fences_the_partition_that_has_no_message(query):
    """Its task may still run: it has opened a transaction, and nobody else knows of it."""
    named, silent = query.write(0, ["a"], ["b"])
    abort_batch(query.options, [named], 0, 2)
    assert_none_open(query.options.client.bootstrap_servers, query.topic)
    with pytest.raises(FencedError):
        commit_batch(query.options, [named, silent], 0)


def test_abort_of_a_driver_that_was_overtaken_leaves_the_new_one_alone(query):
    old = query.write(0, ["a"], ["b"])
    commit_batch(query.options, query.write(0, ["a"], ["b"]), 0)
    (query.checkpoint / "commits" / "0").touch()
    new = query.write(1, ["c"], ["d"])
    commit_batch(query.options, new, 1)
    (query.checkpoint / "commits" / "1").touch()
    running = query.write(2, ["e"], ["f"])
    abort_batch(query.options, old[:1], 0, 2)
    commit_batch(query.options, running, 2)
    query.check("a", "b", "c", "d", "e", "f")


def test_timed_out_transaction_is_not_decided(query):
    messages = query.write(0, ["a"], ["b"])
    coordinator = CoordinatorClient(ClientConfig(pairs=query.options.client.pairs))
    coordinator.fence(
        [messages[1].result.transaction.identity.transactional_id],
        timeout_ms=60_000,
        deadline=Deadline.after_ms(30_000),
    )
    coordinator.close()
    with pytest.raises(TransactionLostError, match="Nothing was decided"):
        commit_batch(query.options, messages, 0)
    assert query.states() == []
    assert not committed_values(query.options.client.bootstrap_servers, query.topic)


def test_driver_that_saw_an_older_log_is_fenced(query):
    before = RecoveredQuery(query_id=query.query_id)
    commit_batch(query.options, query.write(0, ["a"]), 0)
    (query.checkpoint / "commits" / "0").touch()
    late = query.write(1, ["b"], recovered=before)
    with pytest.raises(FencedError, match="another driver moved the log to batch 0"):
        commit_batch(query.options, late, 1)
    abort_batch(query.options, late, 1, 1)
    query.check("a")


def test_completion_rides_on_the_next_decision(query):
    for batch in range(3):
        commit_batch(query.options, query.write(batch, [str(batch)]), batch)
        (query.checkpoint / "commits" / str(batch)).touch()
    query.check("0", "1", "2")
    assert sorted(query.states()) == [
        (0, 0, "CompleteCommit"),
        (0, 0, "PrepareCommit"),
        (1, 0, "CompleteCommit"),
        (1, 0, "PrepareCommit"),
        (2, 0, "PrepareCommit"),
    ]
