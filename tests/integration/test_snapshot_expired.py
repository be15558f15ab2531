"""Snapshot reads of a query whose rows have expired: a batch is whole, or it is not there."""

from datetime import UTC, datetime, timedelta

import pytest

from spark_eos._log import Retention, TransactionLog
from spark_eos._log.files import FileStore
from spark_eos._log.retention import expire
from spark_eos._log.table import LogTable
from spark_eos._options import batch_write_options, stream_options
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._session import read_session_of
from spark_eos._source.offsets import resolve_partitions
from spark_eos._source.snapshot import Snapshot
from spark_eos.errors import OptionError
from tests.integration.test_commit_and_abort import Query
from tests.steps import commit_write, plan_write


class Application:
    """Versions of one txnAppId, and who reads them."""

    def __init__(self, query, log):
        self._query, self.log = query, str(log)
        self._servers = {"kafka.bootstrap.servers": query.options.client.bootstrap_servers}

    def write(self, version, *partitions):
        topic = self._query.topic
        given = {"topic": topic, "transactionLog": self.log, "txnAppId": topic}
        options = batch_write_options(self._servers | given | {"txnVersion": str(version)})
        self._query.query_id = options.query_id
        messages = self._query.write(version, *partitions, recovered=plan_write(options))
        commit_write(options, messages)

    def expire(self):
        """As if it had been idle for longer than ids are kept."""
        later = datetime.now(UTC) + timedelta(days=8)
        expire(LogTable(FileStore(self.log, {})), Retention(), later)

    def snapshot(self):
        given = {"subscribe": self._query.topic, "isolation.level": "snapshot"}
        self.options = stream_options(self._servers | given | {"transactionLog": self.log})
        return Snapshot(read_session_of(self.options), self.options.snapshot)

    def check_all_is_seen(self, snapshot):
        session = read_session_of(self.options)
        latest = session.offset_reader.latest(resolve_partitions(session))
        assert sum(latest.values()) > 0
        assert snapshot.cut(latest) == latest


@pytest.fixture
def application(tmp_path, kafka, topic):
    """Version 0 is written by three tasks, version 1 by one."""
    found = Application(Query(tmp_path, kafka, topic(3)), tmp_path / "log")
    found.write(0, ["a", "b"], ["c"], ["d"])
    found.write(1, ["e"])
    return found


def wrote(snapshot, first, last):
    return [(b.batch_id, sum(b.records().values())) for b in snapshot.batches(first, last)]


@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 1), (1, 1), (None, 0), (0, None)])
def test_batch_of_an_expired_query_is_reported_as_gone(application, first, last):
    assert wrote(application.snapshot(), 0, 1) == [(0, 4), (1, 1)]
    application.expire()
    query_id = next(iter(TransactionLog.existing(application.log).query_ids()))
    left = TransactionLog.existing(application.log).rows_from(query_id, 0)
    assert {(r.batch_id, r.state) for r in left} == {(b, TransactionState.DEAD) for b in (0, 1)}
    with pytest.raises(OptionError, match="no longer in the transaction log"):
        application.snapshot().batches(first, last)


def test_expired_query_holds_nothing_back_and_its_new_batches_are_read(application):
    before = application.snapshot()
    assert wrote(before, 0, 1) == [(0, 4), (1, 1)]
    application.expire()
    application.check_all_is_seen(application.snapshot())
    application.write(2, ["f"], ["g"])
    snapshot = application.snapshot()
    application.check_all_is_seen(snapshot)
    assert wrote(snapshot, 2, None) == [(2, 2)]
    with pytest.raises(OptionError, match="no longer in the transaction log"):
        snapshot.batches(0, None)
    # A reader that has seen the old ones knows them whole.
    application.check_all_is_seen(before)
    assert wrote(before, 0, None) == [(0, 4), (1, 1), (2, 2)]
