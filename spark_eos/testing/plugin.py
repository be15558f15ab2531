"""Test process. A pytest plugin: a real broker for tests of jobs. pytest finds it by itself.

| fixture | what it is |
|---|---|
| `kafka` | an `EmbeddedKafka` of one node, started on first use and shared by the whole run |
| `kafka_topic` | a function that creates a topic with a unique name, and returns the name |
"""

import uuid
from collections.abc import Callable, Iterator

import pytest

from spark_eos.testing import EmbeddedKafka

# For a small program. The default compiler and collector take half of a JVM's first minute.
SMALL_JVM = ("-XX:TieredStopAtLevel=1", "-XX:-UseG1GC", "-XX:+UseSerialGC")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker. Clients connect to `kafka.bootstrap_servers`."""
    with EmbeddedKafka(tmp_path_factory.mktemp("kafka"), jvm_flags=SMALL_JVM) as cluster:
        yield cluster


@pytest.fixture
def kafka_topic(kafka: EmbeddedKafka, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Create a topic and return its name: `kafka_topic(partitions=3)`."""
    # Imported lazily, so that other tests do not wait for a Kafka client.
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    def create(partitions: int = 1, config: dict[str, str] | None = None) -> str:
        name = f"{request.node.name.partition('[')[0][:80]}-{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        wanted = NewTopic(name, num_partitions=partitions, config=config or {})
        admin.create_topics([wanted])[name].result(30)
        return name

    return create
