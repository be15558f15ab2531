"""The embedded broker is a real Kafka, takes the faults tests need, and is never left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from spark_eos.testing import EmbeddedKafka, EmbeddedKafkaError
from spark_eos.testing._embedded.process import ProcessIdentity
from tests.conftest import TopicFactory

TIMEOUT_S = 30.0
COMMAND = [sys.executable, "-m", "spark_eos._cli.main", "broker"]
STARTER = """
import json, sys, time
from spark_eos.testing import EmbeddedKafka
with EmbeddedKafka(sys.argv[1]) as kafka:
    print(json.dumps(kafka.pids), flush=True)
    time.sleep(600)
"""


def test_record_comes_back_from_one_node(kafka: EmbeddedKafka, topic: TopicFactory) -> None:
    name = topic()
    _produce(kafka, name, b"hello")
    assert _read(kafka, name) == [b"hello"]


def test_unknown_topic_is_not_created(kafka: EmbeddedKafka) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    assert admin.list_topics("nobody-made-this", timeout=TIMEOUT_S).topics["nobody-made-this"].error
    assert "nobody-made-this" not in admin.list_topics(timeout=TIMEOUT_S).topics


def test_three_nodes_keep_three_copies_with_two_in_sync(kafka3: EmbeddedKafka) -> None:
    assert len(kafka3.bootstrap_servers.split(",")) == len(kafka3.pids) == 3
    admin = AdminClient({"bootstrap.servers": kafka3.bootstrap_servers})
    node = ConfigResource(ConfigResource.Type.BROKER, "2")
    settings = admin.describe_configs([node])[node].result(TIMEOUT_S)
    assert settings["transaction.state.log.replication.factor"].value == "3"
    assert settings["transaction.state.log.min.isr"].value == "2"
    assert settings["min.insync.replicas"].value == "2"
    assert settings["unclean.leader.election.enable"].value == "false"


@pytest.mark.slow
def test_three_nodes_serve_while_one_is_killed_and_take_it_back(
    kafka3: EmbeddedKafka, topic: TopicFactory
) -> None:
    name = topic(partitions=3, on=kafka3)
    before = kafka3.pids
    kafka3.kill(2)
    try:
        assert set(kafka3.pids) == {1, 3}
        for partition in range(3):
            _produce(kafka3, name, b"while down", partition)
    finally:
        kafka3.start_node(2)
    assert kafka3.pids[2] != before[2]
    assert {node: pid for node, pid in kafka3.pids.items() if node != 2} == {
        node: pid for node, pid in before.items() if node != 2
    }
    assert [_read(kafka3, name, partition) for partition in range(3)] == [[b"while down"]] * 3


@pytest.mark.slow
def test_node_keeps_port_and_data_over_kill_stop_and_pause(tmp_path: Path) -> None:
    with EmbeddedKafka(tmp_path) as kafka:
        address = kafka.bootstrap_servers
        _create(kafka, "kept")
        _produce(kafka, "kept", b"one")
        kafka.kill(1)
        assert kafka.pids == {}
        kafka.start_node(1)
        _produce(kafka, "kept", b"two")
        kafka.stop_node(1)
        kafka.start_node(1)
        kafka.pause(1)
        with pytest.raises(RuntimeError, match="timed out"):
            _produce(kafka, "kept", b"never", timeout_ms=1_500)
        kafka.resume(1)
        assert _read(kafka, "kept")[:2] == [b"one", b"two"]
        with pytest.raises(EmbeddedKafkaError, match="runs already"):
            kafka.start_node(1)
        with pytest.raises(EmbeddedKafkaError, match="no node 2"):
            kafka.kill(2)
        with pytest.raises(EmbeddedKafkaError, match="in use by the brokers with pids"):
            EmbeddedKafka(tmp_path).start()
        pid = kafka.pids[1]
    assert ProcessIdentity.of(pid) is None
    with EmbeddedKafka(tmp_path) as again:
        assert again.bootstrap_servers == address
        assert _read(again, "kept")[:2] == [b"one", b"two"]


def test_killed_parent_leaves_no_broker_behind(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pids: dict[str, int] = json.loads(parent.stdout.readline())
        broker = ProcessIdentity.of(pids["1"])
        assert broker is not None
        parent.send_signal(signal.SIGKILL)
        assert parent.wait(TIMEOUT_S) == -signal.SIGKILL
        assert broker.wait(timeout_s=5.0)
    with EmbeddedKafka(tmp_path) as again:  # the folder is usable at once
        assert again.pids


def test_killed_supervisor_takes_the_broker_with_it(tmp_path: Path) -> None:
    kafka = EmbeddedKafka(tmp_path).start()
    try:
        broker = ProcessIdentity.of(kafka.pids[1])
        assert broker is not None
        os.kill(_parent_of(broker.pid), signal.SIGKILL)
        assert broker.wait(timeout_s=5.0)
    finally:
        kafka.stop()


def test_broker_that_cannot_start_shows_its_log(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedKafkaError, match=r"(?s)node 1 ended.*server\.log.*no\.such\.Class"):
        EmbeddedKafka(tmp_path, properties={"metric.reporters": "no.such.Class"}).start()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for a detached broker, which is stopped also when the test fails."""
    yield tmp_path
    _cli("stop", tmp_path)


def test_command_line_starts_reports_and_stops(folder: Path) -> None:
    started = _cli("start", folder, "--property", "num.partitions=7")
    assert started.returncode == 0, started.stderr
    address = started.stdout.strip()
    admin = AdminClient({"bootstrap.servers": address})
    node = ConfigResource(ConfigResource.Type.BROKER, "1")
    settings = admin.describe_configs([node])[node].result(TIMEOUT_S)
    assert settings["num.partitions"].value == "7"

    status = _cli("status", folder)
    assert status.returncode == 0
    assert status.stdout.startswith(f"{address}  running: node 1 pid ")
    second = _cli("start", folder)
    assert second.returncode == 1
    assert "in use by the brokers with pids" in second.stderr

    assert _cli("stop", folder).stdout.startswith("stopped: pids [")
    assert _cli("status", folder).returncode == 3


def test_command_line_without_java_says_so_in_one_line(tmp_path: Path) -> None:
    bare = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    failed = _cli("start", tmp_path, env=bare | {"PATH": str(tmp_path)})
    assert failed.returncode == 1
    assert failed.stderr.startswith("spark-eos: Java was not found: install ")
    assert failed.stderr.count("\n") == 1


def _cli(
    action: str, folder: Path, *more: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, action, "--folder", str(folder), *more],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env=env,
    )


def _parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _create(kafka: EmbeddedKafka, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic(topic, num_partitions=1)])[topic].result(TIMEOUT_S)


def _produce(
    kafka: EmbeddedKafka, topic: str, value: bytes, partition: int = 0, timeout_ms: int = 30_000
) -> None:
    outcome: list[KafkaError | None] = []
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "acks": "all",
            "message.timeout.ms": timeout_ms,
        }
    )
    producer.produce(topic, value, partition=partition, on_delivery=lambda e, _: outcome.append(e))
    producer.flush(TIMEOUT_S)
    for error in outcome or ["no answer"]:
        if error is not None:
            raise RuntimeError(str(error))


def _read(kafka: EmbeddedKafka, topic: str, partition: int = 0) -> list[bytes]:
    """All values of a partition, up to its end at the time of the call."""
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "unused", "log_level": 0}
    )
    try:
        place = TopicPartition(topic, partition, 0)
        _, end = consumer.get_watermark_offsets(place, timeout=TIMEOUT_S)
        consumer.assign([place])
        values: list[bytes] = []
        deadline = time.monotonic() + TIMEOUT_S
        while len(values) < end and time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                values.append(message.value())
        return values
    finally:
        consumer.close()
