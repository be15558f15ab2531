"""A cluster and an application on it, for the tests of one module: to start both takes a while."""

import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.chaos.oracle import assert_exactly_once
from tests.cluster.application import Application, OnCluster
from tests.cluster.standalone import StandaloneCluster

ROOT = Path(__file__).parents[2]
ARCHIVE = ROOT / "build" / "spark-eos-environment.tar.gz"
ROWS = [str(number) for number in range(800)]
ROWS_PER_BATCH = 200
PARTITIONS = (0, 1)


class Copy:
    """A query that copies numbered rows from one topic to another, in several micro-batches."""

    def __init__(self, application, bootstrap_servers, topics, checkpoint):
        self.application = application
        self.checkpoint = checkpoint
        self.options = {
            "kafka.transaction.timeout.ms": "60000",
            "apiTimeoutMs": "20000",
            "group.id": f"copies-{topics[0]}",
        }
        self._bootstrap_servers = bootstrap_servers
        self._input, self._output = topics
        producer = Producer({"bootstrap.servers": bootstrap_servers})
        for row in ROWS:
            producer.produce(self._input, row, partition=int(row) % len(PARTITIONS))
        assert producer.flush(30) == 0

    def start(self, *arm):
        """Start it, to be held at these failpoints."""
        self.application.run(
            {
                "bootstrap_servers": self._bootstrap_servers,
                "read_topic": self._input,
                "offsets_per_batch": ROWS_PER_BATCH,
                "select": ["value"],
                "partitions": 4,
                "topic": self._output,
                "checkpoint": str(self.checkpoint),
                "options": self.options,
                "stop_when": None,
                "write": None,
                "arm": arm,
            }
        )

    def check(self):
        """Each row once, in as many micro-batches as there must be, no transaction left open, and
        the group where the rows are.
        """
        assert_exactly_once(self._bootstrap_servers, self._output, ROWS)
        commits = [path for path in (self.checkpoint / "commits").iterdir() if path.name.isdigit()]
        assert len(commits) == len(ROWS) / ROWS_PER_BATCH
        assert self._moved() == len(ROWS)

    def _moved(self):
        """How many records the group has read, as a lag tool sees it."""
        consumer = Consumer(
            {"bootstrap.servers": self._bootstrap_servers, "group.id": self.options["group.id"]}
        )
        places = [TopicPartition(self._input, partition) for partition in PARTITIONS]
        found = consumer.committed(places, timeout=30)
        consumer.close()
        return sum(max(0, place.offset) for place in found)


@pytest.fixture(scope="module")
def archive():
    """The packed environment, made anew only if it is out of date."""
    subprocess.run(["make", "--silent", "archive"], cwd=ROOT, check=True, timeout=120)
    return ARCHIVE


@pytest.fixture(scope="module")
def standalone(tmp_path_factory):
    with StandaloneCluster(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def applications():
    """Those that were started; the last one may still be of use."""
    found = []
    yield found
    with ExitStack() as all_of_them:
        for application in found:
            all_of_them.callback(application.close)


@pytest.fixture(scope="module")
def settings():
    """Of Spark, for the applications of a module."""
    return {}


@pytest.fixture
def application(applications, standalone, archive, settings, tmp_path_factory):
    """The one of the test before, unless that test left it busy."""
    if not applications or not applications[-1].is_idle:
        for application in applications:
            application.close()
        folder = tmp_path_factory.mktemp("application")
        applications.append(Application(OnCluster(folder, standalone, archive, **settings)))
    return applications[-1]


@pytest.fixture
def copy(application, kafka, topic, tmp_path):
    topics = topic(len(PARTITIONS)), topic(3)
    return Copy(application, kafka.bootstrap_servers, topics, tmp_path / "checkpoint")
