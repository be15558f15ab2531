"""Driver and task worker. What Spark calls to read a batch or a stream. No logic."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from spark_eos._options import SourceOptions, batch_options, stream_options
from spark_eos._protocol.offsets.divide import PlannedRange
from spark_eos._protocol.offsets.offset_map import from_map, to_map, topic_ids_of
from spark_eos._protocol.offsets.stream_position import StreamPosition
from spark_eos._session import read_session_of
from spark_eos._source.batch_offsets import plan_ranges
from spark_eos._source.filters import Pushed
from spark_eos._source.read import read_range
from spark_eos._source.schema import check_schema, source_schema
from spark_eos._source.stream_offsets import StreamOffsets
from spark_eos._worker import task_started
from spark_eos.errors import DataLossError


def batch_reader(given: Mapping[str, str], schema: StructType) -> "BatchReader":
    """Check options and schema, and return the reader of `spark.read`."""
    options = batch_options(given)
    check_schema(schema, options.include_headers)
    return BatchReader(options)


def stream_reader(given: Mapping[str, str], schema: StructType) -> "StreamReader":
    """Check options and schema, and return the reader of `spark.readStream`."""
    options = stream_options(given)
    check_schema(schema, options.include_headers)
    return StreamReader(options)


class _Read:
    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Task worker. The rows of one range."""
        task_started()
        if partition.value is None:  # Spark's partition for a read without partitions
            return iter(())
        if isinstance(partition.value, DataLossError):
            raise partition.value
        schema = to_arrow_schema(source_schema(self._options.include_headers), timezone="UTC")
        planned: PlannedRange = partition.value
        session = read_session_of(self._options)
        return read_range(session, planned.range, schema, planned.records)


class BatchReader(_Read, DataSourceReader):
    """`spark.read`."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._pushed = Pushed()

    @property
    def pushFilters(self) -> Callable[..., Iterable[Filter]]:  # noqa: N802
        """Accept filters if spark.sql.python.filterPushdown is on.

        If it is off, pyspark refuses a reader whose method is not the base class's function.
        """
        return _PushFilters(self._pushed)

    def partitions(self) -> list[InputPartition]:
        """One task for each range."""
        session = read_session_of(self._options)
        return [InputPartition(planned) for planned in plan_ranges(session, self._pushed)]


class _PushFilters:
    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, pushed: Pushed) -> None:
        self._pushed = pushed

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        """Use the filters to narrow the ranges. Spark applies every filter again."""
        self._pushed.push(filters)
        return filters


class StreamReader(_Read, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """`spark.readStream`."""

    @cached_property
    def _offsets(self) -> StreamOffsets:
        # Not made in tasks, because it holds a client.
        return StreamOffsets(read_session_of(self._options))

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a new query starts."""
        return _to_map(self._offsets.initial())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The limit from the options. Spark passes another limit if the trigger wants all rows."""
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next batch. If there is no batch, `start` itself: Spark compares texts."""
        begin = _position(start)
        end = self._offsets.latest(
            begin,
            limited=not isinstance(limit, ReadAllAvailable),
            most=limit.max_rows if isinstance(limit, ReadMaxRows) else None,
        )
        return start if end == begin else _to_map(end)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """The ends of the topics when the last batch was planned."""
        seen = self._offsets.seen
        return None if seen is None else _to_map(seen)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read up to the ends that the topics have at the next plan, and stop."""
        self._offsets.freeze()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """One task for each range. A data loss is raised by a task, not here.

        The sink plans after the source, and must complete what was decided before a restart.
        """
        try:
            ranges = self._offsets.ranges(_position(start), _position(end))
        except DataLossError as error:
            return [InputPartition(error)]
        return [InputPartition(PlannedRange(r)) for r in ranges]


def _position(given: dict[str, Any]) -> StreamPosition:
    return StreamPosition(from_map(given), topic_ids_of(given))


def _to_map(found: StreamPosition) -> dict[str, Any]:
    return to_map(found.offsets, found.topic_ids)
