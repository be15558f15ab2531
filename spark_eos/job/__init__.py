"""What a job is made of: a file of configuration, a supervised run, a clean stop.

A job describes its file as a model of sections, builds its query from the file, and calls
`run_query` or `run_batch`. The programs in `jobs/` are complete examples.
"""

from spark_eos.job._command import run_batch, run_query
from spark_eos.job._configuration import Configuration, ConfigurationError
from spark_eos.job._delta import DELTA_SETTINGS, DeltaAppends, application
from spark_eos.job._replay import check_micro_batches, has_written
from spark_eos.job._sections import (
    BatchSink,
    CheckedSnapshotOptions,
    DeadLetter,
    Job,
    Parse,
    Restart,
    Section,
    Sink,
    Source,
    StreamingJob,
    Texts,
    Trigger,
    ViewName,
    Watermark,
    check_dead_letters,
)
from spark_eos.job._views import dead, good, read, select
from spark_eos.job._write import check_records, for_each_batch, write, write_once

__all__ = [
    "DELTA_SETTINGS",
    "BatchSink",
    "CheckedSnapshotOptions",
    "Configuration",
    "ConfigurationError",
    "DeadLetter",
    "DeltaAppends",
    "Job",
    "Parse",
    "Restart",
    "Section",
    "Sink",
    "Source",
    "StreamingJob",
    "Texts",
    "Trigger",
    "ViewName",
    "Watermark",
    "application",
    "check_dead_letters",
    "check_micro_batches",
    "check_records",
    "dead",
    "for_each_batch",
    "good",
    "has_written",
    "read",
    "run_batch",
    "run_query",
    "select",
    "write",
    "write_once",
]
