"""Every process. deliveryGuarantee at_least_once: no transaction, no log, nothing to recover.

Rows are visible as they are written. A task that is tried again, or a batch that runs again after
a crash, writes its rows again.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from spark_eos._options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa


def write_rows(options: WriteOptions, batches: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
    """Task worker. Returns when the brokers have taken every row."""
    from spark_eos._deadline import Deadline
    from spark_eos._kafka.produce.idempotent_producer import IdempotentProducer
    from spark_eos._sink.task.write import PartitionWrite

    timeout_ms = options.api_timeout_ms
    written = PartitionWrite(
        options,
        lambda: IdempotentProducer(options.client, None, send_timeout_ms=timeout_ms),
    )
    with written.aborting_on_failure():
        written.write(batches)
        if written.producer is not None:
            written.producer.flush(Deadline.after_ms(timeout_ms))
    return WriterCommitMessage()


class AtLeastOnceStreamWriter(DataSourceStreamArrowWriter):
    """A streaming write."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Task worker."""
        return write_rows(self._options, iterator)


class AtLeastOnceBatchWriter(DataSourceArrowWriter):
    """A batch write."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Task worker."""
        return write_rows(self._options, iterator)
