"""Planner and commit worker. Check the options and columns of a write, and choose its writer.

Imports are inside functions: a commit worker needs no plan, and a planner needs no producer.
"""

import uuid
from collections.abc import Mapping

from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from spark_eos._options import (
    BatchWriteOptions,
    SinkOptions,
    WriteOptions,
    batch_write_options,
    sink_options,
)
from spark_eos._session import session_of
from spark_eos._sink.columns import check_columns
from spark_eos.errors import OptionError


def stream_writer(
    given: Mapping[str, str], schema: StructType, *, is_planner: bool
) -> DataSourceStreamWriter:
    """The writer of a streaming query. In the planner, recovery runs first."""
    options = sink_options(given)
    if is_planner:
        check_columns(schema, options.topic)
    if not isinstance(options, SinkOptions):
        from spark_eos._sink.at_least_once import AtLeastOnceStreamWriter

        if is_planner:
            from spark_eos._sink.driver.hand_over import hand_over

            _check_topic(options)
            if options.checkpoint_location is not None:
                hand_over(session_of(options))
        return AtLeastOnceStreamWriter(options)
    from spark_eos._sink.writer import StreamWriter

    if not is_planner:
        return StreamWriter(options)
    from spark_eos._sink.driver.plan import plan

    return StreamWriter(options, plan(session_of(options)))


def batch_writer(
    given: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> DataSourceWriter:
    """The writer of a batch query. Spark sends it to the tasks and to the commit worker."""
    if overwrite:
        raise OptionError("save mode 'overwrite' is not possible: Kafka only appends. Use 'append'")
    options = batch_write_options(given)
    check_columns(schema, options.topic)
    if not isinstance(options, BatchWriteOptions):
        from spark_eos._sink.at_least_once import AtLeastOnceBatchWriter

        _check_topic(options)
        return AtLeastOnceBatchWriter(options)
    from spark_eos._sink.driver.plan import plan
    from spark_eos._sink.writer import BatchWriter

    return BatchWriter(options, plan(session_of(options)), run_id=str(uuid.uuid4()))


def _check_topic(options: WriteOptions) -> None:
    from contextlib import closing

    from spark_eos._deadline import Deadline
    from spark_eos._kafka.cluster import Cluster
    from spark_eos._sink.driver.preflight import check_topic

    with closing(Cluster(options.client)) as cluster:
        check_topic(options, cluster, Deadline.after_ms(options.api_timeout_ms))
