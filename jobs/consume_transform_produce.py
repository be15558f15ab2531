"""Topics in, a SQL transform, topics out, exactly once.

Each source is a view for the transform. The transform selects the records to write: `value`, and if
wanted `key`, `topic` (instead of the option), `partition`, `headers` and `timestamp`. With `parse`,
the fields of a record are in the column `data`. Rows that do not parse go to the dead-letter topic,
by the same decision. See conf/embedded/consume_transform_produce.yaml.
"""

import sys
from typing import Annotated

from pydantic import Field, model_validator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_eos.job.command import run_query
from spark_eos.job.configuration import Configuration
from spark_eos.job.sections import (
    DeadLetter,
    Sink,
    Source,
    StreamingJob,
    ViewName,
    check_dead_letters,
)
from spark_eos.job.views import dead, good, read, select
from spark_eos.job.write import write


class ConsumeTransformProduce(StreamingJob):
    """The file of this job."""

    sources: Annotated[dict[ViewName, Source], Field(min_length=1)]
    transform: Annotated[str, Field(min_length=1)]
    dead_letter: DeadLetter | None = None
    sink: Sink

    @model_validator(mode="after")
    def _dead_letters_where_rows_are_parsed(self) -> "ConsumeTransformProduce":
        check_dead_letters(self.sources.values(), self.dead_letter, "dead_letter")
        return self


def query(
    spark: SparkSession, configuration: Configuration[ConsumeTransformProduce]
) -> DataStreamWriter:
    """The query, ready to start."""
    job = configuration.job
    letters: list[DataFrame] = []
    for name, source in job.sources.items():
        frame = read(spark, configuration, "sources", name)
        good(frame, source).createOrReplaceTempView(name)
        if source.parse is not None:
            letters.append(dead(frame))
    rows = select(spark, configuration, job.transform)
    return write(rows, letters, configuration, blame="transform")


if __name__ == "__main__":
    sys.exit(run_query(__doc__, ConsumeTransformProduce, query))
