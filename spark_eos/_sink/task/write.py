"""Task worker. Step 2: write the rows of one partition into a transaction of its own.

The first row makes the producer, so a partition without rows costs no transaction. All rows are
read in any case, because a stateful operator above the sink saves its state with its last row.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import pyarrow as pa

from spark_eos._deadline import Deadline
from spark_eos._failpoints import failpoint
from spark_eos._kafka.produce.idempotent_producer import IdempotentProducer
from spark_eos._kafka.produce.rows import Rows
from spark_eos._kafka.produce.transactional_producer import TransactionalProducer
from spark_eos._options import WriteOptions
from spark_eos._protocol.transactions.batch import Action, RecoveredQuery, TaskResult
from spark_eos._session import Session
from spark_eos._sink.task.arrow import to_rows
from spark_eos._sink.task.context import Task
from spark_eos._sink.task.digest import RowDigest
from spark_eos._sink.task.prepare import prepare
from spark_eos.errors import FencedError, OptionError

P = TypeVar("P", bound=IdempotentProducer)


def write_partition(
    session: Session, task: Task, recovered: RecoveredQuery, batches: Iterator[pa.RecordBatch]
) -> TaskResult:
    """Write and prepare one partition. If its rows are visible already, only read them."""
    if recovered.query_id != task.query_id:
        raise FencedError(
            "the checkpoint belongs to query {owner}, but {query_id} is running: {option} was"
            " replaced while the query ran",
            owner=recovered.query_id,
            query_id=task.query_id,
            option="checkpointLocation",
        )
    written = PartitionWrite(
        session.options,
        lambda: _producer(session, task),
        lambda topic, deadline: session.topic_id(topic, task.run_id, deadline),
    )
    with written.aborting_on_failure():
        failpoint("task-started")
        if recovered.action(task.batch_id, task.partition) is Action.WRITE:
            written.write(batches)
        else:
            written.skip(batches)
        failpoint("written")
        producer, topic_ids = written.producer, written.topic_ids
        result = prepare(task.partition, written.digest, producer, topic_ids, session.deadline())
        failpoint("prepared")
    return result


def _producer(session: Session, task: Task) -> TransactionalProducer:
    """The producer of this attempt. All attempts share one id, so it fences earlier attempts."""
    return session.cluster.producer(
        session.transactional_id(task.partition),
        batch_id=task.batch_id,
        timeout_ms=session.options.transaction_timeout_ms,
        send_timeout_ms=session.options.api_timeout_ms,
    )


class PartitionWrite(Generic[P]):
    """The rows of one task: their digest, and their producer if they are sent."""

    def __init__(
        self,
        options: WriteOptions,
        new_producer: Callable[[], P],
        topic_id: Callable[[str, Deadline], str | None] = lambda _topic, _deadline: None,
    ) -> None:
        self.digest = RowDigest()
        self.producer: P | None = None
        self.topic_ids: dict[str, str] = {}
        self._new_producer = new_producer
        self._topic_id = topic_id
        self._options = options
        self._partition_counts: dict[str, int] = {}

    def write(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Send every row."""
        for rows in self._read(batches):
            producer = self._ready(rows.topic)
            self._check_partitions(rows)
            producer.send(rows)

    def skip(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Read every row and send none, because the rows are visible already."""
        for _ in self._read(batches):
            pass

    @contextmanager
    def aborting_on_failure(self) -> Iterator[None]:
        """End the transaction if anything fails, so that it blocks no reader."""
        try:
            yield
        except BaseException:
            if self.producer is not None:
                self.producer.abort(self._deadline())
            raise

    def _read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Rows]:
        options = self._options
        for batch in batches:
            if batch.num_rows == 0:
                continue
            for rows in to_rows(batch, options.topic, include_headers=options.include_headers):
                self.digest.update(rows)
                yield rows

    def _ready(self, topic: str) -> P:
        """The producer, after a check that the topic exists. The first check also connects it."""
        producer = self.producer or self._new_producer()
        deadline = self._deadline()
        if topic not in self._partition_counts:
            self._partition_counts[topic] = producer.partition_count(topic, deadline)
            found = self._topic_id(topic, deadline)
            self.topic_ids |= {} if found is None else {topic: found}
        if self.producer is None:
            producer.begin(deadline)
            self.producer = producer
            failpoint("begun")
        return producer

    def _check_partitions(self, rows: Rows) -> None:
        count = self._partition_counts[rows.topic]
        for partition in rows.partitions or ():
            if partition is not None and not 0 <= partition < count:
                raise OptionError(
                    "column 'partition' holds {partition}, but topic '{topic}' has partitions 0 to"
                    " {last}. Correct the column, or leave it null",
                    partition=partition,
                    topic=rows.topic,
                    last=count - 1,
                )

    def _deadline(self) -> Deadline:
        return Deadline.after_ms(self._options.api_timeout_ms)
