"""The identity in librdkafka's statistics, and how often they come."""

import json

import pytest

from spark_eos._kafka.produce.producer_identity import ProducerIdentityCapture
from spark_eos._protocol.transactions.transaction import ProducerIdentity


@pytest.fixture(autouse=True)
def new_process(monkeypatch):
    monkeypatch.setattr(ProducerIdentityCapture, "_largest", 0)


def told(epoch, producer_id=7, size=0):
    return json.dumps(
        {"eos": {"producer_id": producer_id, "producer_epoch": epoch}, "topics": "x" * size}
    )


def test_identity_is_known_when_there_is_an_epoch():
    statistics = ProducerIdentityCapture("t")
    statistics.take(told(-1, -1))
    assert statistics.identity is None
    statistics.take(told(0))
    assert statistics.identity == ProducerIdentity(
        transactional_id="t", producer_id=7, producer_epoch=0
    )


def test_first_identity_counts():
    """A later one is of a transaction that cannot be committed any more."""
    statistics = ProducerIdentityCapture("t")
    statistics.take(told(3))
    statistics.take(told(4))
    assert statistics.identity.producer_epoch == 3


def test_small_ones_come_every_ten_milliseconds():
    assert ProducerIdentityCapture.interval_ms() == 10
    ProducerIdentityCapture("t").take(told(0, size=10_000))
    assert ProducerIdentityCapture.interval_ms() == 10


def test_large_ones_come_seldom_to_the_next_producer():
    ProducerIdentityCapture("t").take(told(0, size=500_000))
    ProducerIdentityCapture("u").take(told(0))
    assert 100 <= ProducerIdentityCapture.interval_ms() <= 110
