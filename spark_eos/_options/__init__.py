"""Every process. Parse the options of a query into frozen values. All defaults are here."""

from spark_eos._options.read import READ_OPTIONS, SourceOptions, batch_options, stream_options
from spark_eos._options.write import (
    WRITE_OPTIONS,
    AtLeastOnceOptions,
    BatchWriteOptions,
    SinkOptions,
    WriteOptions,
    batch_write_options,
    sink_options,
)

__all__ = [
    "READ_OPTIONS",
    "WRITE_OPTIONS",
    "AtLeastOnceOptions",
    "BatchWriteOptions",
    "SinkOptions",
    "SourceOptions",
    "WriteOptions",
    "batch_options",
    "batch_write_options",
    "sink_options",
    "stream_options",
]
