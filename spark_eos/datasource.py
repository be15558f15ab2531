"""Spark's door: the name of the format and who serves it. No logic.

Which process asks is told by how the data source came to be. The planner worker makes a new one
from its options before each batch; the commit worker gets one that was pickled elsewhere. Only the
planner recovers: its writer travels to the tasks. Imports stand where they are needed, because
Spark starts more than one process just to look at this class.
"""

from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from spark_eos.worker import task_started


class TxnKafkaDataSource(DataSource):
    """`format("txnkafka")`."""

    _travelled = False

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "txnkafka"

    def schema(self) -> StructType:
        """The columns of a read. A write has those of its frame."""
        from spark_eos.options.source import includes_headers
        from spark_eos.source.schema import source_schema

        return source_schema(includes_headers(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of a batch query."""
        from spark_eos.options import batch_options
        from spark_eos.source.reader import BatchReader
        from spark_eos.source.schema import check_schema

        options = batch_options(self.options)
        check_schema(schema, options.include_headers)
        return BatchReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The reader of a streaming query."""
        task_started()
        from spark_eos.options import stream_options
        from spark_eos.source.reader import StreamReader
        from spark_eos.source.schema import check_schema

        options = stream_options(self.options)
        check_schema(schema, options.include_headers)
        return StreamReader(options)

    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002
    ) -> DataSourceStreamWriter:
        """The writer of a streaming query. `overwrite` tells of complete mode, where Kafka, as in
        Spark's own sink, gets each result table behind the one before.
        """
        task_started()
        from spark_eos.options import SinkOptions, sink_options
        from spark_eos.sink.columns import check_columns
        from spark_eos.sink.writer import StreamWriter

        options = sink_options(self.options)
        if not isinstance(options, SinkOptions):
            from spark_eos.sink.at_least_once import AtLeastOnceStreamWriter, check_cluster

            if not self._travelled:
                check_columns(schema, options.topic)
                check_cluster(options)
            return AtLeastOnceStreamWriter(options)
        if self._travelled:
            return StreamWriter(options)
        from spark_eos.sink.plan import plan_batch

        check_columns(schema, options.topic)
        return StreamWriter(options, plan_batch(options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """The writer of a batch query. Kafka only appends."""
        from spark_eos.errors import OptionError
        from spark_eos.options import BatchWriteOptions, batch_write_options
        from spark_eos.sink.columns import check_columns

        if overwrite:
            raise OptionError("save mode 'overwrite' is not possible: Kafka appends. Use 'append'")
        options = batch_write_options(self.options)
        check_columns(schema, options.topic)
        if not isinstance(options, BatchWriteOptions):
            from spark_eos.sink.at_least_once import AtLeastOnceBatchWriter, check_cluster

            check_cluster(options)
            return AtLeastOnceBatchWriter(options)
        import uuid

        from spark_eos.sink.batch_commit import plan_write
        from spark_eos.sink.batch_writer import BatchWriter

        return BatchWriter(options, plan_write(options), run_id=str(uuid.uuid4()))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _travelled=True)
