"""Driver and command line: a `TransactionRecord` as a row of the table, and back.

The columns, their order and their types are the stored format. A change that an older release could
not read needs a new `RECORD_VERSION`, and a sample of the version before in tests/data. New columns
come last, and may be null: a table gets them with the first append of a release that has them.
Rows are Arrow's plain types on purpose, so that every Delta client can read them.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from spark_eos._protocol.offsets.topic_partition import PartitionOffsets
from spark_eos._protocol.transactions.state import state_named
from spark_eos._protocol.transactions.transaction import (
    RECORD_VERSION,
    ProducerIdentity,
    TransactionRecord,
)
from spark_eos.errors import LogVersionError

EPOCH: Final = datetime.fromtimestamp(0, UTC)
MICROSECOND: Final = timedelta(microseconds=1)

_TIMESTAMP = pa.timestamp("us", tz="UTC")
_PARTITION = pa.struct(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("first_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("records", pa.int64()),
    ]
)

SCHEMA: Final = pa.schema(
    [
        ("version", pa.int16()),
        ("transactional_id", pa.string()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int16()),
        ("transaction_timeout_ms", pa.int32()),
        ("transaction_status", pa.string()),
        ("transaction_partitions", pa.list_(_PARTITION)),
        ("entry_timestamp", _TIMESTAMP),
        ("start_timestamp", _TIMESTAMP),
        ("query_id", pa.string()),
        ("run_id", pa.string()),
        ("batch_id", pa.int64()),
        ("sink_partition", pa.int32()),
        ("sink_partitions", pa.int32()),
        ("digest", pa.string()),
        ("input_digest", pa.string()),
        ("group_id", pa.string()),
        ("source_offsets", pa.string()),
        ("cluster_id", pa.string()),
        # Not a map: Spark can neither compare nor group maps, and people query this table.
        ("topic_ids", pa.list_(pa.struct([("topic", pa.string()), ("topic_id", pa.string())]))),
        ("acknowledged", pa.string()),
    ]
)
# With the version that brought each. A table of an older one has rows without it.
ADDED_COLUMNS: Final = {"cluster_id": 2, "topic_ids": 3, "acknowledged": 3}

COMPACTED_VIEW_SQL: Final = """\
SELECT * EXCEPT (newest) FROM (
  SELECT *, row_number() OVER (
    PARTITION BY transactional_id
    ORDER BY entry_timestamp DESC, batch_id DESC, transaction_status LIKE 'Complete%' DESC
  ) AS newest
  FROM delta.`{location}`
)
WHERE newest = 1"""
"""Spark SQL: the newest row of each transactional id, as log compaction leaves it in a topic."""


def entry_order(record: TransactionRecord) -> tuple[datetime, int, int]:
    """Sort key, oldest first. Where rows of one append share a time, an end follows its intent."""
    return record.entry_timestamp, record.batch_id, record.state.number


def to_table(records: Sequence[TransactionRecord]) -> Any:
    """The rows for `records`, as an Arrow table with the schema of the log."""
    return pa.Table.from_pylist([_row(record) for record in records], schema=SCHEMA)


def to_schema(table: Any) -> Any:
    """Rows of any version that can be read, with the columns of this one and no other."""
    for name in ADDED_COLUMNS:
        if name not in table.schema.names:
            field = SCHEMA.field(name)
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table.select(SCHEMA.names).cast(SCHEMA)


def from_table(table: Any) -> list[TransactionRecord]:
    """The records for rows that were read from the log, newest first.

    Newest first, because the reduction to the newest row per id keeps the first of two rows with
    one timestamp.
    """
    records = [_record(row) for row in to_rows(table)]
    return sorted(records, key=entry_order, reverse=True)


def to_rows(table: Any) -> list[dict[str, Any]]:
    """An Arrow table's rows, with its times as datetimes in UTC.

    Arrow's own conversion of a time imports pandas, which takes a third of a second: more than all
    else that a command or a restarted driver does with the log.
    """
    times = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
    for name in times:
        index = table.schema.get_field_index(name)
        table = table.set_column(index, name, table[name].cast(_TIMESTAMP).cast(pa.int64()))
    rows: list[dict[str, Any]] = table.to_pylist()
    for row in rows:
        for name in times:
            row[name] = None if row[name] is None else EPOCH + row[name] * MICROSECOND
    return rows


def check_record_version(version: int, location: str) -> None:
    """Refuse rows that a newer release wrote: what they mean is not known here."""
    if version > RECORD_VERSION:
        raise LogVersionError(
            f"the transaction log at {location} holds records of version {version}; this release"
            f" reads up to version {RECORD_VERSION}. Upgrade spark-eos wherever this log is used"
        )


def newest_per_id(records: Iterable[TransactionRecord]) -> list[TransactionRecord]:
    """The newest row of each transactional id, in order of the ids."""
    newest: dict[str, TransactionRecord] = {}
    for record in sorted(records, key=entry_order):
        newest[record.identity.transactional_id] = record
    return [newest[key] for key in sorted(newest)]


def _row(record: TransactionRecord) -> dict[str, Any]:
    return {
        "version": record.version,
        "transactional_id": record.identity.transactional_id,
        "producer_id": record.identity.producer_id,
        "producer_epoch": record.identity.producer_epoch,
        "transaction_timeout_ms": record.transaction_timeout_ms,
        "transaction_status": record.state.wire_name,
        "transaction_partitions": [
            {
                "topic": p.topic,
                "partition": p.partition,
                "first_offset": p.first_offset,
                "last_offset": p.last_offset,
                "records": p.records,
            }
            for p in record.partitions
        ],
        "entry_timestamp": record.entry_timestamp,
        "start_timestamp": record.start_timestamp,
        "query_id": record.query_id,
        "run_id": record.run_id,
        "batch_id": record.batch_id,
        "sink_partition": record.sink_partition,
        "sink_partitions": record.sink_partitions,
        "digest": record.digest,
        "input_digest": record.input_digest,
        "group_id": record.group_id,
        "source_offsets": record.source_offsets,
        "cluster_id": record.cluster_id,
        "topic_ids": [{"topic": t, "topic_id": i} for t, i in record.topic_ids] or None,
        "acknowledged": record.acknowledged,
    }


def _record(row: dict[str, Any]) -> TransactionRecord:
    check_record_version(row["version"], f"row of {row['transactional_id']}")
    return TransactionRecord(
        identity=ProducerIdentity(
            transactional_id=row["transactional_id"],
            producer_id=row["producer_id"],
            producer_epoch=row["producer_epoch"],
        ),
        transaction_timeout_ms=row["transaction_timeout_ms"],
        state=state_named(row["transaction_status"]),
        partitions=tuple(PartitionOffsets(**p) for p in row["transaction_partitions"]),
        entry_timestamp=row["entry_timestamp"],
        start_timestamp=row["start_timestamp"],
        query_id=row["query_id"],
        run_id=row["run_id"],
        batch_id=row["batch_id"],
        sink_partition=row["sink_partition"],
        sink_partitions=row["sink_partitions"],
        digest=row["digest"],
        input_digest=row["input_digest"],
        group_id=row["group_id"],
        source_offsets=row["source_offsets"],
        cluster_id=row["cluster_id"],
        topic_ids=tuple((one["topic"], one["topic_id"]) for one in row["topic_ids"] or ()),
        acknowledged=row["acknowledged"],
        version=row["version"],
    )
