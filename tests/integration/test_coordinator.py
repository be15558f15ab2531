"""The coordinator client against real brokers, as a process that opened no transaction itself."""

from __future__ import annotations

import contextlib
import json
import logging
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaException, Producer

from spark_eos._deadline import Backoff, Deadline
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.coordinator.client import CoordinatorClient
from spark_eos._protocol.transactions.outcome import ErrorCode, Outcome
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import ProducerIdentity
from spark_eos._protocol.transactions.transactional_id import parse_transactional_id
from spark_eos.errors import BrokerUnreachableError, OptionError
from spark_eos.testing import EmbeddedKafka
from tests.chaos.oracle import committed_messages

if TYPE_CHECKING:
    from tests.conftest import TopicFactory

LEFT_OPEN = """
import json, sys, time
from confluent_kafka import Producer
servers, transactional_id, topic, value = sys.argv[1:]
eos = {}
producer = Producer({
    "bootstrap.servers": servers, "transactional.id": transactional_id,
    "retry.backoff.ms": 10, "reconnect.backoff.ms": 10, "log_level": 0,
    "statistics.interval.ms": 5, "stats_cb": lambda text: eos.update(json.loads(text)["eos"]),
})
producer.list_topics(timeout=20)
producer.init_transactions(20)
producer.begin_transaction()
producer.produce(topic, value)
assert producer.flush(20) == 0
eos.clear()
while "producer_epoch" not in eos:
    producer.poll(0.005)
print(json.dumps([eos["producer_id"], eos["producer_epoch"]]), flush=True)
time.sleep(600)
"""


def soon(ms: float = 20_000) -> Deadline:
    return Deadline.after_ms(ms)


def new_id(partition: int = 0) -> str:
    return f"spark-eos-{uuid.uuid4()}-{partition}"


class Writer:
    """A producer with one open transaction, and who it is for the coordinator."""

    def __init__(
        self, servers: str, transactional_id: str, topic: str, timeout_ms: int = 60_000
    ) -> None:
        self._eos: dict[str, int] = {}
        self.producer = Producer(
            {
                "bootstrap.servers": servers,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "retry.backoff.ms": 10,
                "reconnect.backoff.ms": 10,
                "log_level": 0,
                "statistics.interval.ms": 5,
                "stats_cb": lambda text: self._eos.update(json.loads(text)["eos"]),
            }
        )
        self.producer.list_topics(timeout=20)
        self.producer.init_transactions(20)
        self.producer.begin_transaction()
        self.producer.produce(topic, transactional_id)
        assert self.producer.flush(20) == 0
        self._eos.clear()
        while "producer_epoch" not in self._eos:
            self.producer.poll(0.005)
        self.identity = ProducerIdentity(
            transactional_id=transactional_id,
            producer_id=self._eos["producer_id"],
            producer_epoch=self._eos["producer_epoch"],
        )


def visible(servers: str, topic: str) -> list[bytes]:
    """All that an independent read_committed reader gets now, up to the end of every partition."""
    return [found.value() for found in committed_messages(servers, topic, settle_s=0).values()]


def eventually_visible(servers: str, topic: str, expected: list[bytes]) -> bool:
    """DONE comes before the markers are written, so a reader may be a moment too early."""
    deadline = soon()
    while not deadline.passed:
        if sorted(visible(servers, topic)) == sorted(expected):
            return True
    return False


@pytest.fixture
def client(kafka: EmbeddedKafka) -> Iterator[CoordinatorClient]:
    made = CoordinatorClient(
        ClientConfig.from_options({"bootstrap.servers": kafka.bootstrap_servers})
    )
    yield made
    made.close()


def test_transaction_of_a_killed_process_is_committed_from_outside(
    kafka: EmbeddedKafka, topic: TopicFactory, client: CoordinatorClient
) -> None:
    name, transactional_id = topic(), new_id()
    arguments = [kafka.bootstrap_servers, transactional_id, name, "survives"]
    process = subprocess.Popen(
        [sys.executable, "-c", LEFT_OPEN, *arguments], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        producer_id, epoch = json.loads(process.stdout.readline())
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=20)
    identity = ProducerIdentity(
        transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch
    )

    described = client.describe([transactional_id], soon())[transactional_id]
    assert described is not None
    assert described.identity == identity
    assert described.state is TransactionState.ONGOING
    assert described.start_time_ms is not None
    assert visible(kafka.bootstrap_servers, name) == []

    answer = client.end([identity], committed=True, deadline=soon())[transactional_id]
    assert answer.outcome is Outcome.DONE
    assert eventually_visible(kafka.bootstrap_servers, name, [b"survives"])


def test_end_answers_done_refused_and_why(
    kafka: EmbeddedKafka, topic: TopicFactory, client: CoordinatorClient
) -> None:
    name, key = topic(), new_id()
    identity = Writer(kafka.bootstrap_servers, key, name).identity
    older = ProducerIdentity(
        transactional_id=key, producer_id=identity.producer_id, producer_epoch=-1
    )

    def end(who: ProducerIdentity, *, committed: bool) -> tuple[Outcome, int]:
        answer = client.end([who], committed=committed, deadline=soon())[who.transactional_id]
        return answer.outcome, answer.code

    assert end(older, committed=True) == (Outcome.REFUSED, ErrorCode.PRODUCER_FENCED)
    assert end(identity, committed=True) == (Outcome.DONE, ErrorCode.NONE)
    # At once: the coordinator answers CONCURRENT_TRANSACTIONS until the markers are written.
    assert end(identity, committed=True) == (Outcome.DONE, ErrorCode.NONE)
    assert end(identity, committed=False) == (Outcome.REFUSED, ErrorCode.INVALID_TXN_STATE)
    unknown = ProducerIdentity(transactional_id=new_id(), producer_id=1, producer_epoch=0)
    assert end(unknown, committed=True) == (
        Outcome.REFUSED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    )
    described = client.describe([key, unknown.transactional_id], soon())
    assert described[unknown.transactional_id] is None
    complete = described[key]
    assert complete is not None
    assert complete.state is TransactionState.COMPLETE_COMMIT


def test_end_does_not_bump_the_epoch(
    kafka: EmbeddedKafka, topic: TopicFactory, client: CoordinatorClient
) -> None:
    """EndTxn 5 would, and then a repeated end with the logged epoch means something else."""
    identity = Writer(kafka.bootstrap_servers, new_id(), topic()).identity
    client.end([identity], committed=True, deadline=soon())
    described = client.describe([identity.transactional_id], soon())[identity.transactional_id]
    assert described is not None
    assert described.identity == identity


def test_aborted_rows_stay_invisible_and_free_the_partition(
    kafka: EmbeddedKafka, topic: TopicFactory, client: CoordinatorClient
) -> None:
    name = topic()
    lost = Writer(kafka.bootstrap_servers, new_id(), name).identity
    kept = Writer(kafka.bootstrap_servers, new_id(), name).identity
    assert (
        client.end([kept], committed=True, deadline=soon())[kept.transactional_id].outcome
        is Outcome.DONE
    )
    assert visible(kafka.bootstrap_servers, name) == []  # held back by the open one
    assert (
        client.end([lost], committed=False, deadline=soon())[lost.transactional_id].outcome
        is Outcome.DONE
    )
    assert eventually_visible(kafka.bootstrap_servers, name, [kept.transactional_id.encode()])


def test_fence_aborts_what_is_open_and_stops_its_producer(
    kafka: EmbeddedKafka, topic: TopicFactory, client: CoordinatorClient
) -> None:
    name, key = topic(), new_id()
    writer = Writer(kafka.bootstrap_servers, key, name)
    fenced = client.fence([key], timeout_ms=30_000, deadline=soon())[key]
    assert fenced.producer_id == writer.identity.producer_id
    assert fenced.producer_epoch > writer.identity.producer_epoch

    answer = client.end([writer.identity], committed=True, deadline=soon())[key]
    assert (answer.outcome, answer.code) == (Outcome.REFUSED, ErrorCode.PRODUCER_FENCED)
    writer.producer.produce(name, b"zombie")
    with pytest.raises(KafkaException):
        writer.producer.commit_transaction(20)
    assert visible(kafka.bootstrap_servers, name) == []
    described = client.describe([key], soon())[key]
    assert described is not None
    assert described.state is TransactionState.EMPTY
    assert described.timeout_ms == 30_000


def test_open_transactions_are_listed_with_ids_that_parse(
    kafka: EmbeddedKafka, topic: TopicFactory, client: CoordinatorClient
) -> None:
    name = topic()
    identity = Writer(kafka.bootstrap_servers, new_id(7), name).identity
    over = Writer(kafka.bootstrap_servers, new_id(8), name).identity
    client.end([over], committed=False, deadline=soon())
    client.fence([over.transactional_id], timeout_ms=60_000, deadline=soon())  # waits for the end

    listed = {listing.transactional_id: listing for listing in client.list_open(soon())}
    assert over.transactional_id not in listed
    found = listed[identity.transactional_id]
    assert found.state is TransactionState.ONGOING
    assert found.producer_id == identity.producer_id
    parsed = parse_transactional_id(found.transactional_id)
    assert parsed is not None
    assert parsed.partition == 7
    client.end([identity], committed=False, deadline=soon())


def test_two_hundred_ids_at_once(
    client: CoordinatorClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = uuid.uuid4()
    keys = [f"spark-eos-{query}-{partition}" for partition in range(250)]
    first = client.fence(keys, timeout_ms=60_000, deadline=soon(60_000))
    with monkeypatch.context() as patched:  # all go out in one round, whatever their number
        patched.setattr(Backoff, "wait", lambda _: pytest.fail("one was not sent at once"))
        again = client.fence(keys, timeout_ms=60_000, deadline=soon(60_000))
    assert [again[key].producer_epoch - first[key].producer_epoch for key in keys] == [1] * 250
    described = client.describe(keys, soon())
    assert list(described) == keys
    assert {d.identity for d in described.values() if d is not None} == set(again.values())
    answers = client.end(list(again.values()), committed=True, deadline=soon(60_000))
    assert {answer.outcome for answer in answers.values()} == {Outcome.REFUSED}  # nothing is open


def test_timeout_above_the_brokers_maximum_names_both_settings(client: CoordinatorClient) -> None:
    with pytest.raises(OptionError, match=r"kafka\.transaction\.timeout\.ms.*max\.timeout\.ms"):
        client.fence([new_id()], timeout_ms=2_000_000_000, deadline=soon())


def test_calls_from_several_threads_take_turns(client: CoordinatorClient) -> None:
    keys = [new_id() for _ in range(8)]
    found: dict[str, Any] = {}
    threads = [
        threading.Thread(
            target=lambda k=key: found.update(client.fence([k], timeout_ms=9, deadline=soon()))
        )
        for key in keys
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found.keys() == set(keys)


@pytest.mark.parametrize("kind", ["refuses", "is silent", "has no address"])
def test_unreachable_broker_ends_with_the_deadline_and_is_named(kind: str) -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    with silent:
        server = {
            "refuses": "127.0.0.1:1",
            "is silent": f"127.0.0.1:{silent.getsockname()[1]}",
            "has no address": "nowhere.invalid:9092",
        }[kind]
        client = CoordinatorClient(ClientConfig.from_options({"bootstrap.servers": server}))
        identity = ProducerIdentity(transactional_id=new_id(), producer_id=1, producer_epoch=0)
        asked = [
            lambda: client.describe([identity.transactional_id], soon(400)),
            lambda: client.fence([identity.transactional_id], timeout_ms=1, deadline=soon(400)),
            lambda: client.list_open(soon(400)),
        ]
        started = time.monotonic()
        for ask in asked:
            with pytest.raises(BrokerUnreachableError, match=server):
                ask()
        answers = client.end([identity], committed=True, deadline=soon(400))
        assert answers[identity.transactional_id].outcome is Outcome.UNKNOWN
        assert time.monotonic() - started < 4 * 0.4 + 5.0  # room for a busy machine
        client.close()


def test_nothing_is_logged_about_a_broker_that_is_away(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    client = CoordinatorClient(ClientConfig.from_options({"bootstrap.servers": "127.0.0.1:1"}))
    with pytest.raises(BrokerUnreachableError, match="ECONNREFUSED"):
        client.list_open(soon(1_000))
    assert caplog.records == []


@pytest.mark.slow
def test_restarted_broker_is_found_again(tmp_path: Path) -> None:
    with EmbeddedKafka(tmp_path) as own:
        config = ClientConfig.from_options({"bootstrap.servers": own.bootstrap_servers})
        client = CoordinatorClient(config)
        key = new_id()
        before = client.fence([key], timeout_ms=60_000, deadline=soon())[key]
        own.kill(1)
        lost = client.end([before], committed=True, deadline=soon(300))[key]
        assert lost.outcome is Outcome.UNKNOWN
        own.start_node(1)
        after = client.fence([key], timeout_ms=60_000, deadline=soon())[key]
        assert after.producer_epoch == before.producer_epoch + 1
        client.close()


@pytest.mark.slow
def test_coordinator_killed_while_transactions_end(tmp_path: Path) -> None:
    """Every end is DONE or UNKNOWN, and what the new coordinators say in the end agrees."""
    with EmbeddedKafka(tmp_path, nodes=3) as own:
        servers = own.bootstrap_servers
        name = _replicated_topic(servers)
        client = CoordinatorClient(ClientConfig.from_options({"bootstrap.servers": servers}))
        writers = [Writer(servers, new_id(number), name, 120_000) for number in range(12)]
        identities = [writer.identity for writer in writers]
        del writers
        client.describe([i.transactional_id for i in identities], soon())  # warm
        killer = threading.Timer(0.01, own.kill, [2])
        killer.start()
        answers = client.end(identities, committed=True, deadline=soon(60_000))
        killer.join()
        outcomes = {answer.outcome for answer in answers.values()}
        assert outcomes <= {Outcome.DONE, Outcome.UNKNOWN}, answers
        again = client.end(identities, committed=True, deadline=soon(60_000))
        assert {answer.outcome for answer in again.values()} == {Outcome.DONE}, again
        expected = [identity.transactional_id.encode() for identity in identities]
        assert eventually_visible(servers, name, expected)
        assert client.list_open(soon(60_000)) == []
        client.close()


@pytest.mark.slow
def test_silent_coordinator_is_given_up_for_its_successor(tmp_path: Path) -> None:
    """A frozen broker keeps its connections open: only the limit of an attempt helps."""
    with EmbeddedKafka(tmp_path, nodes=3) as own:
        servers = own.bootstrap_servers
        client = CoordinatorClient(ClientConfig.from_options({"bootstrap.servers": servers}))
        keys = [new_id(number) for number in range(12)]  # every broker coordinates some of them
        before = client.fence(keys, timeout_ms=60_000, deadline=soon(60_000))
        own.pause(3)
        try:
            after = client.fence(keys, timeout_ms=60_000, deadline=soon(90_000))
        finally:
            own.resume(3)
        assert all(after[k].producer_epoch > before[k].producer_epoch for k in keys)
        client.close()


def _replicated_topic(servers: str) -> str:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic("ends", num_partitions=3)])["ends"].result(30)
    while len(admin.list_topics("ends", timeout=30).topics["ends"].partitions) < 3:
        time.sleep(0.05)
    with contextlib.suppress(KafkaException):
        admin.poll(0)
    return "ends"
