"""Task worker. Step 3: prepare. Flush, check every delivery report, leave the transaction open.

The message that goes to the driver names the transaction by producer id and epoch: with these two
it can be committed or aborted from any process. The producer is dropped after this: one epoch, one
transaction.
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
    """The result of a task whose rows are all in the broker's log, or are not to be sent."""
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
