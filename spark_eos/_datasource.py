"""Every process. The entry point for Spark: the name of the format and its readers and writers.

Only the planner recovers. It builds its data source from options; the commit worker's is pickled.
Imports are in the functions: some processes only look at this class (docs/design/decision.md).
"""

from typing import Any

from spark_eos._pyspark_version import NEEDED, READS, WRITES, check_pyspark

try:
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
except ModuleNotFoundError as missing:
    raise ImportError(NEEDED) from missing
from pyspark.sql.types import StructType

from spark_eos._worker import task_started


class TxnKafkaDataSource(DataSource):
    """`format("txnkafka")`."""

    _was_unpickled = False

    def __init__(self, options: dict[str, str]) -> None:
        # Not at import: Spark imports this module for every query that names a format.
        check_pyspark(WRITES)
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "txnkafka"

    def schema(self) -> StructType:
        """The columns of a read. A write has the columns of its frame."""
        check_pyspark(READS)
        from spark_eos._options.read import includes_headers
        from spark_eos._source.schema import source_schema

        return source_schema(includes_headers(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of a batch query."""
        check_pyspark(READS)
        from spark_eos._source.reader import batch_reader

        return batch_reader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The reader of a streaming query."""
        task_started()
        from spark_eos._source.reader import stream_reader

        return stream_reader(self.options, schema)

    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002
    ) -> DataSourceStreamWriter:
        """The writer of a streaming query. In complete mode it appends, like Spark's own sink."""
        task_started()
        from spark_eos._sink.choose import stream_writer

        return stream_writer(self.options, schema, is_planner=not self._was_unpickled)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """The writer of a batch query."""
        from spark_eos._sink.choose import batch_writer

        return batch_writer(self.options, schema, overwrite=overwrite)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _was_unpickled=True)
