"""A power cut for real: the log is on a disk of its own, and what that disk has is all that stays.

The disk is an image, mounted as ext4. What is in the cache above it is not in the image, so a copy
of the image is the disk as a power cut would leave it.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from spark_eos.log import TransactionLog, delta
from spark_eos.log.files import FileStore
from tests.unit.log.builders import QUERY, decide, decision

IMAGE_MB = 32


def run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True, timeout=30)


class Disk:
    """An image that is mounted, and copies of it."""

    def __init__(self, folder: Path) -> None:
        self._image = folder / "image"
        self._mounted: list[Path] = []
        with self._image.open("wb") as image:
            image.truncate(IMAGE_MB << 20)
        run("mkfs.ext4", "-q", "-F", self._image)
        self.folder = self._mount(self._image, folder / "disk")
        self._copies = 0

    def after_a_power_cut(self) -> Path:
        """The disk as it is now, without what only the cache has."""
        self._copies += 1
        copy = self._image.with_name(f"image-{self._copies}")
        shutil.copyfile(self._image, copy)
        return self._mount(copy, self.folder.with_name(f"disk-{self._copies}"))

    def close(self) -> None:
        for folder in self._mounted:
            run("umount", folder)

    def _mount(self, image: Path, folder: Path) -> Path:
        folder.mkdir()
        run("mount", "-o", "loop", image, folder)
        self._mounted.append(folder)
        return folder


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    try:
        found = Disk(tmp_path)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"an image cannot be mounted here: {error}")
    yield found
    found.close()


def test_decision_outlives_a_power_cut(disk: Disk) -> None:
    log = TransactionLog.open(str(disk.folder / "log"))
    for batch_id in range(3):
        rows = decide(log, [batch_id])
        left = TransactionLog.open(str(disk.after_a_power_cut() / "log"))
        batch = left.last_batch(QUERY)
        assert batch is not None
        assert (batch.batch_id, set(batch.records)) == (batch_id, {*rows[-2:]})


def test_what_is_not_synced_does_not(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the test above would show nothing."""
    location = disk.folder / "log"
    log = TransactionLog.open(str(location))
    decide(log, [0])
    monkeypatch.setattr(FileStore, "sync", lambda *_: None)
    decide(log, [1])
    assert DeltaTable(str(location)).version() == 2
    left = disk.after_a_power_cut() / "log"
    assert TransactionLog.open(str(left)).last_batch_id(QUERY) == 0


def test_what_a_dead_driver_wrote_is_kept_before_it_is_acted_on(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TransactionLog.open(str(disk.folder / "log"))
    with monkeypatch.context() as killed:
        killed.setattr(FileStore, "sync", lambda *_: None)
        decide(log, range(3))
    next_driver = TransactionLog.open(str(disk.folder / "log"))
    next_driver.sync()
    left = TransactionLog.open(str(disk.after_a_power_cut() / "log"))
    assert left.last_batch(QUERY) == next_driver.last_batch(QUERY)
    assert left.records().num_rows == next_driver.records().num_rows


def test_decision_that_reported_a_failure_is_kept(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TransactionLog.open(str(disk.folder / "log"))
    decide(log, [0])
    write = delta._write

    def fails_afterwards(*arguments: object, **settings: object) -> None:
        write(*arguments, **settings)  # type: ignore[arg-type]
        raise OSError("no answer")

    rows = decision(log, 1)
    monkeypatch.setattr(delta, "_write", fails_afterwards)
    log.append(QUERY, 1, rows)
    left = TransactionLog.open(str(disk.after_a_power_cut() / "log"))
    assert left.last_batch_id(QUERY) == 1


def test_maintenance_leaves_nothing_half_written(disk: Disk) -> None:
    """Each commit may be the one behind which the power fails; here those around checkpoints."""
    log = TransactionLog.open(str(disk.folder / "log"))
    for batch_id in range(100):
        decide(log, [batch_id])
        log.maintain()
        if batch_id % 32 in (29, 30, 31):
            left = TransactionLog.open(str(disk.after_a_power_cut() / "log"))
            assert left.records().num_rows == log.records().num_rows
            decide(left, [batch_id + 1])
            assert left.last_batch_id(QUERY) == batch_id + 1
