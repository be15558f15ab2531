"""A record survives the way into a row and back, whatever is in it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_eos._log.record import SCHEMA, from_table, newest_per_id, to_table
from spark_eos._protocol.offsets.topic_partition import PartitionOffsets
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import ProducerIdentity, TransactionRecord
from spark_eos.errors import CorruptLogError, LogVersionError
from tests.unit.log.builders import COMPLETE_COMMIT, PREPARE_COMMIT, at, row

_TEXT = st.text(max_size=30)
_LONG = st.integers(-(2**63), 2**63 - 1)
_INT = st.integers(-(2**31), 2**31 - 1)
_SHORT = st.integers(-(2**15), 2**15 - 1)
_TIME = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
_PARTITIONS = st.lists(
    st.builds(
        PartitionOffsets,
        topic=_TEXT,
        partition=_INT,
        first_offset=_LONG,
        last_offset=_LONG,
        records=_LONG,
    ),
    max_size=4,
).map(tuple)
_RECORDS = st.builds(
    TransactionRecord,
    identity=st.builds(
        ProducerIdentity, transactional_id=_TEXT, producer_id=_LONG, producer_epoch=_SHORT
    ),
    transaction_timeout_ms=_INT,
    state=st.sampled_from(TransactionState),
    partitions=_PARTITIONS,
    entry_timestamp=_TIME,
    start_timestamp=st.none() | _TIME,
    query_id=_TEXT,
    run_id=_TEXT,
    batch_id=_LONG,
    sink_partition=st.none() | _INT,
    sink_partitions=_INT,
    digest=_TEXT,
    input_digest=_TEXT,
    group_id=st.none() | _TEXT,
    source_offsets=st.none() | _TEXT,
    cluster_id=st.none() | _TEXT,
    topic_ids=st.dictionaries(_TEXT, _TEXT, max_size=3).map(lambda ids: tuple(ids.items())),
    acknowledged=st.none() | _TEXT,
)
PARTITION_FIELDS = (
    "topic: string, partition: int32, first_offset: int64, last_offset: int64, records: int64"
)


@settings(deadline=None)
@given(_RECORDS)
def test_record_comes_back_as_it_was(record: TransactionRecord) -> None:
    assert from_table(to_table([record])) == [record]


def test_columns_and_their_order_are_the_stored_format() -> None:
    assert [(field.name, str(field.type)) for field in SCHEMA] == [
        ("version", "int16"),
        ("transactional_id", "string"),
        ("producer_id", "int64"),
        ("producer_epoch", "int16"),
        ("transaction_timeout_ms", "int32"),
        ("transaction_status", "string"),
        (
            "transaction_partitions",
            f"list<item: struct<{PARTITION_FIELDS}>>",
        ),
        ("entry_timestamp", "timestamp[us, tz=UTC]"),
        ("start_timestamp", "timestamp[us, tz=UTC]"),
        ("query_id", "string"),
        ("run_id", "string"),
        ("batch_id", "int64"),
        ("sink_partition", "int32"),
        ("sink_partitions", "int32"),
        ("digest", "string"),
        ("input_digest", "string"),
        ("group_id", "string"),
        ("source_offsets", "string"),
        ("cluster_id", "string"),
        ("topic_ids", "list<item: struct<topic: string, topic_id: string>>"),
        ("acknowledged", "string"),
    ]


def test_rows_come_back_newest_first_and_an_end_before_its_intent() -> None:
    old = row(6, at(1))
    intent, end = row(7, at(2)), row(7, at(2), state=COMPLETE_COMMIT)
    assert from_table(to_table([intent, old, end])) == [end, intent, old]


def test_row_of_a_newer_version_is_refused() -> None:
    with pytest.raises(LogVersionError, match=r"version 4.*Upgrade spark-eos"):
        from_table(to_table([replace(row(1, at(1)), version=4)]))


def test_status_that_is_none_of_kafkas_is_refused() -> None:
    table = to_table([row(1, at(1))])
    index = table.schema.get_field_index("transaction_status")
    table = table.set_column(index, "transaction_status", [["Finished"]])
    with pytest.raises(CorruptLogError, match="Finished"):
        from_table(table)


def test_newest_row_of_an_id_is_that_of_the_later_batch_when_times_are_equal() -> None:
    rows = [row(8, at(2)), row(7, at(2), state=COMPLETE_COMMIT), row(7, at(1))]
    assert [(r.batch_id, r.state) for r in newest_per_id(rows)] == [(8, PREPARE_COMMIT)]
