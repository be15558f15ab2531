"""Driver, after a batch. Keep the cost of an append independent of the age of the log.

An append costs more with each commit since the last checkpoint, each commit file and each live
file, see docs/design/log.md. Maintenance keeps their numbers small. It works on a snapshot of its
own, so the driver's does not move. A rewrite conflicts with other rewrites, but not with an append.
"""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, Transaction

from spark_eos._log.expiry import Cutoffs, judge
from spark_eos._log.files import FileStore, LiveFile, removals
from spark_eos._log.location import COMMIT_RETRIES, NO_HOOKS
from spark_eos._log.record import SCHEMA, to_table
from spark_eos._log.table import LogTable
from spark_eos._log.tail import find_tail
from spark_eos._log.vacuum import vacuum
from spark_eos.errors import SparkEosError

_LOG = logging.getLogger(__name__)

# Measured: an append costs 0.1 ms more per commit since the checkpoint, a compaction with its
# checkpoint costs 30 ms. The sum is flat between 16 and 32.
CHECKPOINT_EVERY: Final = 32
CLEAN_LOG_EVERY: Final = 64
EXPIRE_EVERY: Final = 1024
# How many files of a level are merged into one of the next, as in an LSM tree. Only 8 at the last,
# so that no merge takes long: its files hold 8,192 appends, and a week at one a second is 74 files.
FAN_IN: Final = (32, 32, 8)
# The application id of all rewrites: it makes the second of two a conflict. delta-rs 1.6.6 lets two
# commits remove the same file, and keeps both outputs: every row twice.
REWRITE: Final = "spark-eos/rewrite"
# A process that is further behind starts again from a newer checkpoint. On a local disk each append
# lists all commits: with 640 it took an eighth longer than in a new log.
KEEP_COMMITS: Final = 256

_COMMIT = re.compile(r"(\d{20})\.(?:json|checkpoint\..*parquet)")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long rows stay. `idle` is Kafka's `transactional.id.expiration.ms` and its default."""

    history: timedelta = timedelta(days=7)
    idle: timedelta = timedelta(days=7)


class MaintenanceTask(Enum):
    """A piece of maintenance, with the number of commits between two runs."""

    EXPIRE = EXPIRE_EVERY
    COMPACT = CHECKPOINT_EVERY
    CLEAN_LOG = CLEAN_LOG_EVERY


class Schedule:
    """What is due. The driver whose append passes a multiple does it: one of many drivers."""

    def __init__(self, version: int) -> None:
        self._version = version

    def due(self, version: int) -> list[MaintenanceTask]:
        """The tasks with a multiple between the last call and now, in the order to run them."""
        tasks = [
            task for task in MaintenanceTask if version // task.value > self._version // task.value
        ]
        self._version = version
        return tasks


def run_maintenance(
    store: FileStore, tasks: Sequence[MaintenanceTask], retention: Retention
) -> None:
    """Run the tasks in this order. Only a broken log raises: other failures wait for a next run."""
    try:
        table = LogTable(store)
        for task in tasks:
            match task:
                case MaintenanceTask.EXPIRE:
                    expire(table, retention, datetime.now(UTC))
                    vacuum(table)
                case MaintenanceTask.COMPACT if not _recently_checkpointed(table):
                    compact(table)
                    checkpoint(table)
                case MaintenanceTask.CLEAN_LOG:
                    clean_log(table)
            table.refresh()
            table.sync()
    except SparkEosError:
        raise
    except Exception as error:
        _LOG.warning("maintenance of the log at %s failed and will run again: %s", store.uri, error)


def compact(table: LogTable) -> None:
    """Merge the files of each level that has enough of them."""
    for level, fan_in in enumerate(FAN_IN):
        files = [file for file in table.live_files() if file.level == level]
        # The schedule counts commits, and not every commit is an append: half of them is enough.
        enough = fan_in // 2 if level == 0 else fan_in
        if len(files) >= enough:
            _rewrite(table, files, [(table.files.read_table(files), level + 1, False)])


def checkpoint(table: LogTable) -> None:
    """Write a checkpoint. Every file that it names must be on the disk before."""
    table.sync()
    table.delta.create_checkpoint()
    table.files.sync_checkpoint(table.version)


def expire(table: LogTable, retention: Retention, now: datetime) -> None:
    """Remove the rows that may expire, and add `Dead` rows for queries that are idle for long."""
    cutoffs = Cutoffs(history=now - retention.history, idle=now - retention.idle)
    files = [file for file in table.live_files() if file.max_entry < cutoffs.oldest_first]
    rows = table.read(files)
    tails = {query_id: find_tail(table, query_id) for query_id in {r.query_id for r in rows}}
    expiry = judge(rows, tails, cutoffs, now)
    if not expiry.gone:
        return
    outputs = [(to_table(expiry.kept), len(FAN_IN), False), (to_table(expiry.dead), 0, True)]
    # The guards of the dead queries: an append of one at this moment is a conflict.
    guards = {name: v for tail in expiry.dead_tails for name, v in tail.transactions.items()}
    _rewrite(table, files, outputs, guards)


def clean_log(table: LogTable) -> None:
    """Delete the commit files before a checkpoint that is far behind."""
    store = table.files
    if not store.is_local:  # it lists from a given name on, so old commits cost no time
        table.delta.cleanup_metadata()
        return
    names = sorted(
        store.list_names("_delta_log")
    )  # the oldest first: an interruption leaves no gap
    checkpoints = [int(match[1]) for name in names if (match := _CHECKPOINT.fullmatch(name))]
    start = max((v for v in checkpoints if v <= table.version - KEEP_COMMITS), default=0)
    old = [name for name in names if (match := _COMMIT.fullmatch(name)) and int(match[1]) < start]
    store.delete(f"_delta_log/{name}" for name in old)


def _recently_checkpointed(table: LogTable) -> bool:
    """Whether another driver that passed the same multiple did it already."""
    hint = table.files.read_text("_delta_log/_last_checkpoint")
    version = json.loads(hint)["version"] if hint else 0
    return bool(version > table.version - CHECKPOINT_EVERY // 2)


def _rewrite(
    table: LogTable,
    files: Sequence[LiveFile],
    outputs: Sequence[tuple[Any, int, bool]],
    guards: Mapping[str, int] | None = None,
) -> None:
    """Replace files by others in one commit. A rewrite since the snapshot is a conflict."""
    added = [
        table.files.write(rows, level=level, data_change=data_change)
        for rows, level, data_change in outputs
        if rows.num_rows
    ]
    transactions = {REWRITE: table.version, **(guards or {})}
    table.delta.create_write_transaction(
        [*added, *removals(files)],
        mode="append",
        schema=pa.schema(SCHEMA),
        commit_properties=CommitProperties(
            app_transactions=[Transaction(*pair) for pair in transactions.items()],
            max_commit_retries=COMMIT_RETRIES,
        ),
        post_commithook_properties=NO_HOOKS,
    )
    table.refresh()
