"""Driver. A look at the cluster before a job starts: what it names is there, and it is allowed.

Read only. What Spark would say of the first batch, in a stack of a Python worker, is said here in a
line, before anything runs.
"""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from spark_eos._deadline import Deadline
from spark_eos._kafka.cluster import Cluster
from spark_eos._options import (
    BatchWriteOptions,
    SinkOptions,
    WriteOptions,
    batch_write_options,
    sink_options,
    stream_options,
)
from spark_eos._session import read_session_of
from spark_eos._sink.driver.preflight import check_cluster, check_topic
from spark_eos._source.offsets import resolve_partitions
from spark_eos.job.sections import VERSION, BatchSink, DeadLetter, Job, Section, Sink, Source


def preflight(job: Job) -> None:
    """Raise for a topic that is missing, a login that is refused, a limit that is passed."""
    sections = list(_sections(job))
    sinks = [_write_options(section) for section in sections]
    for section in sections:
        if isinstance(section, Source):
            options = stream_options(section.options)
            resolve_partitions(read_session_of(options))
    for written in sinks:
        if written is not None:
            cluster = Cluster(written.client)
            deadline = Deadline.after_ms(written.api_timeout_ms)
            transactional = isinstance(written, SinkOptions | BatchWriteOptions)
            (check_cluster if transactional else check_topic)(written, cluster, deadline)
            for section in sections:
                if isinstance(section, DeadLetter):
                    cluster.metadata.partition_counts([section.topic], deadline)


def _write_options(section: Section) -> WriteOptions | None:
    if isinstance(section, Sink):
        return sink_options(section.options)
    if isinstance(section, BatchSink):
        return batch_write_options(section.options | VERSION)
    return None


def _sections(value: Any) -> Iterator[Section]:
    if isinstance(value, Section):
        yield value
    children = (
        [getattr(value, name) for name in type(value).model_fields]
        if isinstance(value, BaseModel)
        else value.values()
        if isinstance(value, dict)
        else ()
    )
    for child in children:
        yield from _sections(child)
