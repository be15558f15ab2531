"""Every process. deliveryGuarantee at_least_once: no transaction, no log, nothing to recover.

Rows are visible as soon as they are written. A task or batch that runs again writes its rows again.
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


class _Writer:
    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Task worker. Return when the brokers have acknowledged every row."""
        from spark_eos._deadline import Deadline
        from spark_eos._kafka.produce.idempotent_producer import IdempotentProducer
        from spark_eos._sink.task.write import PartitionWrite

        options, timeout_ms = self._options, self._options.api_timeout_ms
        written = PartitionWrite(
            options, lambda: IdempotentProducer(options.client, None, send_timeout_ms=timeout_ms)
        )
        with written.aborting_on_failure():
            written.write(iterator)
            if written.producer is not None:
                written.producer.flush(Deadline.after_ms(timeout_ms))
        return WriterCommitMessage()


class AtLeastOnceStreamWriter(_Writer, DataSourceStreamArrowWriter):
    """A streaming write."""


class AtLeastOnceBatchWriter(_Writer, DataSourceArrowWriter):
    """A batch write."""
