"""Maintenance: everything that grows stays bounded, and nothing that counts is lost."""

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from spark_eos._log import Retention, TransactionLog, files, retention
from spark_eos._log.files import FileStore, live_files
from spark_eos._log.retention import MaintenanceTask, clean_log, compact, expire, run_maintenance
from spark_eos._log.table import LogTable
from spark_eos._protocol.transactions.transaction import TransactionRecord
from spark_eos.errors import CorruptLogError, RetriableError
from tests.unit.log.builders import (
    COMPLETE_COMMIT,
    DEAD,
    OTHER,
    PREPARE_COMMIT,
    QUERY,
    completed,
    decide,
    decision,
    row,
)

WEEK = Retention()
NEVER = Retention(history=timedelta(days=7), idle=timedelta(days=10_000))


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(tmp_path / "log")


def opened(location: str) -> LogTable:
    return LogTable(FileStore(location, {}))


def everything(location: str) -> set[TransactionRecord]:
    return set(files.from_table(TransactionLog.open(location).records()))


def aged(log: TransactionLog, days: float) -> datetime:
    """A time in the past, for a query that has no rows after it."""
    del log
    return datetime.now(UTC) - timedelta(days=days)


def test_compaction_changes_files_and_no_row(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "FAN_IN", (4, 1))
    log = TransactionLog.open(location)
    written = decide(log, range(8)) + decide(log, range(3), query_id=OTHER)
    before = log.last_batch(QUERY), log.last_batch(OTHER)
    table = opened(location)
    compact(table)
    assert [file.level for file in table.live_files()] == [2]
    fresh = TransactionLog.open(location)
    assert (fresh.last_batch(QUERY), fresh.last_batch(OTHER)) == before
    log.refresh()
    assert (log.last_batch(QUERY), log.last_batch(OTHER)) == before
    assert everything(location) == set(written)
    decide(log, [8])
    assert log.last_batch(QUERY) == TransactionLog.open(location).last_batch(QUERY)


def test_append_from_a_snapshot_before_compaction_succeeds(location: str) -> None:
    log = TransactionLog.open(location)
    decide(log, range(20))
    rows = decision(log, 20)
    compact(opened(location))
    version = DeltaTable(location).version()
    log.append(QUERY, 20, rows)
    assert DeltaTable(location).version() == version + 1
    assert TransactionLog.open(location).last_batch(QUERY) == log.last_batch(QUERY)


def test_of_two_compactions_of_the_same_files_one_is_refused(location: str) -> None:
    log = TransactionLog.open(location)
    written = decide(log, range(20))
    first, second = opened(location), opened(location)
    compact(first)
    with pytest.raises(Exception, match="Concurrent transaction"):
        compact(second)
    assert everything(location) == set(written)


@pytest.mark.slow
def test_files_stay_bounded_while_the_log_grows(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "KEEP_COMMITS", 64)
    log = TransactionLog.open(location)
    written, commit_files, live = [], [], []
    for batch_id in range(400):
        written += decide(log, [batch_id], partitions=1)
        log.maintain()
        commit_files.append(len(list((Path(location) / "_delta_log").iterdir())))
        live.append(len(live_files(DeltaTable(location))))
    # Kept commits, the way to the next clean-up, and a checkpoint for each 32 of both.
    assert max(commit_files) <= 64 + 2 * retention.CLEAN_LOG_EVERY * 1.1
    assert max(live) <= retention.CHECKPOINT_EVERY + len(written) // 32 + 1
    assert everything(location) == set(written)
    assert TransactionLog.open(location).last_batch(QUERY) == log.last_batch(QUERY)


def test_commits_are_removed_only_behind_a_checkpoint(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "KEEP_COMMITS", 4)
    log = TransactionLog.open(location)
    written = decide(log, range(6))
    DeltaTable(location).create_checkpoint()
    decided = decide(log, range(6, 9))
    clean_log(opened(location))
    names = sorted(path.name for path in (Path(location) / "_delta_log").glob("*.json"))
    assert names[0] == f"{0:020}.json", "version 6 is not 4 behind version 9 yet"
    decided += decide(log, range(9, 12))
    clean_log(opened(location))
    names = sorted(path.name for path in (Path(location) / "_delta_log").glob("*.json"))
    assert names[0] == f"{6:020}.json"
    assert DeltaTable(location, version=6).version() == 6
    assert everything(location) == {*written, *decided}


def test_commits_on_an_object_store_are_removed_by_age(location: str) -> None:
    log = TransactionLog.open(location)
    written = decide(log, range(6))
    DeltaTable(location).create_checkpoint()
    written += decide(log, range(6, 9))
    table = opened(location)
    table.files.is_local = False
    commits = sorted((Path(location) / "_delta_log").glob("*.json"))
    clean_log(table)
    assert sorted((Path(location) / "_delta_log").glob("*.json")) == commits, "all are young"
    hour_ago = time.time() - 3_600
    for path in commits[:-1]:
        os.utime(path, (hour_ago, hour_ago))
    clean_log(table)
    assert sorted((Path(location) / "_delta_log").glob("*.json")) == commits[6:]
    assert everything(location) == set(written)


def test_old_rows_go_and_the_last_batch_stays(location: str) -> None:
    log = TransactionLog.open(location)
    long_ago = datetime.now(UTC) - timedelta(days=30)
    for batch_id in range(4):
        when = long_ago + timedelta(seconds=batch_id)
        log.append(QUERY, batch_id, [*completed(log, when), row(batch_id, when)])
    log.append(QUERY, 3, completed(log, long_ago + timedelta(seconds=9)))
    decide(log, range(5), query_id=OTHER)
    last = log.last_batch(QUERY)
    table = opened(location)
    expire(table, NEVER, datetime.now(UTC))
    fresh = TransactionLog.open(location)
    assert fresh.last_batch(QUERY) == last
    assert [fresh.batch(QUERY, batch_id) for batch_id in range(3)] == [None] * 3
    assert fresh.batch(OTHER, 0) is not None
    log.refresh()
    decide(log, [4])
    assert TransactionLog.open(location).last_batch_id(QUERY) == 4


def test_pending_decision_never_expires(location: str) -> None:
    log = TransactionLog.open(location)
    long_ago = datetime.now(UTC) - timedelta(days=3_000)
    log.append(QUERY, 0, [row(0, long_ago), row(0, long_ago, partition=1)])
    when = long_ago + timedelta(seconds=1)
    log.append(QUERY, 0, completed(log, when)[:1])
    before = log.last_batch(QUERY)
    assert before is not None
    assert len(before.pending) == 1
    for _ in range(3):
        table = opened(location)
        expire(table, WEEK, datetime.now(UTC))
        assert TransactionLog.open(location).last_batch(QUERY) == before


def test_idle_query_dies_and_goes_and_can_come_back(location: str) -> None:
    log = TransactionLog.open(location)
    long_ago = datetime.now(UTC) - timedelta(days=30)
    log.append(QUERY, 0, [row(0, long_ago, partition=p, partitions=2) for p in (0, 1)])
    log.append(QUERY, 0, completed(log, long_ago + timedelta(seconds=1)))
    decide(log, range(3), query_id=OTHER)
    other = log.last_batch(OTHER)
    table = opened(location)
    expire(table, WEEK, datetime.now(UTC))
    fresh = TransactionLog.open(location)
    dead = fresh.last_batch(QUERY)
    assert dead is not None
    assert [record.state for record in dead.records] == [DEAD, DEAD]
    assert {r.state for r in everything(location) if r.query_id == QUERY} == {DEAD}
    assert fresh.last_batch(OTHER) == other

    expire(table, WEEK, datetime.now(UTC) + timedelta(days=8))
    fresh = TransactionLog.open(location)
    assert (fresh.last_batch_id(QUERY), fresh.last_batch(QUERY)) == (0, None)
    assert {r.query_id for r in everything(location)} == {OTHER}
    decide(fresh, [1])
    assert TransactionLog.open(location).last_batch_id(QUERY) == 1


def test_query_that_wakes_up_while_it_expires_loses_nothing(location: str) -> None:
    log = TransactionLog.open(location)
    long_ago = datetime.now(UTC) - timedelta(days=30)
    log.append(QUERY, 0, [row(0, long_ago)])
    log.append(QUERY, 0, completed(log, long_ago + timedelta(seconds=1)))

    # Expiry first: the driver must look again.
    late = TransactionLog.open(location)
    rows = decision(late, 1)
    early = opened(location)
    table = opened(location)
    expire(table, WEEK, datetime.now(UTC))
    with pytest.raises(RetriableError, match="expired"):
        late.append(QUERY, 1, rows)

    # The driver first: expiry from the older snapshot is refused.
    fresh = TransactionLog.open(location)
    decide(fresh, [1])
    with pytest.raises(Exception, match="Failed to commit"):
        expire(early, WEEK, datetime.now(UTC))
    assert TransactionLog.open(location).last_batch(QUERY) == fresh.last_batch(QUERY)
    assert PREPARE_COMMIT in {record.state for record in everything(location)}


def test_expiry_while_another_query_appends_loses_nothing(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, other = TransactionLog.open(location), TransactionLog.open(location)
    long_ago = datetime.now(UTC) - timedelta(days=30)
    for batch_id in range(3):
        when = long_ago + timedelta(seconds=batch_id)
        log.append(QUERY, batch_id, [*completed(log, when), row(batch_id, when)])
    other.refresh()
    write = FileStore.write

    def append_meanwhile(store: FileStore, *args: Any, **kwargs: Any) -> Any:
        decide(other, [0], query_id=OTHER)
        monkeypatch.undo()
        return write(store, *args, **kwargs)

    monkeypatch.setattr(FileStore, "write", append_meanwhile)
    table = opened(location)
    expire(table, NEVER, datetime.now(UTC))
    fresh = TransactionLog.open(location)
    assert [fresh.batch(QUERY, n) is None for n in range(3)] == [True, True, False]
    assert fresh.last_batch(OTHER) == other.last_batch(OTHER)
    # An end that waits for its intent to grow old stays with it.
    assert COMPLETE_COMMIT not in {r.state for r in everything(location) if r.batch_id == 2}


def test_failed_maintenance_is_a_warning(
    location: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = TransactionLog.open(location)

    def broken(*args: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(retention, "compact", broken)
    decide(log, range(retention.CHECKPOINT_EVERY))
    log.maintain()
    assert "disk full" in caplog.text
    decide(log, [retention.CHECKPOINT_EVERY])


def test_broken_log_found_by_maintenance_is_raised(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any) -> None:
        raise CorruptLogError("unknown transaction state 'Finished'")

    TransactionLog.open(location)
    monkeypatch.setattr(retention, "expire", broken)
    with pytest.raises(CorruptLogError):
        run_maintenance(FileStore(location, {}), [MaintenanceTask.EXPIRE], WEEK)
