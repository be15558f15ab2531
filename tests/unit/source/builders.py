"""Values for tests of the source, and a stand-in for the client that asks for offsets."""

from collections.abc import Iterable, Mapping

from spark_eos._deadline import Deadline
from spark_eos._kafka.admin.group import ConsumerGroups
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._options import SourceOptions, stream_options
from spark_eos._protocol.offsets.stream_position import StreamPosition
from spark_eos._protocol.offsets.subscription import Assign, Pattern, Subscribe, Subscription
from spark_eos._protocol.offsets.topic_partition import Offsets, TopicPartition
from spark_eos._protocol.transactions.fate import Fate
from spark_eos._session import ReadSession
from spark_eos._source.stream_offsets import StreamOffsets

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


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

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Asking again costs no time here."""


class Brokers:
    """A cluster whose topics have no ids, and no transactions."""

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self.metadata = self
        self.groups = ConsumerGroups(config)

    def cluster_id(self, _deadline: Deadline) -> str:
        return "cluster-1"

    def topic_ids(self, topics: list[str], _deadline: Deadline) -> dict[str, str | None]:
        return dict.fromkeys(topics)

    def fates(self, asked, _deadline: Deadline) -> dict[str, Fate]:
        raise AssertionError(f"no test asks this cluster for {asked}")


def read_session(options: SourceOptions, topics: Topics, clock: Clock | None = None) -> ReadSession:
    """A read over `topics`."""
    session = ReadSession(options, Brokers(options.client))
    session.offset_reader = topics
    session.clock = clock or Clock()
    return session


class WithoutIds:
    """A query's offsets, asked with the numbers alone, as a checkpoint without ids has them."""

    def __init__(self, offsets: StreamOffsets) -> None:
        self._offsets = offsets
        self.freeze = offsets.freeze

    @property
    def seen(self) -> Offsets | None:
        return None if self._offsets.seen is None else self._offsets.seen.offsets

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
    return StreamOffsets(read_session(stream_options(options), topics, clock))
