"""The input: numbered rows of some keys by an idempotent producer, and poison among them.

Poison is written in transactions that are aborted. A source that reads it, or a reader that finds
it in the output, has read what was never committed.
"""

import logging
import threading
import time

from confluent_kafka import KafkaException, Producer

from chaos.cluster import INPUT

KEYS = 24
POISON_ID = "bench-poison"
POISON_EVERY_S = 2.0
# That a fenced poisoner calls itself fatally broken is no news.
SILENT = logging.getLogger("chaos bench, silent")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False
CLIENT = {
    "logger": SILENT,
    "enable.idempotence": True,
    "linger.ms": 200,
    "partitioner": "murmur2_random",
}


class Generator:
    """Writes `rate` rows a second until it is stopped."""

    def __init__(self, servers, rate):
        self._servers = servers
        self._rate = rate
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=target, name=target.__name__, daemon=True)
            for target in (self._write, self._poison)
        ]
        self.failures = []
        self.sent = 0

    def start(self):
        for thread in self._threads:
            thread.start()

    def stop(self):
        """Stop when every row is acknowledged, and no poison is left open."""
        self._stop.set()
        for thread in self._threads:
            thread.join(90)

    def _write(self):
        # No time-out: a broker that is away for a while loses none, and the order stays.
        producer = Producer(CLIENT | {"bootstrap.servers": self._servers, "message.timeout.ms": 0})
        began = time.monotonic()
        while not self._stop.is_set():
            due = int((time.monotonic() - began) * self._rate)
            while self.sent < due:
                key = f"k{self.sent % KEYS:02}"
                value = f"{key}:{self.sent // KEYS:07}"
                try:
                    producer.produce(INPUT, value, key, on_delivery=self._told)
                except BufferError:
                    break
                self.sent += 1
            producer.poll(0.1)
        if producer.flush(60):
            self.failures.append("rows of the input were not acknowledged within a minute")

    def _told(self, error, _message):
        if error is not None:
            self.failures.append(str(error))

    def _poison(self):
        while not self._stop.is_set():
            # After a broker's fault: a new producer; to begin ends what the last one left.
            try:
                self._poison_until_it_fails()
            except KafkaException:
                self._stop.wait(1.0)
        for _ in range(20):
            try:
                self._poisoner()
                return
            except KafkaException:
                time.sleep(1.0)
        self.failures.append("a poisoned transaction may still be open")

    def _poison_until_it_fails(self):
        producer, number = self._poisoner(), 0
        while not self._stop.wait(POISON_EVERY_S):
            producer.begin_transaction()
            for _ in range(5):
                number += 1
                producer.produce(INPUT, f"poison:{number:07}", f"k{number % KEYS:02}")
            producer.flush(5)
            producer.abort_transaction(10)

    def _poisoner(self):
        producer = Producer(
            CLIENT
            | {
                "bootstrap.servers": self._servers,
                "transactional.id": POISON_ID,
                "transaction.timeout.ms": 10_000,
            }
        )
        producer.init_transactions(10)
        return producer
