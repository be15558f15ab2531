"""Task worker. Step 3: prepare. Flush, check every delivery report, leave the transaction open.

With the producer id and the epoch, any process can commit or abort the transaction. The producer is
not used again: each epoch has one transaction.
"""

from collections.abc import Mapping
from dataclasses import replace

from spark_eos._deadline import Deadline
from spark_eos._kafka.produce.transactional_producer import TransactionalProducer
from spark_eos._protocol.transactions.batch import TaskResult
from spark_eos._sink.task.digest import RowDigest


def prepare(
    partition: int,
    digest: RowDigest,
    producer: TransactionalProducer | None,
    topic_ids: Mapping[str, str],
    deadline: Deadline,
) -> TaskResult:
    """The result of a task. All its rows are in the broker's log, or were skipped."""
    transaction = None
    if producer is not None:
        ids = tuple(sorted(topic_ids.items()))
        transaction = replace(producer.prepare(deadline), topic_ids=ids)
    return TaskResult(
        partition=partition,
        records=digest.records,
        digest=digest.hexdigest(),
        transaction=transaction,
    )
