"""A broker that takes rows slowly is waited for; one that takes none is not."""

import time

import pytest

from spark_eos._deadline import Deadline
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.produce.idempotent_producer import IdempotentProducer
from spark_eos._kafka.produce.rows import Rows
from spark_eos.errors import BrokerUnreachableError

TIMEOUT_MS = 300
ROWS = Rows(topic="t", keys=[None] * 5, values=[b"v"] * 5)


class Slow:
    """Stands for librdkafka's client: its broker takes a row every so often, up to a number."""

    def __init__(self, every_s, most):
        self._every_s = every_s
        self._most = most
        self._queued = []
        self._taken = 0

    def __len__(self):
        return len(self._queued)

    def produce_batch(self, _topic, messages, on_delivery):
        self._queued += [on_delivery] * len(messages)
        return len(messages)

    def poll(self, timeout_s):
        time.sleep(timeout_s)

    def flush(self, timeout_s):
        deadline = time.monotonic() + timeout_s
        while self._queued and time.monotonic() < deadline:
            time.sleep(self._every_s)
            if self._taken < self._most:
                self._taken += 1
                self._queued.pop(0)(None, self)

    def partition(self):
        return 0

    def offset(self):
        return self._taken


@pytest.fixture
def producer(monkeypatch):
    config = ClientConfig.from_options({"bootstrap.servers": "127.0.0.1:1"})
    found = IdempotentProducer(config, "some", send_timeout_ms=TIMEOUT_MS)

    def with_broker(every_s, most):
        monkeypatch.setattr(found, "_producer", Slow(every_s, most))
        found.send(ROWS)
        return found

    return with_broker


def test_rows_that_are_taken_slowly_are_waited_for(producer):
    """Each within the time-out, all of them far behind it."""
    began = time.monotonic()
    producer(0.1, len(ROWS)).flush(Deadline.after_ms(TIMEOUT_MS))
    assert time.monotonic() - began > TIMEOUT_MS / 1000


@pytest.mark.parametrize("most", [0, 2])
def test_broker_that_takes_no_more_is_given_up(producer, most):
    with pytest.raises(BrokerUnreachableError, match=f"took {most} of 5 .* then none for 300 ms"):
        producer(0.01, most).flush(Deadline.after_ms(TIMEOUT_MS))
