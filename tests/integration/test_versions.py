"""Versions of an application against a real broker and a real log, without Spark."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from spark_eos._deadline import Deadline
from spark_eos._kafka.coordinator.client import CoordinatorClient
from spark_eos._log import Retention, TransactionLog, transaction_log
from spark_eos._log.files import FileStore
from spark_eos._log.retention import expire
from spark_eos._log.table import LogTable
from spark_eos._options import batch_write_options
from spark_eos._sink.driver import commit as commit_step
from spark_eos._sink.message import TaskMessage
from spark_eos._sink.task.context import Task
from spark_eos.errors import NonDeterministicReplayError, OperatorError, TransactionLostError
from tests.chaos.oracle import assert_exactly_once
from tests.integration.test_commit_and_abort import refuse_to_complete
from tests.steps import abort_write, commit_write, plan_write, write_task


class Application:
    """Writes versions, as Spark does with `df.write`."""

    def __init__(self, folder, kafka, topic):
        self._given = {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "kafka.transaction.timeout.ms": "60000",
            "topic": topic,
            "transactionLog": str(folder / "log"),
            "txnAppId": topic,  # an application has one log on a cluster
            "apiTimeoutMs": "10000",
        }

    def options(self, version, **other):
        return batch_write_options(self._given | other | {"txnVersion": str(version)})

    def prepare(self, version, *partitions):
        """The tasks have ended, and nothing is decided."""
        options = self.options(version)
        recovered = plan_write(options)
        messages = []
        for number, values in enumerate(partitions):
            task = Task(query_id=options.query_id, run_id="r", batch_id=version, partition=number)
            rows = pa.record_batch({"value": pa.array(values, pa.string())})
            result = write_task(options, task, recovered, iter([rows]))
            messages.append(TaskMessage(task=task, result=result, recovered=recovered))
        return messages

    def write(self, version, *partitions):
        messages = self.prepare(version, *partitions)
        commit_write(self.options(version), messages)
        return messages

    def decide(self, version, *partitions, patch):
        """The driver dies behind the decision."""
        with patch.context() as patched:
            patched.setattr(commit_step, "complete", refuse_to_complete)
            with pytest.raises(TransactionLostError):
                commit_write(self.options(version), self.prepare(version, *partitions))

    def states(self, version):
        log = TransactionLog.open(self._given["transactionLog"])
        batch = log.batch(self.options(version).query_id, version)
        return [record.state.wire_name for record in batch.records]

    def expire(self, days=8):
        """As if it had been idle for so long: ids are kept for a week, and so are rows."""
        log = self._given["transactionLog"]
        later = datetime.now(UTC) + timedelta(days=days)
        expire(LogTable(FileStore(log, {})), Retention(), later)

    def check(self, *values):
        servers, topic = self._given["kafka.bootstrap.servers"], self._given["topic"]
        assert_exactly_once(servers, topic, values)


def in_days(days):
    """A clock that is so far ahead."""

    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(days=days)

    return Later


@pytest.fixture
def application(tmp_path, kafka, topic):
    return Application(tmp_path, kafka, topic(2))


def test_abort_behind_a_write_that_is_complete_changes_nothing(application, caplog):
    """The commit worker died, or Spark's thread was interrupted, before its answer was read."""
    messages = application.write(5, ["a"], ["b"])
    abort_write(application.options(5), messages, 2)
    assert not caplog.records
    assert application.states(5) == ["CompleteCommit", "CompleteCommit"]
    assert plan_write(application.options(5)).complete
    application.check("a", "b")


def test_version_that_failed_does_not_block_the_next(application):
    messages = application.prepare(1, ["a"], ["b"])
    abort_write(application.options(1), messages, 2)
    assert application.states(1) == ["CompleteAbort", "CompleteAbort"]
    application.write(2, ["c"])
    application.check("c")


def test_version_that_failed_cannot_be_written_behind_a_later_one(application):
    abort_write(application.options(1), application.prepare(1, ["a"]), 1)
    application.write(2, ["c"])
    with pytest.raises(OperatorError, match=r"version 1 .* was aborted, and version 2 .* since"):
        plan_write(application.options(1))


def test_version_that_was_left_out_is_not_taken_for_written(application):
    application.write(2, ["c"])
    with pytest.raises(OperatorError, match=r"version 1 .* was left out.* no record of it"):
        plan_write(application.options(1))


def test_version_that_is_torn_has_to_be_written_before_the_next(application, monkeypatch):
    application.decide(1, ["a"], ["b"], patch=monkeypatch)
    log = TransactionLog.open(application.options(1).transaction_log)
    kept, lost = log.last_batch(application.options(1).query_id).pending
    coordinator = CoordinatorClient(application.options(1).client)
    for record, committed in ((kept, True), (lost, False)):
        coordinator.end([record.identity], committed=committed, deadline=Deadline.after_ms(30_000))
    coordinator.close()
    with pytest.raises(OperatorError, match=r"version 1 .* is committed in part"):
        plan_write(application.options(2))
    assert plan_write(application.options(1)).committed_partitions == {0}


def test_version_is_not_taken_for_written_to_another_topic(application, topic):
    application.write(1, ["a"])
    other = topic(2)
    with pytest.raises(OperatorError, match=f"not to '{other}'.*txnAppId of its own"):
        plan_write(application.options(1, topic=other))
    assert plan_write(application.options(2, topic=other)).last_batch_id == 1


def test_version_whose_rows_name_their_topics_is_known_by_its_number_alone(application):
    application.write(1, ["a"])
    recovered = plan_write(replace(application.options(1), topic=None))
    assert (recovered.last_batch_id, recovered.complete) == (1, True)


def test_older_version_writes_nothing(application):
    application.write(1, ["a"])
    application.write(2, ["b"])
    application.write(1, ["a"])
    application.check("a", "b")


def test_version_with_the_same_rows_in_other_partitions_writes_nothing(application):
    application.write(1, ["a", "b"], [], ["c"])
    application.write(2, ["d"])
    for version, partitions in (
        (1, [["c", "a", "b"]]),
        (1, [[], ["b"], ["a"], ["c"]]),
        (2, [["d"]]),
    ):
        application.write(version, *partitions)
    application.check("a", "b", "c", "d")


@pytest.mark.parametrize("rows", [["x", "y"], ["a"], ["a", "b", "c"], []])
@pytest.mark.parametrize("version", [1, 2])
def test_version_with_other_rows_is_refused(application, version, rows):
    """The last one and an older one. Spark calls `abort` behind the error."""
    application.write(1, ["a"], ["b"])
    application.write(2, ["b"], ["a"])
    messages = application.prepare(version, rows)
    options = application.options(version)
    with pytest.raises(NonDeterministicReplayError) as caught:
        commit_write(options, messages)
    abort_write(options, messages, 1)
    said = f"version {version} of txnAppId '{options.topic}' (query {options.query_id})"
    assert said in str(caught.value)
    assert f"(in the log: 2, now: {len(rows)})" in str(caught.value)
    application.check("a", "b", "a", "b")
    assert plan_write(options).complete


def test_version_that_was_aborted_is_written_with_any_rows(application):
    abort_write(application.options(1), application.prepare(1, ["a"], ["b"]), 2)
    application.write(1, ["x"])
    application.write(1, ["x"])
    application.check("x")
    with pytest.raises(NonDeterministicReplayError, match="in the log: 1, now: 2"):
        application.write(1, ["a"], ["b"])


def test_last_version_of_an_idle_application_is_compared_with_its_tombstones(application):
    application.write(1, ["a"], ["b"], ["c"])
    application.write(2, ["d"], [], ["e"])
    application.expire()
    assert application.states(2) == ["Dead", "Dead"]
    application.write(2, ["e", "d"])
    with pytest.raises(NonDeterministicReplayError, match="in the log: 2, now: 1"):
        application.write(2, ["e"])
    with pytest.raises(
        OperatorError, match=r"version 1 .* rows of this run \(3\) cannot be compared"
    ):
        application.write(1, ["a"], ["b"], ["c"])
    application.write(3, ["f"])
    application.check("a", "b", "c", "d", "e", "f")


def test_version_that_expired_is_refused_with_rows_and_skipped_without(application, monkeypatch):
    application.write(2, ["a"])
    application.expire()
    application.expire(days=17)
    monkeypatch.setattr(transaction_log, "datetime", in_days(17))
    log = TransactionLog.open(application.options(2).transaction_log)
    assert log.batch(application.options(2).query_id, 2) is None
    application.write(2, [], [])
    with pytest.raises(
        OperatorError, match=r"version 2 .* rows of this run \(1\) .* write them as version 3"
    ):
        application.write(2, ["a"])
    application.write(3, ["b"])
    application.check("a", "b")
