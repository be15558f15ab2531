"""Driver. Before the start: check that the cluster has what a job names, and allows it.

The check only reads. Without it, Spark reports such a mistake in the first batch, as the stack of a
Python worker. With it, the job reports one line before anything runs.
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
    """Raise for a missing topic, a refused login or an exceeded limit of the cluster."""
    sections = list(_sections(job))
    sinks = [found for found in map(_write_options, sections) if found is not None]
    for section in sections:
        if isinstance(section, Source):
            resolve_partitions(read_session_of(stream_options(section.options)))
    for written in sinks:
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
    if isinstance(value, BaseModel):
        value = {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, dict):
        for child in value.values():
            yield from _sections(child)
