"""Old data files are deleted, and none that somebody reads or is about to commit."""

import os
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from spark_eos.log import TransactionLog, files
from spark_eos.log.files import FileStore, live_files
from spark_eos.log.record import from_table, to_table
from spark_eos.log.retention import VACUUM_HOURS, compact, vacuum
from tests.unit.log.builders import OTHER, at, decide, row

HOUR_S = 3_600


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(tmp_path / "log")


def opened(location: str) -> tuple[DeltaTable, FileStore]:
    return DeltaTable(location), FileStore(location, {})


def test_reader_of_an_older_snapshot_has_time_to_read(location: str) -> None:
    log = TransactionLog.open(location)
    written = decide(log, range(20))
    reader, store = opened(location)
    compact(*opened(location))
    vacuum(DeltaTable(location))
    assert set(store.read(live_files(reader))) == set(written)


def age(folder: str, hours: float) -> None:
    """What the files look like to a driver whose clock is ahead by so much."""
    then = time.time() - hours * HOUR_S
    for path in Path(folder).glob("*.parquet"):
        os.utime(path, (then, then))


def test_what_was_committed_since_is_not_deleted_by_a_clock_that_is_ahead(location: str) -> None:
    """The other driver committed when the snapshot of this one was taken already."""
    decide(TransactionLog.open(location), [0])
    table, _ = opened(location)
    written = decide(TransactionLog.open(location), [0], query_id=OTHER)
    age(location, hours=VACUUM_HOURS + 1)
    vacuum(table)
    batch = TransactionLog.open(location).last_batch(OTHER)
    assert batch is not None
    assert set(batch.records) == set(written)


def test_what_another_driver_is_about_to_commit_is_not_deleted(location: str) -> None:
    """It is held up between its file and its commit, or the clock here is ahead by an hour."""
    decide(TransactionLog.open(location), [0])
    table, store = opened(location)
    about = store.write(to_table([row(0, at(1), query_id=OTHER)]), level=0).path
    age(location, hours=VACUUM_HOURS - 0.5)
    vacuum(table)
    assert (Path(location) / about).exists()
    age(location, hours=VACUUM_HOURS + 0.5)
    vacuum(table)
    assert not (Path(location) / about).exists()


def test_files_are_deleted_when_their_time_has_passed(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TransactionLog.open(location)
    written = decide(log, range(20))
    long_ago = time.time_ns() - (VACUUM_HOURS + 1) * HOUR_S * 10**9
    with monkeypatch.context() as patch:
        patch.setattr(files.time, "time_ns", lambda: long_ago)
        compact(*opened(location))
    assert len(list(Path(location).glob("*.parquet"))) == 21
    vacuum(DeltaTable(location))
    assert len(list(Path(location).glob("*.parquet"))) == 1
    rows = TransactionLog.open(location).records()
    assert set(from_table(rows)) == set(written)
