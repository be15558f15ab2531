"""What all tests share: one broker, one cluster of three, one Spark session, started on first use.

They cost seconds, so they live as long as the run. A test gets its own topics and folders instead
of its own broker; a test that kills a broker starts one of its own with `EmbeddedKafka`.
"""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from spark_eos.testing import EmbeddedKafka
from spark_eos.testing._embedded.jars import delta_jars, peer_jars
from spark_eos.testing.plugin import SMALL_JVM

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient
    from pyspark.sql import SparkSession

# Workers would take the system's interpreter, which has no pyarrow.
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

ADMIN_TIMEOUT_S = 30.0
# Folders whose tests share a session, or brokers: `make test` runs each group in one process.
GROUPS = {"spark": "session", "jobs": "session"} | dict.fromkeys(
    ("chaos", "cluster", "integration"), "brokers"
)
MARKERS = {"kafka": "broker", "kafka3": "broker", "topic": "broker", "spark": "spark"}


class TopicFactory(Protocol):
    """Creates a topic with a name of its own and returns the name."""

    def __call__(
        self,
        partitions: int = 1,
        *,
        config: Mapping[str, str] | None = None,
        on: EmbeddedKafka | None = None,
    ) -> str: ...


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark a test by the fixtures it takes, so that no marker can be forgotten."""
    for item in items:
        values = item.callspec.params if hasattr(item, "callspec") else ()
        for name in getattr(item, "fixturenames", ()):
            if name in MARKERS and name not in values:
                item.add_marker(MARKERS[name])


class GroupScheduling(LoadScopeScheduling):
    """For `pytest -n 2`: what shares nothing goes file by file to whoever is free."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return GROUPS.get(path.split("/")[1], path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupScheduling:
    return GroupScheduling(config, log)


@pytest.fixture(scope="session")
def kafka3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """Three nodes, shared by the whole run. Who stops a node starts it again."""
    folder = tmp_path_factory.mktemp("kafka3")
    with EmbeddedKafka(folder, nodes=3, jvm_flags=SMALL_JVM) as cluster:
        yield cluster


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> TopicFactory:
    """Create topics on the shared node, or on the cluster given as `on`."""
    name = request.node.name.partition("[")[0][:80]

    def create(
        partitions: int = 1,
        *,
        config: Mapping[str, str] | None = None,
        on: EmbeddedKafka | None = None,
    ) -> str:
        from confluent_kafka.admin import AdminClient, NewTopic

        cluster = on if on is not None else request.getfixturevalue("kafka")
        unique = f"{name}-{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        wanted = NewTopic(unique, num_partitions=partitions, config=dict(config or {}))
        admin.create_topics([wanted])[unique].result(ADMIN_TIMEOUT_S)
        _wait_for_leaders(admin, unique, partitions)
        return unique

    return create


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session with Delta and with Spark's own Kafka connector, as an oracle."""
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("spark-eos tests")
        .config("spark.jars", ",".join(str(jar) for jar in [*delta_jars(), *peer_jars()]))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        # Delta reads a table's log in 50 tasks, also where it has one commit.
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config(
            "spark.driver.extraJavaOptions", f"{' '.join(SMALL_JVM)} -Dderby.system.home={folder}"
        )
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def _wait_for_leaders(admin: AdminClient, topic: str, partitions: int) -> None:
    """The controller knows a new topic first; a client that asks a broker may be too early."""
    deadline = time.monotonic() + ADMIN_TIMEOUT_S
    while time.monotonic() < deadline:
        found = admin.list_topics(topic, timeout=ADMIN_TIMEOUT_S).topics[topic]
        leaders = [part.leader for part in found.partitions.values() if part.leader > 0]
        if found.error is None and len(leaders) == partitions:
            return
        time.sleep(0.05)
    pytest.fail(f"topic {topic} had no leaders after {ADMIN_TIMEOUT_S} s")
