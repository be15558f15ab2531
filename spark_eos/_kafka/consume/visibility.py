"""Driver. Asks the data whether a transaction was committed, if its coordinator cannot tell.

An offset at or after the last stable offset is held: this or an older transaction is open. At a
lower offset of the transaction a read_committed consumer gets the record (committed) or a later one
(not visible). Not visible means aborted only if a read_uncommitted consumer finds the record. Else
the record was deleted or compacted away, and nothing follows. One position that can tell is enough:
a transaction is atomic. The last offset comes first: it is removed later than the first one, and a
reader skips fewer aborted records.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing

from spark_eos._deadline import Backoff, Deadline
from spark_eos._kafka.admin.metadata import ClusterMetadata
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.consume.offset_probe import ATTEMPT_S, OffsetProbe, ProbeResult
from spark_eos._protocol.offsets.isolation import IsolationLevel
from spark_eos._protocol.offsets.topic_partition import (
    PartitionOffsets,
    RecordPosition,
    TopicPartition,
)
from spark_eos._protocol.transactions.fate import Fate
from spark_eos.errors import BrokerUnreachableError


def fates(
    config: ClientConfig,
    transactions: Sequence[tuple[str, Sequence[PartitionOffsets]]],
    deadline: Deadline,
) -> dict[str, Fate]:
    """The fate of each transaction, by its id. OPEN is probed again until the deadline."""
    todo = {key: deque(_places(partitions)) for key, partitions in transactions}
    topics = {place.topic for places in todo.values() for place in places}
    counts = ClusterMetadata(config).partition_counts_if_any
    existing = counts(sorted(topics), deadline) if topics else {}
    for key, places in todo.items():
        todo[key] = deque(p for p in places if p.partition < (existing[p.topic] or 0))
    found = {key: Fate.GONE for key, places in todo.items() if not places}
    held: set[str] = set()
    backoff = Backoff(deadline)
    with closing(VisibilityProbe(config)) as probe:
        while (left := {k: p for k, p in todo.items() if k not in found}) and not deadline.passed:
            turn = _turn(left)
            seen = probe.look(set(turn.values()), deadline)
            for key, place in turn.items():
                fate = seen.get(place)
                if fate is None:  # no answer yet
                    continue
                if fate is Fate.OPEN:
                    held.add(key)
                    left[key].append(place)  # other places come first
                left[key].remove(place)
                if fate in (Fate.COMMITTED, Fate.ABORTED) or not left[key]:
                    found[key] = fate
            if not turn.keys() & found.keys():
                backoff.wait()
    unanswered = todo.keys() - found.keys() - held
    if unanswered:
        raise BrokerUnreachableError(
            "{servers} did not say within the deadline whether the transactions of"
            " '{transactional_id}' and {others} others are committed",
            servers=config.bootstrap_servers,
            transactional_id=min(unanswered),
            others=len(unanswered) - 1,
        )
    return {key: found.get(key, Fate.OPEN) for key in todo}


class VisibilityProbe:
    """A consumer of each isolation level."""

    def __init__(self, config: ClientConfig) -> None:
        self._metadata = ClusterMetadata(config)
        self._committed = OffsetProbe(config, IsolationLevel.READ_COMMITTED)
        self._everything = OffsetProbe(config, IsolationLevel.READ_UNCOMMITTED)

    def look(
        self, places: Collection[RecordPosition], deadline: Deadline
    ) -> dict[RecordPosition, Fate]:
        """The fate that each place shows. GONE: the place cannot tell. Absent: no answer yet."""
        asked = {p.topic_partition for p in places}
        try:
            stable = self._metadata.last_stable_offsets(asked, deadline.at_most_s(ATTEMPT_S))
        except BrokerUnreachableError:  # the next look has a new client
            return {}
        answered = [p for p in places if p.topic_partition in stable]
        ended = [p for p in answered if p.offset < stable[p.topic_partition]]
        committed = self._committed.look(ended, deadline)
        doubtful = [p for p in answered if committed.get(p) is not ProbeResult.HERE]
        everything = self._everything.look(doubtful, deadline)
        said = {
            p: judge(held=p not in ended, committed=committed.get(p), everything=everything.get(p))
            for p in answered
        }
        return {place: fate for place, fate in said.items() if fate is not None}

    def close(self) -> None:
        """Close the consumers."""
        self._committed.close()
        self._everything.close()


def judge(
    *, held: bool, committed: ProbeResult | None, everything: ProbeResult | None
) -> Fate | None:
    """The fate that the probes of one place show. GONE: it cannot tell. None: no answer yet."""
    if committed is ProbeResult.HERE:
        return Fate.COMMITTED
    if everything is None or (committed is None and not held):
        return None
    if everything is not ProbeResult.HERE:
        return Fate.GONE
    if held:
        return Fate.OPEN
    return Fate.ABORTED if committed is ProbeResult.BEHIND else Fate.GONE


def _places(partitions: Sequence[PartitionOffsets]) -> list[RecordPosition]:
    last = [RecordPosition(p.topic, p.partition, p.last_offset) for p in partitions]
    first = [RecordPosition(p.topic, p.partition, p.first_offset) for p in partitions]
    return list(dict.fromkeys([*last, *first]))


def _turn(left: Mapping[str, Iterable[RecordPosition]]) -> dict[str, RecordPosition]:
    """One place for each transaction. A consumer has one position in a partition."""
    turn: dict[str, RecordPosition] = {}
    taken: dict[TopicPartition, RecordPosition] = {}
    for key, places in left.items():
        for place in places:
            if taken.setdefault(place.topic_partition, place) == place:
                turn[key] = place
                break
    return turn
