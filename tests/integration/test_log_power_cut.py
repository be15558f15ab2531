"""A power cut for real: the log has a disk of its own, and what is on that disk is what stays."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_eos.log import TransactionLog, delta
from spark_eos.log.files import FileStore
from tests.disk_image import DiskImage
from tests.unit.log.builders import QUERY, decide, decision


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
    write = delta._write

    def fails_afterwards(*arguments: object, **settings: object) -> None:
        write(*arguments, **settings)  # type: ignore[arg-type]
        raise OSError("no answer")

    monkeypatch.setattr(delta, "_write", fails_afterwards)
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
