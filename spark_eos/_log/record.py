"""Driver and snapshot reader. Map a `TransactionRecord` to a row of the log, and back.

The columns, their order and their types are a stored format. A change that an older release cannot
read needs a new `RECORD_VERSION`, and a sample of the old version in tests/data. A new column comes
last and may be null. The types are Arrow's plain types, so that every Delta client can read them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
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
# Columns that are fields of `TransactionRecord`, with the same name and value.
_SAME_IN_BOTH: Final = frozenset(SCHEMA.names) & {f.name for f in fields(TransactionRecord)} - {
    "topic_ids"
}
# The record version that added each column. Rows of an older version do not have it.
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
"""Spark SQL: the newest row of each transactional id, as after log compaction of a topic."""


def entry_order(record: TransactionRecord) -> tuple[datetime, int, int]:
    """Sort key, oldest first. An end follows its intent, also if one append has both."""
    return record.entry_timestamp, record.batch_id, record.state.number


def to_table(records: Sequence[TransactionRecord]) -> Any:
    """The rows of `records`, as an Arrow table with the schema of the log."""
    return pa.Table.from_pylist([_row(record) for record in records], schema=SCHEMA)


def to_schema(table: Any) -> Any:
    """Rows of any readable version, with exactly the columns of this version."""
    for name in ADDED_COLUMNS:
        if name not in table.schema.names:
            field = SCHEMA.field(name)
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table.select(SCHEMA.names).cast(SCHEMA)


def from_table(table: Any) -> list[TransactionRecord]:
    """The records of rows, newest first: `latest_batch` keeps the first of two rows of one time."""
    records = [_record(row) for row in to_rows(table)]
    return sorted(records, key=entry_order, reverse=True)


def to_rows(table: Any) -> list[dict[str, Any]]:
    """The rows of an Arrow table, with times as datetimes in UTC."""
    # Arrow's own conversion of a time imports pandas, which takes a third of a second.
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
    """Raise if a newer release wrote the rows: this release does not know what they mean."""
    if version > RECORD_VERSION:
        raise LogVersionError(
            "the transaction log at {location} holds records of version {version}. This release"
            " reads up to version {newest}. Upgrade spark-eos wherever this log is used",
            location=location,
            version=version,
            newest=RECORD_VERSION,
        )


def newest_per_id(records: Iterable[TransactionRecord]) -> list[TransactionRecord]:
    """The newest row of each transactional id, in the order of the ids."""
    newest: dict[str, TransactionRecord] = {}
    for record in sorted(records, key=entry_order):
        newest[record.identity.transactional_id] = record
    return [newest[key] for key in sorted(newest)]


def _row(record: TransactionRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in _SAME_IN_BOTH} | {
        **asdict(record.identity),
        "transaction_status": record.state.wire_name,
        "transaction_partitions": [asdict(p) for p in record.partitions],
        "topic_ids": [{"topic": t, "topic_id": i} for t, i in record.topic_ids] or None,
    }


def _record(row: dict[str, Any]) -> TransactionRecord:
    check_record_version(row["version"], f"row of {row['transactional_id']}")
    return TransactionRecord(
        identity=ProducerIdentity(**{f.name: row[f.name] for f in fields(ProducerIdentity)}),
        state=state_named(row["transaction_status"]),
        partitions=tuple(PartitionOffsets(**p) for p in row["transaction_partitions"]),
        topic_ids=tuple((one["topic"], one["topic_id"]) for one in row["topic_ids"] or ()),
        **{name: row[name] for name in _SAME_IN_BOTH},
    )
