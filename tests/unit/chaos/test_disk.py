"""A disk that is said to fail must really refuse a write, and one without power forget."""

import os
from types import SimpleNamespace

import pytest

from chaos import disk as module
from chaos.cluster_faults import log_failure
from chaos.deck import Draw
from chaos.disk import FORBIDDEN, FULL, READ_ONLY, LogDisk
from chaos.workload import NotNow


@pytest.fixture
def disk(tmp_path):
    found = LogDisk(tmp_path / "disk")
    yield found
    found.close()


@pytest.fixture
def commits(disk):
    found = disk.log / "_delta_log"
    found.mkdir(parents=True)
    return found


@pytest.mark.parametrize(
    ("way", "error"),
    [(FULL, "No space"), (READ_ONLY, "Read-only"), (FORBIDDEN, "Permission")],
)
def test_write_fails_while_it_is_broken_and_works_again(disk, commits, way, error):
    if way not in disk.ways:
        pytest.skip(f"here a disk fails in these ways only: {disk.ways}")
    disk.fail(way)
    with pytest.raises(OSError, match=error):
        (commits / "0.json").write_text("x" * 5000)
    disk.mend()
    (commits / "0.json").write_text("x" * 5000)


@pytest.mark.parametrize("turn", [0, 1])
def test_fault_that_is_given_up_halfway_mends_the_disk(disk, commits, turn):
    if not disk.ways:
        pytest.skip("root, and mounts are not allowed")
    fault = log_failure(SimpleNamespace(disk=disk), Draw(1, "log-failure", turn))
    next(fault)
    with pytest.raises(OSError, match=r"No space|Read-only|Permission"):
        (commits / "0.json").write_text("x" * 5000)
    fault.close()
    (commits / "0.json").write_text("x" * 5000)


def test_disk_that_is_written_to_all_the_time_cannot_become_read_only(disk, commits, monkeypatch):
    if READ_ONLY not in disk.ways:
        pytest.skip("mounts are not allowed here")
    monkeypatch.setattr(module, "FREE_S", 0.1)
    turn = 0 if Draw(1, "log-failure", 0).deal(disk.ways) == READ_ONLY else 1
    with (commits / "0.json").open("w") as file:
        with pytest.raises(NotNow, match="busy"):
            next(log_failure(SimpleNamespace(disk=disk), Draw(1, "log-failure", turn)))
        file.write("x")


def test_power_cut_takes_what_was_not_synced(disk):
    if disk.image is None:
        pytest.skip("images cannot be mounted here")
    kept, lost = disk.folder / "kept", disk.folder / "lost"
    with kept.open("w") as file:
        file.write("x")
        file.flush()
        os.fsync(file.fileno())
    lost.write_text("x")
    disk.image.cut_power()
    assert (kept.exists(), lost.exists()) == (True, False)
