"""Those who only look while the run goes on: a reader, samples of offsets, Spark's checkpoint."""

import json
import threading
import time
from contextlib import suppress

from confluent_kafka import Consumer, KafkaException, TopicPartition

from chaos.cluster import GROUP, INPUT, OUTPUT, PARTITIONS

SAMPLE_EVERY_S = 1.0
ASK_S = 3.0
CLIENT = {
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "log_level": 2,
    "topic.metadata.refresh.interval.ms": 2000,
}


def consumer(servers, group, isolation, **more):
    return Consumer(
        CLIENT
        | {"bootstrap.servers": servers, "group.id": group, "isolation.level": isolation}
        | more
    )


def partitions_of(topic, offset=0):
    return [TopicPartition(topic, number, offset) for number in range(PARTITIONS)]


class Watcher(threading.Thread):
    """Looks every so often until it is told to stop."""

    every_s = 0.0

    def __init__(self, history):
        super().__init__(name=type(self).__name__, daemon=True)
        self._history = history
        self._done = threading.Event()
        self.error = None

    def stop(self):
        self._done.set()
        if self.is_alive():
            self.join(30)

    def run(self):
        while not self._done.wait(self.every_s):
            try:
                self.look()
            except (KafkaException, OSError):  # a broker that is away, a file that Spark replaced
                continue
            except Exception as error:  # a watcher that is gone must not look like a quiet one
                self.error = error
                raise


class LiveReader(Watcher):
    """What a read_committed consumer sees, as it sees it."""

    def __init__(self, history, servers):
        super().__init__(history)
        self._consumer = consumer(servers, "bench-live", "read_committed")
        self._consumer.assign(partitions_of(OUTPUT))
        self.places = set()  # (partition, offset) of what it has seen

    def look(self):
        rows = rows_of(self._consumer.consume(2000, timeout=0.2))
        if rows:
            self._history.add("seen", reader="live", rows=rows)
            self.places |= {(row[0], row[1]) for row in rows}


class Sampler(Watcher):
    """Last stable offsets, end offsets, and where the group stands."""

    every_s = SAMPLE_EVERY_S

    def __init__(self, history, servers):
        super().__init__(history)
        self._stable = consumer(servers, "bench-sampler", "read_committed")
        self._end = consumer(servers, "bench-sampler", "read_uncommitted")
        # Asks for the group's offsets and never joins it.
        self._group = consumer(servers, GROUP, "read_uncommitted")
        self.whole_since = 0.0  # when the last look began that got every answer

    def look(self):
        began, found = time.monotonic(), {}
        for place in partitions_of(OUTPUT):
            # The stable one first: asked last it could be ahead of the end.
            with suppress(KafkaException):
                stable = self._stable.get_watermark_offsets(place, timeout=ASK_S)[1]
                end = self._end.get_watermark_offsets(place, timeout=ASK_S)[1]
                found[place.partition] = [stable, end]
        if found:
            self._history.add("offsets", asked=began, partitions=found)
        asked = time.monotonic()
        answers = self._group.committed(partitions_of(INPUT), timeout=ASK_S)
        known = {a.partition: a.offset for a in answers if a.error is None and a.offset >= 0}
        if known:
            self._history.add("group", asked=asked, partitions=known)
        if len(found) == len(known) == PARTITIONS:
            self.whole_since = began


class CheckpointWatcher(Watcher):
    """Batches as Spark writes them down: `offsets/N` before one runs, `commits/N` behind it."""

    every_s = 0.2

    def __init__(self, history, checkpoint):
        super().__init__(history)
        self._offsets, self._commits = checkpoint / "offsets", checkpoint / "commits"
        self._begun = {}
        self.completed = {}  # batch id -> its end (monotonic)
        self.ends = {}

    def look(self):
        for number, path in _numbered(self._offsets):
            if number not in self._begun and (ends := _ends(path)) is not None:
                self._begun[number], self.ends[number] = _modified(path), ends
                self._tell(number)
        for number, path in _numbered(self._commits):
            if number in self._begun and number not in self.completed:
                self.completed[number] = _modified(path)
                self._tell(number)

    def _tell(self, number):
        start, end = self._begun[number], self.completed.get(number)
        self._history.add("batch", id=number, start=start, end=end, ends=self.ends[number])

    @property
    def last_completed_at(self):
        return max(self.completed.values(), default=0.0)

    @property
    def completed_ends(self):
        """Where the last completed batch ends in the input."""
        return self.ends[max(self.completed)] if self.completed else {}


def rows_of(messages):
    """[partition, offset, key, value] of those that are no errors."""
    return [
        [m.partition(), m.offset(), (m.key() or b"").decode(), (m.value() or b"").decode()]
        for m in messages
        if m.error() is None
    ]


def _numbered(folder):
    if not folder.exists():
        return []
    return sorted((int(path.name), path) for path in folder.iterdir() if path.name.isdigit())


def _ends(path):
    """The end offsets of a batch; None while the file is not whole."""
    with suppress(OSError, ValueError, IndexError):
        found = json.loads(path.read_text().splitlines()[2])[INPUT]
        return {int(partition): offset for partition, offset in found.items()}
    return None


def _modified(path):
    """When a file was written, on the monotonic clock."""
    return time.monotonic() - (time.time() - path.stat().st_mtime)
