"""A disk that is said to be full must really refuse a write."""

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
