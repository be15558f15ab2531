"""Driver. The offsets of a running query: how far there is something, how far this batch goes.

Lives in one process for as long as the query runs. What it keeps (the ids of topics, the time of
the last trigger, where a run over what is available now ends) is not needed after a restart.
"""

import time
from collections.abc import Callable

from spark_eos.kafka.data_loss import DataLoss
from spark_eos.options import SourceOptions
from spark_eos.protocol.admission import available, rate_limited
from spark_eos.protocol.offset_limit import LATEST, Everywhere, Offsets, TopicPartition
from spark_eos.protocol.offset_range import OffsetRange, divide
from spark_eos.protocol.subscription import Assign, Pattern, Subscribe
from spark_eos.source.offsets import (
    existing_partitions,
    offset_reader,
    open_snapshot,
    starting_offsets,
)


class StreamOffsets:
    """The answers to Spark's questions about offsets."""

    def __init__(self, options: SourceOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._clock = clock
        self._reader = offset_reader(options)
        self._loss = DataLoss(options.fail_on_data_loss)
        self._snapshot = open_snapshot(options)
        self._topic_ids: dict[str, str] = {}
        self._last_trigger: float | None = None
        self._frozen = False
        self._target: Offsets | None = None  # the end of a frozen run
        self.seen: Offsets | None = None  # the latest offsets, for reports

    def initial(self) -> Offsets:
        """Where a query without a checkpoint starts."""
        partitions = existing_partitions(self._reader, self._options)
        start = starting_offsets(self._reader, self._options, set(partitions))
        if self._snapshot is not None and self._options.starting == Everywhere(LATEST):
            return self._snapshot.cut(start)
        return start

    def freeze(self) -> None:
        """Nothing is new after the next question: the run ends where the topics end then.

        Not now: Spark asks for the start of a new query later, which must not lie behind the end.
        """
        self._frozen = True

    def latest(self, start: Offsets, *, limited: bool, most: int | None) -> Offsets:
        """The end of the next batch; `start` itself where it has to wait."""
        self.seen = latest = self._latest(start)
        if not limited:
            return latest
        begin = self._with_new(start, latest)
        if self._must_wait(begin, latest):
            return start
        if self._snapshot is not None:
            return self._snapshot.limit(begin, latest, most)
        return latest if most is None else rate_limited(most, begin, latest)

    def ranges(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        """What each task of the batch reads."""
        begin = self._with_new(start, end)
        ranges = [OffsetRange(*p, begin[p], max(begin[p], end[p])) for p in end if p in begin]
        return divide(ranges, self._options.min_partitions, self._options.max_records_per_partition)

    def _latest(self, start: Offsets) -> Offsets:
        partitions = self._reader.partitions(self._options.subscription)
        self._check_topic_ids(partitions)
        if self._target is None:
            latest = self._reader.latest_not_behind(partitions, start)
            if self._snapshot is not None:
                cut = self._snapshot.cut(latest)
                # A start that was given may lie inside of a batch that is not whole yet.
                latest = {p: max(cut[p], min(start.get(p, 0), latest[p])) for p in latest}
            self._target = dict(latest) if self._frozen else None
        else:
            latest = {p: offset for p, offset in self._target.items() if p in partitions}
        self._report_missing(start, start.keys() - latest.keys(), set(partitions))
        for topic, partition in sorted(p for p in latest if latest[p] < start.get(p, 0)):
            self._loss.report(
                f"{topic}-{partition} was read up to offset {start[topic, partition]} and now ends "
                f"at {latest[topic, partition]}"
            )
        return latest

    def _report_missing(
        self, start: Offsets, missing: set[TopicPartition], subscribed: set[TopicPartition]
    ) -> None:
        """Partitions that were read and are not any more: deleted, or left out by an option."""
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
        for topic, partition in sorted(missing):
            read = f"any more, it was read up to offset {start[topic, partition]}"
            if (topic, partition) in there.keys() - subscribed:
                told = f"{topic}-{partition} is not among the {kind} of {option} {read}"
                self._loss.report_left_out(told, option)
            else:
                self._loss.report(f"{topic}-{partition} does not exist {read}")

    def _check_topic_ids(self, partitions: dict[TopicPartition, str]) -> None:
        """A topic that was made anew may have as many records as the old one had."""
        ids = {topic: topic_id for (topic, _), topic_id in partitions.items()}
        for topic, topic_id in ids.items():
            known = self._topic_ids.setdefault(topic, topic_id)
            if known != topic_id:
                self._topic_ids[topic] = topic_id
                self._loss.report(f"topic '{topic}' was deleted and made anew while it was read")

    def _with_new(self, start: Offsets, end: Offsets) -> Offsets:
        """Where each partition begins: a new one at its earliest offset, which is 0."""
        new = sorted(end.keys() - start.keys())
        if not new:
            return start
        earliest = self._reader.earliest(new)
        for topic, partition in new:
            first = earliest.get((topic, partition))
            if first is None:
                self._loss.report(f"the new partition {topic}-{partition} does not exist any more")
            elif first > 0:
                self._loss.report(
                    f"the new partition {topic}-{partition} starts at offset {first}, not at 0"
                )
        return start | earliest

    def _must_wait(self, begin: Offsets, latest: Offsets) -> bool:
        """Whether there is too little for a batch, and the last one not too long ago."""
        least = self._options.min_offsets_per_trigger
        if least is None or self._frozen:
            return False
        now = self._clock()
        waited_ms = None if self._last_trigger is None else (now - self._last_trigger) * 1000
        if (
            waited_ms is not None
            and waited_ms < self._options.max_trigger_delay_ms
            and available(begin, latest) < least
        ):
            return True
        self._last_trigger = now
        return False
