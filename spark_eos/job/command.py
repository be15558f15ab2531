"""Driver. A job's command line, its dry run, and its supervised run.

spark-submit jobs/<job>.py [--dry-run] <file>

0  done, or stopped by SIGTERM
1  gave up: a number of tries in a row failed
2  wrong arguments, or a wrong configuration: nothing was started
4  stopped for good: a person has to decide, the last line says what
"""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_eos.errors import SparkEosError
from spark_eos.job.configuration import Configuration, load
from spark_eos.job.look import look
from spark_eos.job.sections import Job
from spark_eos.job.stop import Stop, finish_batch
from spark_eos.job.supervise import Attempt, Exit, supervise, verdict
from spark_eos.lag import lags_of

_LOG = logging.getLogger("spark_eos.job")
_LOOK_EVERY_S = 0.5

Model = TypeVar("Model", bound=Job)


class Build(Protocol):
    """Makes a job's query, ready to be started. It must touch nothing: the dry run calls it."""

    def __call__(self, spark: SparkSession, configuration: Configuration[Any], /) -> Any: ...


Settings = dict[str, str]


def run_query(
    description: str | None,
    model: type[Job],
    build: Callable[[SparkSession, Configuration[Any]], DataStreamWriter],
    settings: Settings | None = None,
) -> int:
    """A streaming job: `build` makes the query, and it is started as often as it has to be."""

    def attempt(spark: SparkSession, configuration: Configuration[Job], stop: Stop) -> Attempt:
        query = build(spark, configuration).start()
        last = _Progress()
        try:
            while not stop.is_set() and not query.awaitTermination(_LOOK_EVERY_S):  # type: ignore[arg-type]
                last.report(query)
            if stop.is_set():
                finish_batch(query, stop, configuration.job.stop_timeout_s)
            query.awaitTermination()
        except Exception as error:
            last.report(query)
            return Attempt(error, progressed=last.rows > 0)
        finally:
            query.stop()
        last.report(query)
        return Attempt(None, progressed=True)

    return _main(description, model, build, attempt, settings or {})


def run_batch(
    description: str | None,
    model: type[Job],
    plan: Callable[[SparkSession, Configuration[Any]], Any],
    settings: Settings | None = None,
) -> int:
    """A batch job: `plan` gives the steps, each of which can be done again."""

    def attempt(spark: SparkSession, configuration: Configuration[Job], stop: Stop) -> Attempt:
        done = 0
        try:
            for step in plan(spark, configuration):
                if stop.is_set():
                    break
                step()
                done += 1
        except Exception as error:
            return Attempt(error, progressed=done > 0)
        return Attempt(None, progressed=True)

    return _main(description, model, plan, attempt, settings or {})


def _main(
    description: str | None,
    model: type[Job],
    build: Callable[[SparkSession, Configuration[Any]], Any],
    attempt: Callable[[SparkSession, Configuration[Job], Stop], Attempt],
    settings: Settings,
) -> int:
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    arguments = _arguments(description, sys.argv[1:])
    stop = Stop()
    stop.listen()
    try:
        configuration = load(arguments.file, model, os.environ)
        spark = _session(configuration.job, settings)
        stop.listen_in_jvm(spark)
        build(spark, configuration)
        look(configuration.job)
        if arguments.dry_run:
            print(f"{arguments.file}: all is well, and nothing was touched")
            return Exit.DONE
    except SparkEosError as error:
        print(f"{error}", file=sys.stderr)
        return verdict(error) or Exit.GAVE_UP
    code = supervise(
        lambda: attempt(_session(configuration.job, settings), configuration, stop),
        configuration.job.restart,
        stop,
    )
    _LOG.info("%s ended with exit code %d", configuration.job.name, code)
    return code


def _arguments(description: str | None, given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit codes: 0 done or stopped by SIGTERM, 1 gave up after failures in a row, "
        "2 wrong arguments or configuration, 4 a person has to decide.",
    )
    parser.add_argument("file", type=Path, help="the job's configuration, see conf/")
    parser.add_argument("--dry-run", action="store_true", help="check everything and touch nothing")
    return parser.parse_args(given)


def _session(job: Job, settings: Settings) -> SparkSession:
    """The session; a new one where the cluster has ended the last."""
    running = SparkSession.getActiveSession()
    if running is not None and running.sparkContext._jsc.sc().isStopped():
        running.stop()
    builder = SparkSession.builder.appName(job.name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


class _Progress:
    """Tells of each batch once."""

    def __init__(self) -> None:
        self._last = -1
        self.rows = 0

    def report(self, query: StreamingQuery) -> None:
        for progress in query.recentProgress:
            if progress["batchId"] <= self._last or not progress["numInputRows"]:
                continue
            self._last = progress["batchId"]
            self.rows += progress["numInputRows"]
            behind = sum(sum(lag.partitions.values()) for lag in lags_of(progress))
            _LOG.info(
                "batch %d: %d rows in %d ms, %d behind",
                self._last,
                progress["numInputRows"],
                progress["durationMs"].get("triggerExecution", 0),
                behind,
            )
