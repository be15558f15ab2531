"""Task worker. Step 3: prepare. Flush, check every delivery report, leave the transaction open.

The message that goes to the driver names the transaction by producer id and epoch: with these two
it can be committed or aborted from any process. The producer is dropped after this: one epoch, one
transaction.
"""

from spark_eos.kafka.transactional_producer import TransactionalProducer
from spark_eos.protocol.deadline import Deadline
from spark_eos.protocol.replay import TaskResult
from spark_eos.sink.digest import RowDigest


def prepare(
    partition: int, digest: RowDigest, producer: TransactionalProducer | None, deadline: Deadline
) -> TaskResult:
    """The result of a task whose rows are all in the broker's log, or are not to be sent."""
    return TaskResult(
        partition=partition,
        records=digest.records,
        digest=digest.hexdigest(),
        transaction=producer.prepare(deadline) if producer is not None else None,
    )
