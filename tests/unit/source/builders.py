"""Values for tests of the source, and a stand-in for the client that asks for offsets."""

from collections.abc import Iterable, Mapping

from spark_eos._options import stream_options
from spark_eos._protocol.offsets.offset_limit import Offsets, TopicPartition
from spark_eos._protocol.offsets.stream_position import StreamPosition
from spark_eos._protocol.offsets.subscription import Assign, Pattern, Subscribe, Subscription
from spark_eos._source.stream_offsets import StreamOffsets

A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)


class Topics:
    """Tells what its attributes hold, with one id for each topic."""

    def __init__(self, ends: Offsets) -> None:
        self.ends = dict(ends)
        self.firsts: Offsets = {}
        self.ids: dict[str, str | None] = {}
        self.leader_knows: Offsets = {}  # what a new leader tells when it is asked only once
        self.questions = 0

    def partitions(self, subscription: Subscription) -> dict[TopicPartition, str | None]:
        self.questions += 1
        return {p: self.ids.get(p[0], "first") for p in self.ends if _is_read(subscription, p)}

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return {p: self.firsts.get(p, 0) for p in partitions if p in self.ends}

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return {p: (self.ends | self.leader_knows)[p] for p in partitions if p in self.ends}

    def latest_not_behind(self, partitions: Iterable[TopicPartition], known: Offsets) -> Offsets:
        once = self.latest(partitions)
        return {p: self.ends[p] if end < known.get(p, 0) else end for p, end in once.items()}


def _is_read(subscription: Subscription, place: TopicPartition) -> bool:
    match subscription:
        case Assign(partitions):
            return place in partitions
        case Subscribe(topics):
            return place[0] in topics
        case Pattern():
            return subscription.matches(place[0])


class Clock:
    """Seconds, as they are set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class WithoutIds:
    """A query's offsets, asked with the numbers alone, as a checkpoint without ids has them."""

    def __init__(self, offsets: StreamOffsets) -> None:
        self._offsets = offsets
        self.freeze = offsets.freeze

    @property
    def seen(self) -> Offsets | None:
        return None if self._offsets.seen is None else self._offsets.seen.offsets

    @property
    def snapshot(self):
        return self._offsets._snapshot

    def initial(self) -> Offsets:
        return self._offsets.initial().offsets

    def latest(self, start: Offsets, *, limited: bool, most: int | None) -> Offsets:
        return self._offsets.latest(StreamPosition(start), limited=limited, most=most).offsets

    def ranges(self, start: Offsets, end: Offsets):
        return self._offsets.ranges(StreamPosition(start), StreamPosition(end))


def stream(topics: Topics, given: Mapping[str, str] | None = None, clock: Clock | None = None):
    """The offsets of a query over `topics`, as numbers."""
    return WithoutIds(stream_with_ids(topics, given, clock))


def stream_with_ids(
    topics: Topics, given: Mapping[str, str] | None = None, clock: Clock | None = None
) -> StreamOffsets:
    """The offsets of a query over `topics`, with options as a user gives them."""
    options = {"kafka.bootstrap.servers": "127.0.0.1:1"} | dict(given or {})
    if not {"subscribe", "assign", "subscribePattern"} & options.keys():
        options["subscribePattern"] = ".*"
    offsets = StreamOffsets(stream_options(options), clock or Clock())
    offsets._reader = topics
    return offsets
