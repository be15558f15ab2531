"""Driver. A job's command line, its dry run and its supervised run.

    spark-submit jobs/<job>.py [--dry-run] <file>

The exit codes are in the epilog below and in docs/jobs.md.
"""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_eos.job._preflight import preflight
from spark_eos.job._stop import Stop, finish_batch
from spark_eos.job._supervise import Exit, RunResult, reason, supervise, verdict
from spark_eos.job.configuration import Configuration, ConfigurationError, load
from spark_eos.job.sections import Job
from spark_eos.lag import lags_of

_LOG = logging.getLogger("spark_eos.job")
_LOOK_EVERY_S: Final = 0.5


def run_query(
    description: str | None,
    model: type[Job],
    build: Callable[[SparkSession, Configuration[Any]], DataStreamWriter],
    settings: Mapping[str, str] | None = None,
) -> int:
    """Run a streaming job. `build` makes the query before each start, and has no side effects."""

    def run(writer: DataStreamWriter, job: Job, stop: Stop) -> RunResult:
        query, progress = writer.start(), _Progress()
        try:
            while not stop.is_requested and not query.awaitTermination(_LOOK_EVERY_S):  # type: ignore[arg-type]
                progress.report(query)
            if stop.is_requested:
                finish_batch(query, stop, job.stop_timeout_s)
            query.awaitTermination()
            progress.report(query)
        except Exception as error:
            with suppress(Exception):  # a lost JVM does not answer
                progress.report(query)
                query.stop()
            return RunResult(error, progressed=progress.rows > 0)
        return RunResult(None, progressed=True)

    return _main(description, model, build, run, settings or {})


def run_batch(
    description: str | None,
    model: type[Job],
    plan: Callable[[SparkSession, Configuration[Any]], Iterable[Callable[[], None]]],
    settings: Mapping[str, str] | None = None,
) -> int:
    """Run a batch job. `plan` returns steps that can be repeated, and has no side effects."""

    def run(steps: Iterable[Callable[[], None]], _job: Job, stop: Stop) -> RunResult:
        done = 0
        try:
            for step in steps:
                if stop.is_requested:
                    break
                step()
                done += 1
        except Exception as error:
            return RunResult(error, progressed=done > 0)
        return RunResult(None, progressed=True)

    return _main(description, model, plan, run, settings or {})


def _main(
    description: str | None,
    model: type[Job],
    build: Callable[[SparkSession, Configuration[Any]], Any],
    run: Callable[[Any, Job, Stop], RunResult],
    settings: Mapping[str, str],
) -> int:
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    # This logger prints a page of JSON for each mistake in SQL. The job reports it in one line.
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    arguments = _arguments(description, sys.argv[1:])
    stop = Stop()
    stop.listen()
    try:
        configuration = load(arguments.file, model, os.environ)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return Exit.WRONG_CONFIGURATION
    job = configuration.job

    def checked() -> Any:
        """Build what is to run, and check everything that can be checked before."""
        spark = _session(job, settings)
        stop.listen_in_jvm(spark)
        built = build(spark, configuration)
        preflight(job)
        return built

    def attempt() -> RunResult:
        try:
            built = checked()
        except Exception as error:
            return RunResult(error, progressed=False)
        return run(built, job, stop)

    if arguments.dry_run:
        return _dry_run(checked, arguments.file)
    code = supervise(attempt, job.restart, stop)
    _LOG.info("%s ended with exit code %d", job.name, code)
    return code


def _dry_run(checked: Callable[[], Any], file: Path) -> Exit:
    try:
        checked()
    except Exception as error:
        print(reason(error), file=sys.stderr)
        return verdict(error) or Exit.GAVE_UP
    print(f"{file}: no mistake was found, and nothing was touched")
    return Exit.DONE


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


def _session(job: Job, settings: Mapping[str, str]) -> SparkSession:
    """The session of the job, re-created if the cluster has ended the last one."""
    running = SparkSession.getActiveSession()
    if running is not None and running.sparkContext._jsc.sc().isStopped():
        running.stop()
    return SparkSession.builder.appName(job.name).config(map=dict(settings)).getOrCreate()


class _Progress:
    """Logs each batch once."""

    def __init__(self) -> None:
        self._last = -1
        self.rows = 0

    def report(self, query: StreamingQuery) -> None:
        newest = query.lastProgress
        if newest is None or newest["batchId"] <= self._last:
            return  # without a new batch: `recentProgress` is slow to fetch
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
