"""Driver. The offsets of a running query: what is new, and how far the next batch goes.

The ids of topics are part of each start and end, so they are in the checkpoint. They reveal a topic
that was deleted and created again. With failOnDataLoss false the query goes on:

1. A topic whose id in `start` is not its current id is new: the batch reads it from its earliest
   offset, and `end` has the new id. So a batch that runs again begins at the same place.
2. A topic whose id in `end` is not its current id was replaced after the batch was planned. Its
   records are gone: the batch reads nothing of it, and rule 1 applies to the next batch.
3. A start without an id (from Spark's own source or an older release) is compared with the first id
   that this process saw. Such a start cannot express rule 1, so the batch leaves the topic out. The
   topic is new in the next batch.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from spark_eos._kafka.consume.data_loss import DataLoss
from spark_eos._protocol.offsets.admission import available, rate_limited
from spark_eos._protocol.offsets.divide import divide
from spark_eos._protocol.offsets.offset_limit import LATEST, Everywhere
from spark_eos._protocol.offsets.stream_position import StreamPosition, TopicIds, replaced
from spark_eos._protocol.offsets.subscription import Assign, Pattern, Subscribe
from spark_eos._protocol.offsets.topic_partition import OffsetRange, Offsets, TopicPartition
from spark_eos._session import ReadSession
from spark_eos._source.offsets import open_snapshot, resolve_partitions, starting_offsets

_NAMED: Final = 10  # partitions in a text


class StreamOffsets:
    """The answers to Spark's questions about offsets."""

    def __init__(self, session: ReadSession) -> None:
        self._session = session
        self._options = session.options
        self._reader = session.offset_reader
        self._loss = DataLoss(session.options.fail_on_data_loss)
        self._snapshot = open_snapshot(session, waits=True)
        self._topic_ids: TopicIds = {}  # as Kafka last reported them
        self._first_ids: TopicIds = {}  # of topics whose start has no id
        self._reported: set[tuple[str, str]] = set()
        self._last_trigger: float | None = None
        self._frozen = False
        self._target: StreamPosition | None = None  # the end of a frozen run
        self.seen: StreamPosition | None = None  # the latest offsets, for reports

    def initial(self) -> StreamPosition:
        """Where a query without a checkpoint starts."""
        partitions = resolve_partitions(self._session)
        start = starting_offsets(self._session, set(partitions))
        if self._snapshot is not None and self._options.starting == Everywhere(LATEST):
            # If the query is not in the log, none of its output is below the latest offsets.
            start = self._snapshot.cut(start) or start
        return StreamPosition.of(start, self._note(partitions))

    def freeze(self) -> None:
        """End the run where the topics end at the next call of `latest`.

        Not now: Spark asks for a new query's start later, which must not be after the end.
        """
        self._frozen = True

    def latest(self, start: StreamPosition, *, limited: bool, most: int | None) -> StreamPosition:
        """The end of the next batch; `start` itself if there is no batch or it has to wait."""
        partitions = self._reader.partitions(self._options.subscription)
        ids = self._note(partitions)
        again = self._replaced(start, ids)
        left_out = again - start.topic_ids.keys()  # rule 3
        partitions = {p: found for p, found in partitions.items() if p[0] not in left_out}
        begin = self._restart(start.offsets, again, partitions)
        latest = self._latest(begin, partitions, ids)
        self.seen = StreamPosition.of(latest, ids)
        end = self._limited(begin, latest, most) if limited else latest
        if end is None or (end == start.offsets and not again):
            return start
        return StreamPosition.of(end, ids)

    def ranges(self, start: StreamPosition, end: StreamPosition) -> list[OffsetRange]:
        """The range of each task of the batch."""
        gone = self._gone(start, end)
        again = replaced(start.topic_ids, end.topic_ids) - gone
        begin = self._restart(start.offsets, again, end.offsets)
        begin |= {p: offset for p, offset in end.offsets.items() if p[0] in gone}
        begin = self._with_new(begin, end.offsets)
        ranges = [
            OffsetRange(*p, begin[p], max(begin[p], offset))
            for p, offset in end.offsets.items()
            if p in begin
        ]
        return divide(ranges, self._options.min_partitions, self._options.max_records_per_partition)

    def _latest(
        self, begin: Offsets, partitions: Iterable[TopicPartition], ids: TopicIds
    ) -> Offsets:
        there = set(partitions)
        # The kept end of a replaced topic does not apply to the new topic.
        if self._target is None or replaced(self._target.topic_ids, ids):
            latest = self._reader.latest_not_behind(there, begin)
            if self._snapshot is not None:
                latest = self._whole(self._snapshot.cut(latest), begin, latest)
            self._target = StreamPosition.of(dict(latest), ids) if self._frozen else None
        else:
            latest = {p: offset for p, offset in self._target.offsets.items() if p in there}
        self._report_missing(begin, begin.keys() - latest.keys(), there)
        for p in sorted(p for p in latest if latest[p] < begin.get(p, 0)):
            text = f"{p} was read up to offset {begin[p]} and now ends at {latest[p]}"
            self._loss.report(text, topic=p.topic)
        return latest

    def _limited(self, begin: Offsets, latest: Offsets, most: int | None) -> Offsets | None:
        """The end that the limits allow; None if the batch has to wait."""
        begin = self._with_new(begin, latest)
        if self._must_wait(begin, latest):
            return None
        if self._snapshot is not None:
            return self._snapshot.limit(begin, latest, most)
        return latest if most is None else rate_limited(most, begin, latest)

    def _whole(self, cut: Offsets | None, start: Offsets, latest: Offsets) -> Offsets:
        """Where whole batches end. Nothing is new while the query is not in its log."""
        if cut is None:
            return {p: min(start[p], latest[p]) for p in latest if p in start}
        # A given start may be inside a batch that is not whole yet.
        return {p: max(cut[p], min(start.get(p, 0), latest[p])) for p in latest}

    def _report_missing(
        self, start: Offsets, missing: set[TopicPartition], subscribed: set[TopicPartition]
    ) -> None:
        """Report partitions that were read before: deleted, or left out by an option."""
        if not missing:
            return
        there = self._reader.partitions(Subscribe(tuple(sorted({topic for topic, _ in missing}))))
        match self._options.subscription:
            case Assign():
                option, kind = "assign", "partitions"
            case Subscribe():
                option, kind = "subscribe", "topics"
            case Pattern():
                option, kind = "subscribePattern", "topics"
        for partition in sorted(missing):
            read = f"any more. It was read up to offset {start[partition]}"
            if partition in there.keys() - subscribed:
                told = f"{partition} is not among the {kind} of {option} {read}"
                self._loss.report_left_out(told, option, topic=partition.topic)
            else:
                self._loss.report(f"{partition} does not exist {read}", topic=partition.topic)

    def _note(self, partitions: Mapping[TopicPartition, str | None]) -> TopicIds:
        """The topic ids of these partitions, kept for `ranges`."""
        ids = {topic: found for (topic, _), found in partitions.items() if found is not None}
        self._topic_ids |= ids
        return ids

    def _replaced(self, start: StreamPosition, ids: TopicIds) -> set[str]:
        """Report and return the topics of `start` that were deleted and created again."""
        for topic in {topic for topic, _ in start.offsets} & ids.keys() - start.topic_ids.keys():
            self._first_ids.setdefault(topic, ids[topic])
        known = StreamPosition.of(start.offsets, self._first_ids | start.topic_ids)
        found = replaced(known.topic_ids, ids)
        for topic in sorted(found):
            self._report_replaced(topic, f"It was read up to {_places(start, topic)}")
        return found

    def _gone(self, start: StreamPosition, end: StreamPosition) -> set[str]:
        """Report and return the topics that were replaced after this batch was planned.

        Kafka is asked only in the first batch of a run, if an earlier run planned that batch.
        """
        unknown = end.topic_ids.keys() - self._topic_ids.keys()
        if unknown:
            self._note(self._reader.partitions(Subscribe(tuple(sorted(unknown)))))
        found = replaced(end.topic_ids, self._topic_ids)
        for topic in sorted(found):
            read = f"{_places(start, topic)} to {_places(end, topic)}"
            self._report_replaced(topic, f"The micro-batch that runs again was to read from {read}")
        return found

    def _report_replaced(self, topic: str, read: str) -> None:
        """Report once for each id: a batch that waits for more records comes here again."""
        told = topic, self._topic_ids[topic]
        if told not in self._reported:
            text = f"topic '{topic}' was deleted and created again. {read}"
            self._loss.report_replaced(text, topic=topic)
            self._reported.add(told)

    def _restart(
        self, start: Offsets, topics: set[str], partitions: Iterable[TopicPartition]
    ) -> Offsets:
        """`start`, but these topics begin at the earliest offsets of their `partitions`."""
        if not topics:
            return dict(start)
        kept = {p: offset for p, offset in start.items() if p[0] not in topics}
        return kept | self._reader.earliest(p for p in partitions if p[0] in topics)

    def _with_new(self, start: Offsets, end: Offsets) -> Offsets:
        """`start`, with the earliest offset of each new partition. An offset above 0 is a loss."""
        new = sorted(end.keys() - start.keys())
        if not new:
            return start
        earliest = self._reader.earliest(new)
        for partition in new:
            first = earliest.get(partition)
            what = f"the new partition {partition}"
            if first is None:
                self._loss.report(f"{what} does not exist any more", topic=partition.topic)
            elif first > 0:
                self._loss.report(
                    f"{what} starts at offset {first}, not at 0", topic=partition.topic
                )
        return start | earliest

    def _must_wait(self, begin: Offsets, latest: Offsets) -> bool:
        """Whether there are too few offsets for a batch, and maxTriggerDelay has not passed."""
        least = self._options.min_offsets_per_trigger
        if least is None or self._frozen:
            return False
        now = self._session.clock.monotonic()
        last, delay_ms = self._last_trigger, self._options.max_trigger_delay_ms
        is_recent = last is not None and (now - last) * 1000 < delay_ms
        if is_recent and available(begin, latest) < least:
            return True
        self._last_trigger = now
        return False


def _places(found: StreamPosition, topic: str) -> str:
    places = sorted(found.offsets_of(topic).items())
    named = ", ".join(f"{t}-{partition}: {offset}" for (t, partition), offset in places[:_NAMED])
    more = f" and {len(places) - _NAMED} more partitions" if len(places) > _NAMED else ""
    return f"offset {named}{more}" if places else "its beginning"
