"""A disk that is said to be full must really refuse a write, and one without power forget."""

import os

import pytest

from tests.chaos.bench.disk import LogDisk


@pytest.fixture
def disk(tmp_path):
    found = LogDisk(tmp_path / "disk")
    yield found
    found.close()


def test_write_fails_while_it_is_broken_and_works_again(disk):
    if disk.how is None:
        pytest.skip("root, and mounts are not allowed")
    commits = disk.log / "_delta_log"
    commits.mkdir(parents=True)
    disk.fail()
    with pytest.raises(OSError, match=r"No space|Permission"):
        (commits / "0.json").write_text("x" * 5000)
    disk.mend()
    (commits / "0.json").write_text("x" * 5000)


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
