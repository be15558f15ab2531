"""Driver. Isolation level snapshot: the transaction log of a query says where a read may end.

A stream may start before the query that it reads has logged a batch. It reads nothing until then.
"""

import logging
from dataclasses import replace
from typing import Final

from spark_eos._log import TransactionLog
from spark_eos._options.read import SnapshotOptions
from spark_eos._protocol.offsets.snapshot import BatchOutput, limited, outputs, whole_batches
from spark_eos._protocol.offsets.topic_partition import OffsetRange, Offsets, TopicPartition
from spark_eos._protocol.transactions.fate import Fate
from spark_eos._protocol.transactions.transaction import TransactionRecord
from spark_eos._session import ReadSession
from spark_eos.errors import BrokerUnreachableError, OptionError, TopicReplacedError

_LOG = logging.getLogger(__name__)

_LOOK_S: Final = 10.0
_TELL_EVERY_S: Final = 60.0


class Snapshot:
    """The output of one query, from its log. If it `waits`, log and query need not exist yet."""

    def __init__(
        self, session: ReadSession, snapshot: SnapshotOptions, *, waits: bool = False
    ) -> None:
        self._session = session
        self._snapshot = snapshot
        self._waits = waits
        self._cluster_id = session.cluster.metadata.cluster_id(session.deadline())
        self._log: TransactionLog | None = None
        self._query_id: str | None = None
        self._batches: list[BatchOutput] = []
        self._told_at: float | None = None

    def cut(self, latest: Offsets) -> Offsets | None:
        """The latest offsets, which were fetched before this call, cut to whole micro-batches.

        None if the query is not in the log yet. It may write before the next look at the log, so
        nothing may be read.
        """
        self._look()
        return None if self._query_id is None else whole_batches(self._batches, latest)

    def limit(self, start: Offsets, end: Offsets, most: int | None) -> Offsets:
        """The end of as many whole micro-batches as `most` offsets allow, but at least one."""
        return limited(self._batches, start, end, most)

    def batches(self, first: int | None, last: int | None) -> list[BatchOutput]:
        """The complete micro-batches `first` to `last`. Raises if one of them is not there."""
        self._look()
        query = "the query" if self._query_id is None else f"query {self._query_id}"
        fields = {"query": query, "query_id": self._query_id}
        there = {b.batch_id: b for b in self._batches if b.complete}
        oldest, newest = min(there, default=0), max(there, default=-1)
        if first is None and oldest > 0:
            raise OptionError(
                "the transaction log of {query} begins with micro-batch {oldest}. Earlier ones"
                " wrote nothing or have expired. Set {option} to {oldest} or later",
                option="startingBatch",
                oldest=oldest,
                **fields,
            )
        begin = first or 0
        # Without a last batch, the first one must be there.
        end = max(begin, newest) if last is None else last
        absent = begin if not oldest <= begin <= newest else newest + 1
        if absent <= end:
            raise OptionError(
                "micro-batch {batch_id} of {query} is not complete, or is no longer in the"
                " transaction log. Complete there: {known}",
                batch_id=absent,
                known=f"{oldest} to {newest}" if there else "none",
                **fields,
            )
        # A micro-batch that is missing between others wrote nothing.
        chosen = [there[batch_id] for batch_id in sorted(there) if begin <= batch_id <= end]
        for batch in chosen:
            if batch.replaced:
                raise TopicReplacedError(
                    "topic '{topic}' was deleted and created again after micro-batch {batch_id} of"
                    " {query} was written. Its rows are gone. Set {option} to a later micro-batch",
                    topic=batch.replaced[0],
                    batch_id=batch.batch_id,
                    option="startingBatch",
                    **fields,
                )
        return chosen

    def _look(self) -> None:
        """Read what is new in the log. For what is decided but not complete, ask the data."""
        log = self._newest_log()
        if log is None or self._query_id is None:
            self._tell_what_is_missing()
            return
        known = {b.batch_id: b for b in self._batches if b.complete}
        open_batches = (b.batch_id for b in self._batches if not b.complete)
        since = min(open_batches, default=max(known, default=-1))
        rows = self._here(log.rows_from(self._query_id, since))
        found = outputs(rows, self._topic_ids(rows))
        known |= {b.batch_id: b for b in found if b.batch_id not in known}
        self._batches = [self._asked(known[batch_id]) for batch_id in sorted(known)]

    def _topic_ids(self, rows: list[TransactionRecord]) -> dict[str, str]:
        """The current ids of the topics whose ids are in the log."""
        topics = sorted({topic for row in rows for topic, _ in row.topic_ids})
        ask = self._session.cluster.metadata.topic_ids
        found = ask(topics, self._session.deadline()) if topics else {}
        return {topic: topic_id for topic, topic_id in found.items() if topic_id is not None}

    def _newest_log(self) -> TransactionLog | None:
        """Refresh the log and find the query in it. None if there is no log yet."""
        location, seen = self._snapshot.transaction_log, None
        if self._log is not None:
            seen = self._log.version
            self._log.refresh()
        elif not self._waits or self._session.has_log(location):
            self._log = self._session.open_log(location)
        if self._log is not None and self._query_id is None and self._log.version != seen:
            self._query_id = _query_id(self._log, self._snapshot, waits=self._waits)
        return self._log

    def _tell_what_is_missing(self) -> None:
        now = self._session.clock.monotonic()
        if self._told_at is not None and now - self._told_at < _TELL_EVERY_S:
            return
        self._told_at = now
        query_id = self._snapshot.query_id
        _LOG.warning(
            "isolation.level snapshot: no rows are read until %s is in the transaction log at %s%s."
            " If that query is running already, correct the option transactionLog or queryId",
            "a query" if query_id is None else f"query {query_id}",
            self._snapshot.transaction_log,
            "" if self._log is not None else ", which does not exist yet",
        )

    def _here(self, rows: list[TransactionRecord]) -> list[TransactionRecord]:
        """The rows without those that the query wrote to an earlier cluster."""
        here = [r for r in rows if r.cluster_id in (None, self._cluster_id)]
        if rows and not here and not self._batches:
            raise OptionError(
                "the output of query {query_id} is on the Kafka cluster {there}, but {servers} is"
                " cluster {here}. Set {option} to the cluster that the query writes to",
                query_id=self._query_id,
                there=rows[0].cluster_id,
                servers=self._session.cluster.config.bootstrap_servers,
                here=self._cluster_id,
                option="kafka.bootstrap.servers",
            )
        return here

    def _asked(self, batch: BatchOutput) -> BatchOutput:
        """A decided batch whose records are visible is complete, before the log says so."""
        if batch.aborted:
            return batch
        asked = [(r.identity.transactional_id, r.partitions) for r in batch.pending if r.partitions]
        deadline = self._session.deadline().at_most_s(_LOOK_S)  # then the next look asks again
        try:
            said = self._session.cluster.fates(asked, deadline) if asked else {}
        except BrokerUnreachableError:
            return batch
        if all(fate is Fate.COMMITTED for fate in said.values()):
            return replace(batch, pending=())
        return batch


def batch_ranges_of(
    snapshot: Snapshot, first: int | None, last: int | None, partitions: set[TopicPartition]
) -> dict[OffsetRange, int]:
    """What these micro-batches wrote, and the number of records in each range."""
    firsts: Offsets = {}
    ends: Offsets = {}
    records: dict[TopicPartition, int] = {}
    for batch in snapshot.batches(first, last):
        ends |= batch.end_offsets()
        for place, offset in batch.first_offsets().items():
            firsts.setdefault(place, offset)
        for place, count in batch.records().items():
            records[place] = records.get(place, 0) + count
    return {OffsetRange(*p, firsts[p], ends[p]): records[p] for p in firsts if p in partitions}


def _query_id(log: TransactionLog, snapshot: SnapshotOptions, *, waits: bool) -> str | None:
    """The query that is read; None if it may be logged later. Raises if the choice is not clear."""
    there = sorted(log.query_ids())
    wanted = snapshot.query_id
    if wanted in there or not there:
        return wanted if there else None
    if wanted is not None:
        if waits:
            return None
        raise OptionError(
            "{option} '{query_id}' is not in the transaction log at {location}",
            option="queryId",
            query_id=wanted,
            location=snapshot.transaction_log,
        )
    if len(there) != 1:
        raise OptionError(
            "the transaction log at {location} has {count} queries. Set {option} to one of them"
            " ({found})",
            location=snapshot.transaction_log,
            count=len(there),
            option="queryId",
            found=", ".join(there[:5]),
        )
    return there[0]
