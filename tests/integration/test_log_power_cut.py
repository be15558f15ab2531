"""A power cut for real: the log has a disk of its own, and what is on that disk is what stays."""

import errno
import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.disk_image import DiskImage
from spark_eos._log import TransactionLog, durable
from spark_eos._log.files import FileStore
from spark_eos._log.retention import CHECKPOINT_EVERY
from spark_eos._log.table import LogTable
from spark_eos.errors import RetriableError
from tests.unit.log.builders import OTHER, QUERY, decide, decision


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[DiskImage]:
    try:
        found = DiskImage(tmp_path / "image", tmp_path / "disk", megabytes=32)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"an image cannot be mounted here: {error}")
    yield found
    found.close()


@pytest.fixture
def location(disk: DiskImage) -> str:
    return str(disk.folder / "log")


def test_decision_outlives_a_power_cut(disk: DiskImage, location: str) -> None:
    for batch_id in range(3):
        rows = decide(TransactionLog.open(location), [batch_id])
        disk.cut_power()
        batch = TransactionLog.open(location).last_batch(QUERY)
        assert batch is not None
        assert (batch.batch_id, set(batch.records)) == (batch_id, {*rows[-2:]})


def test_what_is_not_synced_does_not(
    disk: DiskImage, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the test above would show nothing."""
    log = TransactionLog.open(location)
    decide(log, [0])
    monkeypatch.setattr(FileStore, "sync", lambda *_: None)
    decide(log, [1])
    assert TransactionLog.open(location).last_batch_id(QUERY) == 1
    disk.cut_power()
    assert TransactionLog.open(location).last_batch_id(QUERY) == 0


def test_way_to_a_new_log_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ext4 keeps a new folder's own entry when the folder is synced; others need not."""
    synced = set()

    def sync(path: Path, sync: Callable[[Path], None] = durable._sync) -> None:
        sync(path)
        synced.add(path)

    monkeypatch.setattr(durable, "_sync", sync)
    TransactionLog.open(str(tmp_path / "new" / "folder" / "log"))
    assert {tmp_path, tmp_path / "new", tmp_path / "new" / "folder"} <= synced


def test_file_system_without_a_sync_of_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sync(descriptor: int, sync: Callable[[int], None] = os.fsync) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    log = TransactionLog.open(str(tmp_path / "log"))
    decide(log, range(CHECKPOINT_EVERY))
    log.maintain()
    assert (tmp_path / "log" / "_delta_log" / "_last_checkpoint").exists()
    assert TransactionLog.open(str(tmp_path / "log")).last_batch_id(QUERY) == CHECKPOINT_EVERY - 1


def test_disk_that_fails_to_sync_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sync(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    log = TransactionLog.open(str(tmp_path / "log"))
    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(RetriableError, match="Input/output error"):
        decide(log, [0])


def test_what_a_dead_driver_wrote_is_kept_before_it_is_acted_on(
    disk: DiskImage, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(FileStore, "sync", lambda *_: None)
        rows = decide(TransactionLog.open(location), range(3))
    TransactionLog.open(location).sync()
    disk.cut_power()
    left = TransactionLog.open(location)
    assert left.last_batch_id(QUERY) == 2
    assert left.records().num_rows == len(rows)


def test_decision_that_reported_a_failure_is_kept(
    disk: DiskImage, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TransactionLog.open(location)
    rows = decision(log, 0)
    write = LogTable.commit

    def fails_afterwards(*arguments: object, **settings: object) -> None:
        write(*arguments, **settings)  # type: ignore[arg-type]
        raise OSError("no answer")

    monkeypatch.setattr(LogTable, "commit", fails_afterwards)
    log.append(QUERY, 0, rows)
    disk.cut_power()
    assert TransactionLog.open(location).last_batch_id(QUERY) == 0


def test_maintenance_leaves_nothing_half_written(disk: DiskImage, location: str) -> None:
    """Behind each of the commits around a checkpoint."""
    rows = []
    log = TransactionLog.open(location)
    for batch_id in range(100):
        rows += decide(log, [batch_id])
        log.maintain()
        if batch_id % 32 in (29, 30, 31):
            disk.cut_power()
            log = TransactionLog.open(location)
            assert log.records().num_rows == len(rows)
            assert log.last_batch_id(QUERY) == batch_id


def test_decision_above_one_that_was_not_synced(
    disk: DiskImage, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another query's driver was killed between its commit and its sync."""
    log = TransactionLog.open(location)
    decide(log, [0])
    with monkeypatch.context() as killed:
        killed.setattr(FileStore, "sync", lambda *_: None)
        decide(TransactionLog.open(location), [7], query_id=OTHER)
    log.refresh()
    decide(log, [1])
    disk.cut_power()
    left = TransactionLog.open(location)
    assert (left.last_batch_id(QUERY), left.last_batch_id(OTHER)) == (1, 7)
    assert left.records().num_rows == 8


def test_checkpoint_above_what_was_not_synced(
    disk: DiskImage, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The power fails when the checkpoint is on the disk, and maintenance is not over."""
    log = TransactionLog.open(location)
    with monkeypatch.context() as killed:
        killed.setattr(FileStore, "sync", lambda *_: None)
        rows = decide(TransactionLog.open(location), range(CHECKPOINT_EVERY))
    sync = FileStore.sync_checkpoint

    def power_fails(store: FileStore, version: int) -> None:
        sync(store, version)
        disk.cut_power()
        raise OSError("the power is gone")

    monkeypatch.setattr(FileStore, "sync_checkpoint", power_fails)
    log.refresh()
    log.maintain()
    left = TransactionLog.open(location)
    assert left.last_batch_id(QUERY) == CHECKPOINT_EVERY - 1
    assert left.records().num_rows == len(rows)
