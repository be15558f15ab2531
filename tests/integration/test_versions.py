"""Versions of an application against a real broker and a real log, without Spark."""

from dataclasses import replace

import pytest

from spark_eos.errors import OperatorError, TransactionLostError
from spark_eos.kafka.coordinator import CoordinatorClient
from spark_eos.log import TransactionLog
from spark_eos.options import batch_write_options
from spark_eos.protocol.deadline import Deadline
from spark_eos.sink import commit as commit_step
from spark_eos.sink.batch_commit import abort_write, commit_write, plan_write
from tests.chaos.oracle import assert_exactly_once
from tests.integration.test_commit_and_abort import Query, refuse_to_complete


class Application:
    """Writes versions, as Spark does with `df.write`."""

    def __init__(self, folder, kafka, topic):
        self._query = Query(folder, kafka, topic)
        self._given = {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "topic": topic,
            "transactionLog": str(folder / "log"),
            "txnAppId": "nightly",
            "apiTimeoutMs": "10000",
        }

    def options(self, version, **other):
        return batch_write_options(self._given | other | {"txnVersion": str(version)})

    def prepare(self, version, *partitions):
        """The tasks have ended, and nothing is decided."""
        options = self.options(version)
        self._query.query_id = options.query_id
        return self._query.write(version, *partitions, tail=plan_write(options))

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

    def check(self, *values):
        servers, topic = self._given["kafka.bootstrap.servers"], self._given["topic"]
        assert_exactly_once(servers, topic, values)


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
    tail = plan_write(replace(application.options(1), topic=None))
    assert (tail.last_batch_id, tail.complete) == (1, True)


def test_older_version_writes_nothing(application):
    application.write(1, ["a"])
    application.write(2, ["b"])
    assert plan_write(application.options(1)).last_batch_id == 2
    application.check("a", "b")
