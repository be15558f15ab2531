"""Option strings in, frozen values out: the only place with defaults.

Keys arrive in lower case: Spark's option maps do not know case. Whatever is wrong is found here,
before a row is read or written, and named with its option, its value and what is accepted.
"""

from spark_eos._options.sink import (
    BATCH_WRITE_OPTIONS,
    SINK_OPTIONS,
    BatchWriteOptions,
    SinkOptions,
    WriteOptions,
    batch_write_options,
    sink_options,
)
from spark_eos._options.source import (
    BATCH_OPTIONS,
    SOURCE_OPTIONS,
    STREAM_OPTIONS,
    SourceOptions,
    batch_options,
    stream_options,
)

__all__ = [
    "BATCH_OPTIONS",
    "BATCH_WRITE_OPTIONS",
    "SINK_OPTIONS",
    "SOURCE_OPTIONS",
    "STREAM_OPTIONS",
    "BatchWriteOptions",
    "SinkOptions",
    "SourceOptions",
    "WriteOptions",
    "batch_options",
    "batch_write_options",
    "sink_options",
    "stream_options",
]
