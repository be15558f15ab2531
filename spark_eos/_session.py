"""Every process. What one process has in hand for one query: the cluster, the log, the checkpoint
and a clock.

Spark reuses its Python workers while a query is busy and lets them die when it is idle. So what a
session keeps from batch to batch is a speed-up and nothing else: a step that finds nothing kept
looks for itself. Nothing is kept beside the sessions. They are few, and what goes is closed.

Imports stand where they are needed: a task worker loads no Delta.
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

# The folders for the blocks of an application: Spark names them at random for each.
_APPLICATION: Final = "SPARK_LOCAL_DIRS"
# Chance keeps two drivers apart.
_chance: Final = random.SystemRandom().random
_PROCESS: Final = str(_chance())
# More queries than a driver has; an application that writes without end has a new one each time.
_MOST_KEPT: Final = 32

_StreamingOptions = SinkOptions | AtLeastOnceOptions
_LoggedOptions = _StreamingOptions | BatchWriteOptions


@dataclass(slots=True)
class Memory:
    """What a run has done already; it need not be done again for each batch."""

    planned: bool = False
    last_batch_id: int | None = None  # in the log, when the batch before was planned
    orphans_at: float = 0.0  # when orphans were looked for, by the monotonic clock
    source_topics: set[str] = field(default_factory=set)  # that are on the sink's cluster
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
        """Whether Spark knows that the sink completed a batch. Of a batch write nobody does: it
        logs its completion itself.
        """
        return self.is_streaming and self.checkpoint.has_commit(batch_id)

    @property
    def has_log(self) -> bool:
        """Whether decisions are remembered."""
        return log_location(self.options) is not None

    @property
    def log(self) -> "TransactionLog":
        """The log as this step found it."""
        return _known(self._log, "the newest log")

    @property
    def driver(self) -> int:
        """A number for this application with this log, the same in all of its processes."""
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
        """The log of a write. `checkpoint` is the location of the query's own, if it has one."""
        from spark_eos._log import TransactionLog

        return TransactionLog.open(location, checkpoint=checkpoint)

    def deadline(self) -> Deadline:
        """For one step: apiTimeoutMs from now."""
        return Deadline.after_ms(self.options.api_timeout_ms, self.clock)

    def transactional_id(self, partition: int | None) -> str:
        """The id of a sink partition; None is that of the offsets."""
        prefix = self.options.transactional_id_prefix
        return str(TransactionalId(prefix=prefix, query_id=self.query_id, partition=partition))

    def newest_log(self) -> "TransactionLog":
        """Open the log, or go to its newest version. Each step of the driver begins with this."""
        log, self._log = self._log, None  # one that cannot be refreshed is opened the next time
        if log is None:
            location = _known(log_location(self.options), "the log")
            log = self.open_log(location, checkpoint=checkpoint_location(self.options))
        else:
            log.refresh()
        self._log = log
        return log

    def topic_id(self, topic: str, run_id: str, deadline: Deadline) -> str | None:
        """The id that the topic has, or had earlier in this run; None where the cluster gives none.

        An id that is the same before the rows were sent and when they are decided says that they
        are in the topic that is there. It may be from long before, so it is kept for as long as a
        run lasts. A new run asks again: a person may have replaced the topic in between.
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
        """What the consumers of this read's tasks have in common."""
        from spark_eos._kafka.consume.consumer import ConsumerSettings

        return ConsumerSettings(
            isolation_level=self.options.isolation_level,
            group_id=self.options.group_id or self.options.group_id_prefix,
        )

    @property
    def retries(self) -> "Retries":
        """How long and how often to ask for offsets."""
        from spark_eos._kafka.admin.offset_reader import Retries

        return Retries(
            timeout_ms=self.options.api_timeout_ms,
            at_least=self.options.num_retries,
            interval_ms=self.options.retry_interval_ms,
        )

    @staticmethod
    def has_log(location: str) -> bool:
        """Whether there is a Delta table. Raises where something else is: no log can come there."""
        from spark_eos._log.location import log_exists

        return log_exists(location, {})

    @staticmethod
    def open_log(location: str) -> "TransactionLog":
        """The log of the query whose output is read. Raises where there is none."""
        from spark_eos._log import TransactionLog

        return TransactionLog.existing(location)

    @cached_property
    def offset_reader(self) -> "OffsetReader":
        """The client that asks for offsets at this isolation level. Raises OptionError for a
        setting that the consumers of the tasks would fail with.
        """
        from spark_eos._kafka.admin.offset_reader import OffsetReader

        options = self.options
        self.cluster.consumers.check_config(self.consumer_settings)
        return OffsetReader(options.client, options.isolation_level, self.retries)

    def deadline(self) -> Deadline:
        """For one step: apiTimeoutMs from now."""
        return Deadline.after_ms(self.options.api_timeout_ms, self.clock)


class Sessions:
    """The sessions that a process keeps. Those that were used last stay."""

    def __init__(self, kind: type[Session] = Session) -> None:
        self._kind = kind
        self._kept: dict[object, Session | ReadSession] = {}

    def of(self, options: WriteOptions, query_id: str | None) -> Session:
        """The session of a query, with the options of this step. Its checkpoint or, in a batch
        write, its options know its id.
        """
        log, checkpoint = log_location(options), checkpoint_location(options)
        if query_id is None and checkpoint is not None:
            query_id = self._kind.open_checkpoint(checkpoint).query_id()
        if isinstance(options, BatchWriteOptions):
            query_id = options.query_id
        query_id = _known(query_id, "the query's id")
        # The log is that of a query id: a checkpoint that was deleted and made anew at the same
        # place does not meet the old table. A write without a log leaves nothing to be mixed up.
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
    """The session that this process has for a query, whose id need not be given where it is known
    to the checkpoint or to the options.
    """
    return _sessions.of(options, query_id)


def read_session_of(options: SourceOptions) -> ReadSession:
    """The session that this process has for a read."""
    return _sessions.of_read(options)


def _known(value: T | None, what: str) -> T:
    """What this kind of write, or this step, must have: a mistake of this project if it has not."""
    if value is None:
        raise SparkEosError(f"{what} is not known here")
    return value


def log_location(options: WriteOptions) -> str | None:
    """Where the log of a write is, if it has one."""
    return options.transaction_log if isinstance(options, _LoggedOptions) else None


def checkpoint_location(options: WriteOptions) -> str | None:
    """Where Spark's checkpoint is, if there is one."""
    return options.checkpoint_location if isinstance(options, _StreamingOptions) else None
