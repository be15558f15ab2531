"""Every process. What a process has in hand for one query: cluster, log, checkpoint and clock.

Spark reuses its Python workers while a query is busy, and lets them die when it is idle. So what a
session keeps from batch to batch only saves time: a step that finds nothing looks for itself.
Imports stand in the functions: a task worker loads no Delta.
"""

import hashlib
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

from spark_eos._deadline import Clock, Deadline
from spark_eos._kafka.cluster import Cluster
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._options import (
    AtLeastOnceOptions,
    BatchWriteOptions,
    SinkOptions,
    SourceOptions,
    WriteOptions,
)
from spark_eos._protocol.transactions.transactional_id import TransactionalId
from spark_eos.errors import SparkEosError

if TYPE_CHECKING:
    from spark_eos._checkpoint.checkpoint import Checkpoint
    from spark_eos._kafka.admin.offset_reader import OffsetReader, Retries
    from spark_eos._kafka.consume.consumer import ConsumerSettings
    from spark_eos._log import TransactionLog

T = TypeVar("T")

# Spark gives each application random names for these folders.
_APPLICATION: Final = "SPARK_LOCAL_DIRS"
# Random numbers keep two drivers apart.
_chance: Final = random.SystemRandom().random
_PROCESS: Final = str(_chance())
# More queries than a driver has. An endless series of batch writes needs a limit.
_MOST_KEPT: Final = 32

_StreamingOptions = SinkOptions | AtLeastOnceOptions
_LoggedOptions = _StreamingOptions | BatchWriteOptions


@dataclass(slots=True)
class Memory:
    """What a run has done already, and need not do again for each batch."""

    planned: bool = False
    last_batch_id: int | None = None  # of the log, when the previous batch was planned
    orphans_at: float = 0.0  # time of the last look for orphans, by the monotonic clock
    source_topics: set[str] = field(default_factory=set)  # those on the sink's cluster
    handed_over: bool = False
    handed_over_at: datetime | None = None  # the log's newest entry then; None without a log


class Session:
    """One query, in one process."""

    clock: Clock = time
    chance: Callable[[], float] = staticmethod(_chance)

    def __init__(self, options: WriteOptions, query_id: str, cluster: Cluster) -> None:
        self.options = options
        self.query_id = query_id
        self.cluster = cluster
        self.memory = Memory()
        self._log: TransactionLog | None = None
        self._run_id: str | None = None
        self._topic_ids: dict[str, str | None] = {}

    @property
    def is_streaming(self) -> bool:
        """Whether the write has a checkpoint. A batch write has none."""
        return checkpoint_location(self.options) is not None

    @property
    def checkpoint(self) -> "Checkpoint":
        """Spark's checkpoint of a streaming query."""
        return self.open_checkpoint(_known(checkpoint_location(self.options), "the checkpoint"))

    def has_commit(self, batch_id: int) -> bool:
        """Whether Spark knows that a batch is complete. A batch write logs that itself."""
        return self.is_streaming and self.checkpoint.has_commit(batch_id)

    @property
    def has_log(self) -> bool:
        """Whether the write has a transaction log."""
        return log_location(self.options) is not None

    @property
    def log(self) -> "TransactionLog":
        """The log as this step found it."""
        return _known(self._log, "the newest log")

    @property
    def driver(self) -> int:
        """The number of this application with this log, the same in all its processes."""
        name = f"{os.environ.get(_APPLICATION, _PROCESS)} {self.log.location}"
        return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest(), "big")

    @property
    def group_id(self) -> str | None:
        """The consumer group that moves with the batches."""
        return self.options.group_id if isinstance(self.options, SinkOptions) else None

    @staticmethod
    def connect(config: ClientConfig) -> Cluster:
        """The cluster of a session."""
        return Cluster(config)

    @staticmethod
    def open_checkpoint(location: str) -> "Checkpoint":
        """The checkpoint of a streaming query."""
        from spark_eos._checkpoint.checkpoint import Checkpoint

        return Checkpoint(location)

    @staticmethod
    def open_log(location: str, *, checkpoint: str | None) -> "TransactionLog":
        """The log of a write. `checkpoint` is the location of the query's own checkpoint."""
        from spark_eos._log import TransactionLog

        return TransactionLog.open(location, checkpoint=checkpoint)

    def deadline(self) -> Deadline:
        """The deadline of one step: apiTimeoutMs from now."""
        return Deadline.after_ms(self.options.api_timeout_ms, self.clock)

    def transactional_id(self, partition: int | None) -> str:
        """The id of a sink partition, or for None the id of the offsets."""
        prefix = self.options.transactional_id_prefix
        return str(TransactionalId(prefix=prefix, query_id=self.query_id, partition=partition))

    def newest_log(self) -> "TransactionLog":
        """Open the log, or move to its newest version. Each step of the driver begins with this."""
        log, self._log = self._log, None  # if the refresh fails, the next step opens the log again
        if log is None:
            location = _known(log_location(self.options), "the log")
            log = self.open_log(location, checkpoint=checkpoint_location(self.options))
        else:
            log.refresh()
        self._log = log
        return log

    def topic_id(self, topic: str, run_id: str, deadline: Deadline) -> str | None:
        """The topic's id; None if the cluster gives none. It is compared at the decision, so it may
        be old. It is asked for once per run: a person may replace the topic between two runs.
        """
        if run_id != self._run_id:
            self._run_id, self._topic_ids = run_id, {}
        if topic not in self._topic_ids:
            self._topic_ids |= self.cluster.metadata.topic_ids([topic], deadline)
        return self._topic_ids[topic]


class ReadSession:
    """One read, in one process."""

    clock: Clock = time

    def __init__(self, options: SourceOptions, cluster: Cluster) -> None:
        self.options = options
        self.cluster = cluster

    @property
    def consumer_settings(self) -> "ConsumerSettings":
        """The settings of all consumers of this read's tasks."""
        from spark_eos._kafka.consume.consumer import ConsumerSettings

        return ConsumerSettings(
            isolation_level=self.options.isolation_level,
            group_id=self.options.group_id or self.options.group_id_prefix,
        )

    @property
    def retries(self) -> "Retries":
        """How long and how often this read asks for offsets."""
        from spark_eos._kafka.admin.offset_reader import Retries

        return Retries(
            timeout_ms=self.options.api_timeout_ms,
            at_least=self.options.num_retries,
            interval_ms=self.options.retry_interval_ms,
        )

    @staticmethod
    def has_log(location: str) -> bool:
        """Whether there is a Delta table. Raises if other files are there."""
        from spark_eos._log.location import log_exists

        return log_exists(location, {})

    @staticmethod
    def open_log(location: str) -> "TransactionLog":
        """The log of the query whose output is read. Raises if there is none."""
        from spark_eos._log import TransactionLog

        return TransactionLog.existing(location)

    @cached_property
    def offset_reader(self) -> "OffsetReader":
        """The client that asks for offsets at this isolation level."""
        from spark_eos._kafka.admin.offset_reader import OffsetReader

        # A wrong setting is an OptionError here, and not a failure of each task.
        self.cluster.consumers.check_config(self.consumer_settings)
        return OffsetReader(self.options.client, self.options.isolation_level, self.retries)

    def deadline(self) -> Deadline:
        """The deadline of one step: apiTimeoutMs from now."""
        return Deadline.after_ms(self.options.api_timeout_ms, self.clock)


class Sessions:
    """The sessions that a process keeps: those that were used last."""

    def __init__(self, kind: type[Session] = Session) -> None:
        self._kind = kind
        self._kept: dict[object, Session | ReadSession] = {}

    def of(self, options: WriteOptions, query_id: str | None) -> Session:
        """The session of a query, with the options of this step. `query_id` may be None if the
        checkpoint or the options of a batch write have it.
        """
        log, checkpoint = log_location(options), checkpoint_location(options)
        if query_id is None and checkpoint is not None:
            query_id = self._kind.open_checkpoint(checkpoint).query_id()
        if isinstance(options, BatchWriteOptions):
            query_id = options.query_id
        query_id = _known(query_id, "the query's id")
        # A checkpoint that was deleted and created again has a new query id, and must not get the
        # old session's log. Writes without a log may share a session.
        known_by = query_id if log is not None else None
        key = (options.client, log, checkpoint, known_by)
        session = self._kept.pop(key, None)
        if not isinstance(session, Session):
            session = self._kind(options, query_id, self._cluster(options.client))
        elif options != session.options:
            session.options, session.memory = options, Memory()
        session.query_id = query_id
        self._keep(key, session)
        return session

    def of_read(self, options: SourceOptions) -> ReadSession:
        """The session of a read."""
        session = self._kept.pop(options, None)
        if not isinstance(session, ReadSession):
            session = ReadSession(options, self._cluster(options.client))
        self._keep(options, session)
        return session

    def close(self) -> None:
        """Close every connection."""
        while self._kept:
            self._drop(next(iter(self._kept)))

    def _keep(self, key: object, session: Session | ReadSession) -> None:
        self._kept[key] = session
        while len(self._kept) > _MOST_KEPT:
            self._drop(next(iter(self._kept)))

    def _cluster(self, config: ClientConfig) -> Cluster:
        """Queries on one cluster share its connections."""
        same = (s.cluster for s in self._kept.values() if s.cluster.config == config)
        return next(same, None) or self._kind.connect(config)

    def _drop(self, key: object) -> None:
        dropped = self._kept.pop(key)
        if all(session.cluster is not dropped.cluster for session in self._kept.values()):
            dropped.cluster.close()


_sessions = Sessions()


def session_of(options: WriteOptions, query_id: str | None = None) -> Session:
    """The session that this process has for a query, see `Sessions.of`."""
    return _sessions.of(options, query_id)


def read_session_of(options: SourceOptions) -> ReadSession:
    """The session that this process has for a read."""
    return _sessions.of_read(options)


def _known(value: T | None, what: str) -> T:
    """A missing value is a mistake of this project."""
    if value is None:
        raise SparkEosError("{what} is not known here", what=what)
    return value


def log_location(options: WriteOptions) -> str | None:
    """The location of a write's log, if it has one."""
    return options.transaction_log if isinstance(options, _LoggedOptions) else None


def checkpoint_location(options: WriteOptions) -> str | None:
    """The location of Spark's checkpoint, if the write has one."""
    return options.checkpoint_location if isinstance(options, _StreamingOptions) else None
