"""Driver. Isolation level snapshot: the transaction log of a query says where a read may end."""

from dataclasses import replace
from typing import Final

from spark_eos.errors import BrokerUnreachableError, OptionError
from spark_eos.kafka.cluster import cluster_id
from spark_eos.kafka.visibility import fates
from spark_eos.log import TransactionLog
from spark_eos.options import SourceOptions
from spark_eos.options.snapshot import SnapshotOptions
from spark_eos.protocol.deadline import Deadline
from spark_eos.protocol.fate import Fate
from spark_eos.protocol.offset_limit import Offsets, TopicPartition
from spark_eos.protocol.offset_range import OffsetRange
from spark_eos.protocol.snapshot import BatchOutput, limited, outputs, whole_batches
from spark_eos.protocol.transaction import TransactionRecord

_LOOK_MS: Final = 10_000


class Snapshot:
    """The output of one query, as its log tells it."""

    def __init__(self, options: SourceOptions, snapshot: SnapshotOptions) -> None:
        self._options = options
        self._log = TransactionLog.existing(snapshot.transaction_log)
        self._query_id = _query_id(self._log, snapshot)
        self._cluster_id = cluster_id(options.client, Deadline.after_ms(options.api_timeout_ms))
        self._batches: list[BatchOutput] = []

    def cut(self, latest: Offsets) -> Offsets:
        """The latest offsets, asked for before this call, without a part of a micro-batch."""
        self._look()
        return whole_batches(self._batches, latest)

    def limit(self, start: Offsets, end: Offsets, most: int | None) -> Offsets:
        """As many whole micro-batches as `most` offsets allow, but at least one."""
        return limited(self._batches, start, end, most)

    def batches(self, first: int | None, last: int | None) -> list[BatchOutput]:
        """The complete micro-batches `first` to `last`; raise where one is not there."""
        self._look()
        there = {b.batch_id: b for b in self._batches if b.complete}
        oldest, newest = min(there, default=0), max(there, default=-1)
        if first is None and oldest > 0:
            raise OptionError(
                f"the transaction log of query {self._query_id} begins with micro-batch {oldest}."
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
                f"micro-batch {absent} of query {self._query_id} is not complete, or is no "
                f"longer in the transaction log. Complete there: {known}"
            )
        # One that is not there between others wrote nothing: it cost no transaction and no row.
        return [there[batch_id] for batch_id in sorted(there) if begin <= batch_id <= end]

    def _look(self) -> None:
        """Read what is new in the log, and ask the data about what is decided and not ended."""
        self._log.refresh()
        known = {b.batch_id: b for b in self._batches if b.complete}
        since = min((b.batch_id for b in self._batches if not b.complete), default=None)
        if since is None:
            since = max(known, default=-1)
        found = outputs(self._here(self._log.rows_from(self._query_id, since)))
        known |= {b.batch_id: b for b in found if b.batch_id not in known}
        self._batches = [self._asked(known[batch_id]) for batch_id in sorted(known)]

    def _here(self, rows: list[TransactionRecord]) -> list[TransactionRecord]:
        """Without what the query wrote before it moved to this cluster."""
        here = [r for r in rows if r.cluster_id in (None, self._cluster_id)]
        if rows and not here and not self._batches:
            raise OptionError(
                f"the output of query {self._query_id} is on the Kafka cluster"
                f" {rows[0].cluster_id}, and {self._options.client.bootstrap_servers} is cluster"
                f" {self._cluster_id}: set kafka.bootstrap.servers to the cluster that the query"
                " writes to"
            )
        return here

    def _asked(self, batch: BatchOutput) -> BatchOutput:
        """A decided batch is complete when its records are visible, before the log says so."""
        written = [r for r in batch.pending if r.partitions]
        if batch.complete or batch.aborted or not written:
            return replace(batch, pending=()) if not batch.aborted and not written else batch
        asked = [(r.identity.transactional_id, r.partitions) for r in written]
        # What is not known to be committed within this time is read the next time.
        deadline = Deadline.after_ms(min(self._options.api_timeout_ms, _LOOK_MS))
        try:
            said = fates(self._options.client, asked, deadline)
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


def _query_id(log: TransactionLog, snapshot: SnapshotOptions) -> str:
    there = sorted(log.query_ids())
    if snapshot.query_id is not None:
        if snapshot.query_id not in there:
            raise OptionError(
                f"queryId '{snapshot.query_id}' is not in the transaction log at "
                f"{snapshot.transaction_log}"
            )
        return snapshot.query_id
    if len(there) != 1:
        raise OptionError(
            f"the transaction log at {snapshot.transaction_log} has {len(there)} queries: set "
            f"queryId to one of them ({', '.join(there[:5])})"
        )
    return there[0]
