"""The producer of one task attempt, while it waits for rows and when it is dropped."""

import gc
import threading
import time
from pathlib import Path

import pytest

from spark_eos._deadline import Deadline
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.produce.rows import Rows
from spark_eos._kafka.produce.transactional_producer import TransactionalProducer
from spark_eos.errors import DeliveryError

WAIT_S = 2.0  # librdkafka reports two hundred times


def soon():
    return Deadline.after_ms(20_000)


@pytest.fixture
def written_to(topic):
    return topic()


@pytest.fixture
def begun(kafka, written_to):
    """Makes a producer with a row in its transaction; each has the same id."""
    config = ClientConfig.from_options({"bootstrap.servers": kafka.bootstrap_servers})

    def make():
        made = TransactionalProducer(
            config, name_of(written_to), timeout_ms=60_000, send_timeout_ms=20_000
        )
        made.partition_count(written_to, soon())
        made.begin(soon())
        made.send(row(written_to))
        return made

    return make


def row(topic):
    return Rows(topic=topic, keys=[None], values=[b"x"])


def native_threads():
    """With those of librdkafka, which Python does not know."""
    return len(list(Path("/proc/self/task").iterdir()))


def name_of(topic):
    return f"{topic}-id"


def is_served(topic):
    return any(thread.name == f"serving {name_of(topic)}" for thread in threading.enumerate())


def test_reports_do_not_pile_up_while_rows_are_waited_for(begun):
    producer = begun()
    time.sleep(WAIT_S)
    assert len(producer._producer) < 50


def test_rows_after_a_wait_are_all_counted(begun, written_to):
    producer = begun()
    for _ in range(5):
        time.sleep(0.15)
        producer.send(row(written_to))
    (written,) = producer.prepare(soon()).partitions
    assert (written.records, written.last_offset - written.first_offset) == (6, 5)


def test_row_after_a_wait_in_which_the_id_was_taken_over_is_refused(begun, written_to):
    first, second = begun(), begun()
    time.sleep(0.5)
    with pytest.raises(DeliveryError, match=r"taken over .* or timed out"):
        send_now_and_then(first, written_to)
    first.abort(soon())
    assert second.prepare(soon()).partitions[0].records == 1


def send_now_and_then(producer, topic):
    """What becomes of a row is told before the next one is sent."""
    deadline = soon()
    while not deadline.passed:
        producer.send(row(topic))
        time.sleep(0.15)


@pytest.mark.parametrize("end", [TransactionalProducer.prepare, TransactionalProducer.abort])
def test_nobody_serves_behind_the_end(begun, written_to, end):
    producer = begun()
    assert is_served(written_to)
    end(producer, soon())
    assert not is_served(written_to)


def test_dropped_client_is_gone_at_once(begun):
    """Its threads and memory would else stay until Python looks for cycles."""
    gc.collect()
    gc.disable()
    try:
        before = native_threads()
        producer = begun()
        assert native_threads() > before
        del producer
        deadline = soon()
        while native_threads() > before and not deadline.passed:
            time.sleep(0.05)
        assert native_threads() <= before
    finally:
        gc.enable()
