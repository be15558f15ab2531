"""Many transactional ids at once whose markers cannot be written: CONCURRENT_TRANSACTIONS to all.

The leader of a partition is frozen, and the cluster has not noticed. What is ended then is decided
in the coordinator's log and stays there: until the leader wakes up, every request for such an id is
answered with that code. For some milliseconds that is so between any two micro-batches.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient

from spark_eos._deadline import Deadline
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.coordinator import router as coordinator_router
from spark_eos._kafka.coordinator.client import CoordinatorClient
from spark_eos._kafka.produce.rows import Rows
from spark_eos._kafka.produce.transactional_producer import TransactionalProducer
from spark_eos._protocol.transactions.outcome import Api, ErrorCode, Outcome, outcome_of
from spark_eos._protocol.transactions.transaction import ProducerIdentity
from spark_eos.testing import EmbeddedKafka
from tests.chaos.oracle import assert_exactly_once

pytestmark = pytest.mark.slow
IDS = 51
FROZEN = 3
ROUNDS = 3  # so often each id is asked for again before the leader wakes up
PATIENCE_MS = 90_000
PROPERTIES = {
    # A leader that is given up gets no markers at all: Kafka 4.3 takes its partition for deleted.
    "broker.session.timeout.ms": "300000",
    # The coordinators go on without the frozen one.
    "replica.lag.time.max.ms": "2000",
}
TOPIC = "storm"
Codes = Counter[tuple[Api, int]]


def soon() -> Deadline:
    return Deadline.after_ms(PATIENCE_MS)


def wait_until(condition: Callable[[], bool], what: str, *seen: object) -> None:
    deadline = soon()
    while not condition():
        assert not deadline.passed, f"{what}: {seen}"
        time.sleep(0.05)


@pytest.fixture
def codes(monkeypatch: pytest.MonkeyPatch) -> Codes:
    """How often the product's client was answered what."""
    counted: Codes = Counter()

    def count(api: Api, code: int) -> Outcome:
        counted[api, code] += 1
        return outcome_of(api, code)

    monkeypatch.setattr(coordinator_router, "outcome_of", count)
    return counted


class Storm:
    """A cluster, a topic of which one partition is on one node alone, and the product's clients."""

    def __init__(self, cluster: EmbeddedKafka) -> None:
        self.cluster = cluster
        awake = ",".join(cluster.bootstrap_servers.split(",")[: FROZEN - 1])
        self.config = ClientConfig.from_options({"bootstrap.servers": awake})
        self.client = CoordinatorClient(self.config)
        self.visible: list[str] = []
        self._rows: dict[ProducerIdentity, list[str]] = {}
        self._spare: list[str] = []
        self._admin = AdminClient({"bootstrap.servers": awake})
        topic = NewTopic(
            TOPIC, 2, replica_assignment=[[FROZEN], [1]], config={"min.insync.replicas": "1"}
        )
        self._admin.create_topics([topic])[TOPIC].result(30)
        wait_until(self._is_led, "the topic has no leaders")

    def write(self, transactional_id: str) -> ProducerIdentity:
        """A row for each partition, in a transaction that stays open; as a task does it."""
        producer = TransactionalProducer(
            self.config, transactional_id, timeout_ms=300_000, send_timeout_ms=PATIENCE_MS
        )
        producer.partition_count(TOPIC, soon())
        producer.begin(soon())
        values: list[bytes | None] = [uuid.uuid4().hex.encode() for _ in range(2)]
        producer.send(Rows(topic=TOPIC, keys=[None, None], values=values, partitions=[0, 1]))
        identity = producer.prepare(soon()).identity
        self._rows[identity] = [value.decode() for value in values if value is not None]
        return identity

    def end(self, transactions: Sequence[ProducerIdentity], *, committed: bool) -> set[Outcome]:
        """As the driver does it. Rows that are to be committed are expected from then on."""
        if committed:
            for transaction in transactions:
                self.visible += self._rows.pop(transaction, [])
        answers = self.client.end(transactions, committed=committed, deadline=soon())
        return {answer.outcome for answer in answers.values()}

    def ids(self) -> list[str]:
        """Transactional ids whose coordinators stay awake."""
        query = uuid.uuid4()
        names = [f"spark-eos-{query}-{partition}" for partition in range(3 * IDS)]
        self.client.fence(names, timeout_ms=300_000, deadline=soon())
        admin = KafkaAdminClient(bootstrap_servers=self.cluster.bootstrap_servers)
        try:
            found = admin.describe_transactions(names)
        finally:
            admin.close()
        awake = [name for name in names if found[name].coordinator_id != FROZEN]
        self._spare = awake[IDS:]
        return awake[:IDS]

    def freeze(self) -> None:
        """The node is silent, and the coordinators no longer wait for its copy of their log: they
        find out with the next thing that they write.
        """
        self.cluster.pause(FROZEN)
        self.client.fence(self._spare, timeout_ms=300_000, deadline=soon())

    def _is_led(self) -> bool:
        with suppress(KeyError):  # not yet known
            found = self._admin.list_topics(TOPIC, timeout=20).topics[TOPIC].partitions
            return [found[partition].leader for partition in (0, 1)] == [FROZEN, 1]
        return False


@pytest.fixture
def storm(tmp_path: Path) -> Iterator[Storm]:
    with EmbeddedKafka(tmp_path, nodes=3, properties=PROPERTIES) as cluster:
        made = Storm(cluster)
        yield made
        made.client.close()


def assert_all_wait(codes: Codes, waiting: Sequence[Future[object]], share: int) -> None:
    """Every id was asked for again and again, and the answer was always the same."""
    busy = ErrorCode.CONCURRENT_TRANSACTIONS
    asked = (Api.END_TXN, Api.INIT_PRODUCER_ID)
    wait_until(
        lambda: all(codes[api, busy] >= ROUNDS * share for api in asked),
        "the coordinators were not busy",
        codes,
        waiting,
    )
    assert not any(codes[api, ErrorCode.NONE] for api in asked), codes
    assert not any(future.done() for future in waiting)


def test_ids_that_are_used_again_while_no_marker_can_be_written(storm: Storm, codes: Codes) -> None:
    """Half of them is committed, half aborted. Then all at once, before any of it has ended: one
    third is ended once more, one third fenced, and one third begins the next transaction.
    """
    with ThreadPoolExecutor(8) as pool:  # a few at a time: their clients are busy with statistics
        first = list(pool.map(storm.write, storm.ids()))
    assert len(first) == IDS
    with ThreadPoolExecutor(IDS) as pool:
        try:
            storm.freeze()
            assert storm.end(first[::2], committed=True) == {Outcome.DONE}
            assert storm.end(first[1::2], committed=False) == {Outcome.DONE}
            codes.clear()
            again, fenced, begun = (
                first[start : start + IDS // 3] for start in range(0, IDS, IDS // 3)
            )
            ends = [
                pool.submit(storm.end, again[::2], committed=True),
                pool.submit(storm.end, again[1::2], committed=False),
            ]
            ids = [transaction.transactional_id for transaction in fenced]
            fence = pool.submit(storm.client.fence, ids, timeout_ms=300_000, deadline=soon())
            writes = [pool.submit(storm.write, t.transactional_id) for t in begun]
            assert_all_wait(codes, [*ends, fence, *writes], IDS // 3)
        finally:
            storm.cluster.resume(FROZEN)
        assert [future.result() for future in ends] == [{Outcome.DONE}, {Outcome.DONE}]
        epochs = fence.result()
        second = [future.result() for future in writes]
    assert all(epochs[t.transactional_id].producer_epoch > t.producer_epoch for t in fenced)
    assert all(
        new.producer_epoch > old.producer_epoch for old, new in zip(begun, second, strict=True)
    )
    assert storm.end(second, committed=True) == {Outcome.DONE}
    assert_exactly_once(storm.cluster.bootstrap_servers, TOPIC, storm.visible)
    assert storm.client.list_open(soon()) == []
