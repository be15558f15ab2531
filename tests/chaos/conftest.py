"""A scenario: numbered rows in files, a topic, a checkpoint, and drivers that come and go."""

import shutil

import pytest

from tests.chaos.driver import Driver
from tests.chaos.oracle import assert_exactly_once

ROWS_PER_FILE = 200


class Scenario:
    """What the tests of this folder work on. Ends every driver that it started."""

    def __init__(self, folder, bootstrap_servers, topic):
        self.folder = folder
        self.topic = topic
        self.bootstrap_servers = bootstrap_servers
        self.checkpoint = folder / "checkpoint"
        self.options = {"kafka.transaction.timeout.ms": "60000", "apiTimeoutMs": "20000"}
        self.rows = []
        self._input = folder / "input"
        self._input.mkdir()
        self._drivers = []

    def add_files(self, count):
        """More input: each file is one micro-batch."""
        for _ in range(count):
            numbers = [str(len(self.rows) + i) for i in range(ROWS_PER_FILE)]
            path = self._input / f"{len(self.rows):08}.txt"
            path.write_text("\n".join(numbers) + "\n")
            self.rows += numbers

    def driver(self, **settings):
        driver = Driver(
            self.folder,
            {
                "bootstrap_servers": self.bootstrap_servers,
                "topic": self.topic,
                "input": str(self._input),
                "checkpoint": str(self.checkpoint),
                "options": self.options,
            }
            | settings,
            name=f"driver-{len(self._drivers)}",
        )
        self._drivers.append(driver)
        return driver

    def forget_commits_from(self, batch_id):
        """As an operator who edits the checkpoint by hand so that Spark runs a batch again."""
        for name, first in (("commits", batch_id), ("offsets", batch_id + 1)):
            for path in (self.checkpoint / name).iterdir():
                if path.name.lstrip(".").removesuffix(".crc").isdigit() and (
                    int(path.name.lstrip(".").removesuffix(".crc")) >= first
                ):
                    path.unlink()

    def batches(self):
        """The ids of the batches that Spark has ended."""
        return sorted(
            int(path.name)
            for path in (self.checkpoint / "commits").iterdir()
            if path.name.isdigit()
        )

    def check(self, settle_s=0.0):
        assert_exactly_once(self.bootstrap_servers, self.topic, self.rows, settle_s)

    def close(self):
        for driver in self._drivers:
            driver.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def scenario(tmp_path, kafka, topic):
    found = Scenario(tmp_path, kafka.bootstrap_servers, topic(3))
    yield found
    found.close()
