"""A scenario: numbered rows in files, a topic, a checkpoint, and drivers that come and go."""

from contextlib import contextmanager

import pytest

from tests.chaos.driver import Drivers
from tests.chaos.oracle import assert_exactly_once

ROWS_PER_FILE = 200


def slow(value):
    """One case of several alike is enough for the common run."""
    return pytest.param(value, marks=pytest.mark.slow)


class Scenario:
    """What the tests of this folder work on."""

    def __init__(self, folder, drivers, bootstrap_servers, topic):
        self.topic = topic
        self.bootstrap_servers = bootstrap_servers
        self.checkpoint = folder / "checkpoint"
        self.options = {"kafka.transaction.timeout.ms": "60000", "apiTimeoutMs": "20000"}
        self.rows = []
        self.drivers = drivers
        self._input = folder / "input"
        self._input.mkdir()

    def add_files(self, count):
        """More input: each file is one micro-batch."""
        for _ in range(count):
            numbers = [str(len(self.rows) + i) for i in range(ROWS_PER_FILE)]
            path = self._input / f"{len(self.rows):08}.txt"
            path.write_text("\n".join(numbers) + "\n")
            self.rows += numbers

    @contextmanager
    def driver(self, *arm, **settings):
        """A driver that runs the query, held at the first of the failpoints `arm` that it meets."""
        drivers = self.drivers
        driver = drivers.take()
        try:
            driver.run(
                {
                    "bootstrap_servers": self.bootstrap_servers,
                    "topic": self.topic,
                    "input": str(self._input),
                    "checkpoint": str(self.checkpoint),
                    "options": self.options,
                    "select": ["value"],
                    "partitions": 4,
                    "files_per_batch": 1,
                    "stop_when": None,
                    "read_topic": None,
                    "offsets_per_batch": 200,
                    "write": None,
                    "arm": arm,
                }
                | settings
            )
            yield driver
        finally:
            drivers.give_back(driver)

    def run(self, **settings):
        """A driver that runs the query to its good end."""
        with self.driver(**settings) as driver:
            driver.finish()

    def forget_commits_from(self, batch_id):
        """As an operator who edits the checkpoint by hand so that Spark runs a batch again."""
        for name, first in (("commits", batch_id), ("offsets", batch_id + 1)):
            for path in (self.checkpoint / name).iterdir():
                number = path.name.lstrip(".").removesuffix(".crc")
                if number.isdigit() and int(number) >= first:
                    path.unlink()

    def batches(self):
        """The ids of the batches that Spark has ended."""
        return sorted(
            int(path.name)
            for path in (self.checkpoint / "commits").iterdir()
            if path.name.isdigit()
        )

    def check(self):
        assert_exactly_once(self.bootstrap_servers, self.topic, self.rows)


@pytest.fixture(scope="session")
def drivers(tmp_path_factory):
    found = Drivers(tmp_path_factory.mktemp("drivers"))
    yield found
    found.close()


@pytest.fixture
def scenario(tmp_path, drivers, kafka, topic):
    return Scenario(tmp_path, drivers, kafka.bootstrap_servers, topic(3))
