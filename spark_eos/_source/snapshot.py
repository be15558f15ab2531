"""Driver. Isolation level snapshot: the transaction log of a query says where a read may end.

A stream may start before the query that it reads has logged its first batch. Until then nothing is
known of that query, so nothing may be read.
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
    """The output of one query, as its log tells it. If it `waits`, log and query may come later."""

    def __init__(
        self,
        session: ReadSession,
        snapshot: SnapshotOptions,
        *,
        waits: bool = False,
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
        """The latest offsets, asked for before this call, without a part of a micro-batch.

        None where the log has no such query yet: nothing of it is below the latest offsets then,
        but it may write there before the next look, so nothing may be read.
        """
        self._look()
        return None if self._query_id is None else whole_batches(self._batches, latest)

    def limit(self, start: Offsets, end: Offsets, most: int | None) -> Offsets:
        """As many whole micro-batches as `most` offsets allow, but at least one."""
        return limited(self._batches, start, end, most)

    def batches(self, first: int | None, last: int | None) -> list[BatchOutput]:
        """The complete micro-batches `first` to `last`; raise where one is not there."""
        self._look()
        query = "the query" if self._query_id is None else f"query {self._query_id}"
        there = {b.batch_id: b for b in self._batches if b.complete}
        oldest, newest = min(there, default=0), max(there, default=-1)
        if first is None and oldest > 0:
            raise OptionError(
                f"the transaction log of {query} begins with micro-batch {oldest}."
                " Those before it wrote nothing, or are no longer in the log: it cannot tell. Set"
                f" startingBatch, to {oldest} or later"
            )
        begin = first or 0
        # Without an end there is one batch at least: the one that was asked for.
        end = max(begin, newest) if last is None else last
        absent = begin if not oldest <= begin <= newest else newest + 1
        if absent <= end:
            known = f"{oldest} to {newest}" if there else "none"
            raise OptionError(
                f"micro-batch {absent} of {query} is not complete, or is no longer in the "
                f"transaction log. Complete there: {known}"
            )
        # One that is not there between others wrote nothing: it cost no transaction and no row.
        chosen = [there[batch_id] for batch_id in sorted(there) if begin <= batch_id <= end]
        for batch in chosen:
            if batch.replaced:
                raise TopicReplacedError(
                    f"topic '{batch.replaced[0]}' was deleted and created again since micro-batch"
                    f" {batch.batch_id} of {query} was written: its rows are gone, and cannot be"
                    " read. Set startingBatch to one that was written later"
                )
        return chosen

    def _look(self) -> None:
        """Read what is new in the log, and ask the data about what is decided and not ended."""
        log = self._newest_log()
        if log is None or self._query_id is None:
            self._tell_what_is_missing()
            return
        known = {b.batch_id: b for b in self._batches if b.complete}
        since = min((b.batch_id for b in self._batches if not b.complete), default=None)
        if since is None:
            since = max(known, default=-1)
        rows = self._here(log.rows_from(self._query_id, since))
        found = outputs(rows, self._topic_ids(rows))
        known |= {b.batch_id: b for b in found if b.batch_id not in known}
        self._batches = [self._asked(known[batch_id]) for batch_id in sorted(known)]

    def _topic_ids(self, rows: list[TransactionRecord]) -> dict[str, str]:
        """The ids that the topics have now, as far as the log knows topics by their ids."""
        topics = sorted({topic for row in rows for topic, _ in row.topic_ids})
        ask = self._session.cluster.metadata.topic_ids
        found = ask(topics, self._session.deadline()) if topics else {}
        return {topic: topic_id for topic, topic_id in found.items() if topic_id is not None}

    def _newest_log(self) -> TransactionLog | None:
        """The log as it is now, and the query in it; None where there is no log yet."""
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
            " If the query that writes runs already, correct the option transactionLog or queryId",
            "a query" if query_id is None else f"query {query_id}",
            self._snapshot.transaction_log,
            "" if self._log is not None else ", which does not exist yet",
        )

    def _here(self, rows: list[TransactionRecord]) -> list[TransactionRecord]:
        """Without what the query wrote before it moved to this cluster."""
        here = [r for r in rows if r.cluster_id in (None, self._cluster_id)]
        servers = self._session.cluster.config.bootstrap_servers
        if rows and not here and not self._batches:
            raise OptionError(
                f"the output of query {self._query_id} is on the Kafka cluster"
                f" {rows[0].cluster_id}, and {servers} is cluster {self._cluster_id}: set"
                " kafka.bootstrap.servers to the cluster that the query writes to"
            )
        return here

    def _asked(self, batch: BatchOutput) -> BatchOutput:
        """A decided batch is complete when its records are visible, before the log says so."""
        written = [r for r in batch.pending if r.partitions]
        if batch.complete or batch.aborted or not written:
            return replace(batch, pending=()) if not batch.aborted and not written else batch
        asked = [(r.identity.transactional_id, r.partitions) for r in written]
        # What is not known to be committed within this time is read the next time.
        deadline = self._session.deadline().at_most_s(_LOOK_S)
        try:
            said = self._session.cluster.fates(asked, deadline)
        except BrokerUnreachableError:
            return batch
        if all(fate is Fate.COMMITTED for fate in said.values()):
            return replace(batch, pending=())
        return batch


def batch_ranges_of(
    snapshot: Snapshot, first: int | None, last: int | None, partitions: set[TopicPartition]
) -> dict[OffsetRange, int]:
    """What these micro-batches wrote, and how many records must be found there."""
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
    """The query that is read; None where it may come later. Raise where nobody can tell."""
    there = sorted(log.query_ids())
    wanted = snapshot.query_id
    if wanted in there or not there:
        return wanted if there else None
    if wanted is not None:
        if waits:
            return None
        raise OptionError(
            f"queryId '{wanted}' is not in the transaction log at {snapshot.transaction_log}"
        )
    if len(there) != 1:
        raise OptionError(
            f"the transaction log at {snapshot.transaction_log} has {len(there)} queries: set "
            f"queryId to one of them ({', '.join(there[:5])})"
        )
    return there[0]
