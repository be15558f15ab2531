"""Appending: one commit, guarded by what the driver saw, true when it returns."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from spark_eos._log import TransactionLog, retention
from spark_eos._log.files import FileStore
from spark_eos._log.table import LogTable
from spark_eos._protocol.transactions.batch import LoggedBatch
from spark_eos.errors import CorruptLogError, FencedError, RetriableError
from tests.unit.log.builders import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    OTHER,
    PREPARE_COMMIT,
    QUERY,
    RUN,
    completed,
    decide,
    decision,
    row,
)

OTHER_RUN = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(tmp_path / "log")


def last(location: str, query_id: str = QUERY) -> LoggedBatch:
    """The last batch, as a new driver sees it."""
    batch = TransactionLog.open(location).last_batch(query_id)
    assert batch is not None
    return batch


def test_log_without_rows_has_no_last_batch(location: str) -> None:
    log = TransactionLog.open(location)
    assert (log.last_batch_id(QUERY), log.last_batch(QUERY), log.current()) == (None, None, [])


def test_what_was_appended_is_what_is_read(location: str) -> None:
    written = decide(TransactionLog.open(location), range(5))
    log = TransactionLog.open(location)
    assert log.records().num_rows == len(written) == 2 * 5 + 2 * 4
    for batch_id in range(5):
        batch = log.batch(QUERY, batch_id)
        assert batch is not None
        of_batch = [r for r in written if r.batch_id == batch_id]
        assert batch.records == tuple(of_batch[-2:])
    assert log.batch(QUERY, 5) is None


def test_append_is_one_commit(location: str) -> None:
    log = TransactionLog.open(location)
    for batch_id in range(4):
        decide(log, [batch_id])
        assert DeltaTable(location).version() == log.version == batch_id + 1


def test_tail_is_known_to_the_writer_and_to_a_new_driver(location: str) -> None:
    log = TransactionLog.open(location)
    decide(log, range(3))
    decide(log, range(7), query_id=OTHER, partitions=3)
    assert log.last_batch(QUERY) == last(location)
    assert log.last_batch(OTHER) == last(location, OTHER)
    assert last(location).batch_id == 2
    assert [r.state for r in last(location).records] == [PREPARE_COMMIT] * 2
    assert len(last(location, OTHER).records) == 3


def test_rows_of_the_last_batch_are_found_in_several_commits(location: str) -> None:
    log = TransactionLog.open(location)
    decide(log, range(3))
    when = log.next_timestamp(QUERY)
    first, second = last(location).records
    log.append(QUERY, 2, [first.moved_to(COMPLETE_COMMIT, when)])
    assert [r.state for r in last(location).records] == [COMPLETE_COMMIT, PREPARE_COMMIT]
    log.append(QUERY, 2, [second.moved_to(COMPLETE_ABORT, log.next_timestamp(QUERY))])
    log.append(QUERY, 2, [row(2, log.next_timestamp(QUERY), partition=1, partitions=2, epoch=9)])
    states = [(r.state, r.identity.producer_epoch) for r in last(location).records]
    assert states == [(COMPLETE_COMMIT, 2), (PREPARE_COMMIT, 9)]
    assert log.last_batch(QUERY) == last(location)


def test_last_batch_reads_the_files_of_that_batch_only(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TransactionLog.open(location)
    for batch_id in range(20):
        decide(log, [batch_id])
        decide(log, [batch_id], query_id=OTHER)
    read: list[str] = []
    original = FileStore._read

    def counted(store: FileStore, file: Any) -> Any:
        read.append(file.path)
        return original(store, file)

    monkeypatch.setattr(FileStore, "_read", counted)
    fresh = TransactionLog.open(location)
    assert fresh.last_batch(QUERY) is not None
    assert len(read) == 1
    fresh.refresh()
    decide(log, [20], query_id=OTHER)
    fresh.refresh()
    assert fresh.last_batch(QUERY) is not None
    assert len(read) == 1, "another query's commit must not cost this one a read"


def test_refresh_shows_what_another_driver_wrote(location: str) -> None:
    log, other = TransactionLog.open(location), TransactionLog.open(location)
    assert log.last_batch_id(QUERY) is None
    decide(other, range(2))
    assert log.last_batch_id(QUERY) is None, "only refresh moves the snapshot"
    log.refresh()
    assert log.last_batch_id(QUERY) == 1
    assert log.last_batch(QUERY) == other.last_batch(QUERY)


def test_of_two_drivers_with_one_snapshot_the_second_is_fenced(location: str) -> None:
    decide(TransactionLog.open(location), range(3))
    first, second = TransactionLog.open(location), TransactionLog.open(location)
    rows = decision(second, 3)
    decide(first, [3], run_id=OTHER_RUN)
    with pytest.raises(FencedError, match=f"run {OTHER_RUN}.*has logged batch 3") as caught:
        second.append(QUERY, 3, rows)
    assert QUERY in str(caught.value)
    assert {r.run_id for r in last(location).records} == {OTHER_RUN}
    assert TransactionLog.open(location).records().num_rows == 2 * 4 + 2 * 3


def test_driver_is_fenced_also_when_the_other_repeated_the_same_batch(location: str) -> None:
    decide(TransactionLog.open(location), range(3))
    first, second = TransactionLog.open(location), TransactionLog.open(location)
    rows = decision(second, 3)
    when = first.next_timestamp(QUERY)
    first.append(QUERY, 2, completed(first, when))
    with pytest.raises(FencedError):
        second.append(QUERY, 3, rows)


def test_driver_is_fenced_when_its_own_append_showed_it_the_others_commit(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TransactionLog.open(location)
    decide(log, [0])
    write = LogTable.commit

    def overtaken(*args: Any, **kwargs: Any) -> None:
        write(*args, **kwargs)
        decide(TransactionLog.open(location), [2], run_id=OTHER_RUN)

    rows = decision(log, 1)
    with monkeypatch.context() as patch:
        patch.setattr(LogTable, "commit", lambda *a, **k: (patch.undo(), overtaken(*a, **k)))
        log.append(QUERY, 1, rows)
    assert log.last_batch_id(QUERY) == 1, "what it saw is what it wrote"
    with pytest.raises(FencedError, match=OTHER_RUN):
        log.append(QUERY, 2, decision(log, 2))


def test_maintenance_does_not_move_what_the_driver_saw(location: str) -> None:
    log = TransactionLog.open(location)
    decide(log, range(retention.CHECKPOINT_EVERY))
    decide(TransactionLog.open(location), [100], run_id=OTHER_RUN)
    log.maintain()
    assert TransactionLog.open(location).version > log.version + 1, "it was compacted"
    with pytest.raises(FencedError, match=OTHER_RUN):
        log.append(QUERY, 101, decision(log, 101))


def test_batch_before_the_last_is_refused_and_nothing_is_written(location: str) -> None:
    log = TransactionLog.open(location)
    decide(log, range(3))
    with pytest.raises(CorruptLogError, match="at batch 2 already"):
        log.append(QUERY, 1, [row(1, log.next_timestamp(QUERY))])
    assert DeltaTable(location).version() == 3


def test_illegal_transition_is_refused_and_nothing_is_written(location: str) -> None:
    log = TransactionLog.open(location)
    decide(log, range(3))
    # A new object, which has not looked at the last batch before.
    log = TransactionLog.open(location)
    with pytest.raises(CorruptLogError, match="from PrepareCommit to Ongoing"):
        log.append(QUERY, 3, [row(3, log.next_timestamp(QUERY))])
    assert DeltaTable(location).version() == 3


def test_timestamp_goes_up_when_the_clock_does_not(location: str) -> None:
    log = TransactionLog.open(location)
    ahead = datetime.now(UTC).replace(microsecond=7) + timedelta(hours=1)
    log.append(QUERY, 0, [row(0, ahead)])
    for _ in range(2):
        assert log.next_timestamp(QUERY) == ahead + timedelta(microseconds=1)
        log = TransactionLog.open(location)
    assert log.next_timestamp(OTHER) < ahead


def test_error_after_the_commit_is_success(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = TransactionLog.open(location)
    decide(log, [0])
    write = LogTable.commit

    def answer_lost(*args: Any, **kwargs: Any) -> None:
        write(*args, **kwargs)
        raise OSError("connection reset")

    with monkeypatch.context() as patch:
        patch.setattr(LogTable, "commit", answer_lost)
        decide(log, [1])
    assert DeltaTable(location).version() == 2
    decide(log, [2])
    assert log.last_batch(QUERY) == last(location)


def test_error_before_the_commit_can_be_tried_again(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TransactionLog.open(location)
    decide(log, [0])

    def broken(*args: Any, **kwargs: Any) -> None:
        raise OSError("disk full")

    rows = decision(log, 1)
    with monkeypatch.context() as patch:
        patch.setattr(LogTable, "commit", broken)
        with pytest.raises(RetriableError, match=r"batch 1 of query .*disk full.*Start the query"):
            log.append(QUERY, 1, rows)
    assert DeltaTable(location).version() == 1
    log.append(QUERY, 1, rows)
    assert last(location).batch_id == 1


def test_error_while_another_driver_took_over_is_fencing(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TransactionLog.open(location)
    decide(log, [0])
    rows = decision(log, 1)

    def overtaken(*args: Any, **kwargs: Any) -> None:
        monkeypatch.undo()
        decide(TransactionLog.open(location), [1], run_id=OTHER_RUN)
        raise OSError("connection reset")

    monkeypatch.setattr(LogTable, "commit", overtaken)
    with pytest.raises(FencedError, match=OTHER_RUN):
        log.append(QUERY, 1, rows)


def forget_the_past(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another query goes on until the commits that are there now are removed."""
    monkeypatch.setattr(retention, "KEEP_COMMITS", 2)
    other = TransactionLog.open(location)
    start = other.last_batch_id(OTHER)
    decide(other, range(0 if start is None else start + 1, 12), query_id=OTHER)
    table = LogTable(FileStore(location, {}))
    table.delta.create_checkpoint()
    decide(other, range(12, 16), query_id=OTHER)
    table.refresh()
    retention.clean_log(table)
    assert not (Path(location) / "_delta_log" / f"{1:020}.json").exists()


def test_driver_far_behind_appends_although_the_commits_it_missed_are_gone(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TransactionLog.open(location)
    decide(log, [0])
    rows = decision(log, 1)
    forget_the_past(location, monkeypatch)
    log.append(QUERY, 1, rows)
    assert last(location).records == tuple(rows[-2:])


def test_driver_far_behind_sees_what_is_there_now(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TransactionLog.open(location)
    decide(log, [0])
    forget_the_past(location, monkeypatch)
    log.refresh()
    assert log.version == DeltaTable(location).version()
    assert log.last_batch(QUERY) == last(location)


def test_commit_at_a_version_that_nobody_reads_any_more_is_not_success(
    location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver frozen between looking for the newest version and writing the next one."""
    log = TransactionLog.open(location)
    decide(log, [0])
    rows = decision(log, 1)
    frozen = tmp_path / "frozen"
    shutil.copytree(location, frozen)
    write = LogTable.commit

    def thaw(_table: LogTable, *args: Any, **kwargs: Any) -> None:
        monkeypatch.undo()
        forget_the_past(location, monkeypatch)
        write(LogTable(FileStore(str(frozen), {})), *args, **kwargs)
        name = f"{2:020}.json"
        assert not (Path(location) / "_delta_log" / name).exists()
        shutil.copytree(
            frozen,
            location,
            dirs_exist_ok=True,
            ignore=lambda *_: [f"{n:020}.json" for n in (0, 1)],
        )
        assert (Path(location) / "_delta_log" / name).exists()

    monkeypatch.setattr(LogTable, "commit", thaw)
    with pytest.raises(RetriableError, match="Nothing was decided"):
        log.append(QUERY, 1, rows)
    assert last(location).batch_id == 0
    log.append(QUERY, 1, rows)
    assert last(location).records == tuple(rows[-2:])
    assert RUN in {r.run_id for r in last(location).records}


def test_log_that_was_restored_under_a_session_is_read_as_it_is_now(tmp_path: Path) -> None:
    """A worker keeps its snapshot. The restored folder may have as many commits as the old one."""
    location = str(tmp_path / "log")
    kept = TransactionLog.open(location)
    decide(kept, [0])
    shutil.copytree(location, tmp_path / "backup")
    decide(kept, [1, 2])
    shutil.rmtree(location)
    shutil.copytree(tmp_path / "backup", location)
    kept.refresh()
    assert kept.last_batch_id(QUERY) == 0
    decide(kept, [1, 2])
    shutil.rmtree(location)
    shutil.copytree(tmp_path / "backup", location)
    decide(TransactionLog.open(location), [3, 4])
    kept.refresh()
    assert kept.last_batch_id(QUERY) == 4
