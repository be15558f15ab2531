"""Planner and commit worker. Is this the cluster on which a batch was decided?

Another cluster does not know the batch's transactions, and its topics may have the same names: what
it has at the logged offsets is not what was written, and says nothing of it. So nothing is asked
there, and a batch of which a part is committed is not written on there either.
"""

from collections.abc import Iterable

from spark_eos._deadline import Deadline
from spark_eos._protocol.transactions.transaction import TransactionRecord
from spark_eos._session import Session
from spark_eos.errors import OperatorError


def check_decided_here(
    session: Session, records: Iterable[TransactionRecord], deadline: Deadline
) -> None:
    """Raise where a row of the log is of another cluster. Rows of version 1 do not say."""
    servers = session.cluster.config.bootstrap_servers
    known = [record for record in records if record.cluster_id is not None]
    here = session.cluster.coordinator.cluster_id(deadline) if known else None
    for record in known:
        if record.cluster_id != here:
            raise OperatorError(
                f"batch {record.batch_id} of query {record.query_id} is decided on the Kafka"
                f" cluster {record.cluster_id}, and {servers} is cluster {here},"
                " which cannot tell what became of it. Start with the kafka.bootstrap.servers of"
                f" {record.cluster_id} until the batch is complete, and change them then. If that"
                " cluster is gone for good, see which rows of the batch are here, write what is"
                " missing by hand, and start with a new checkpointLocation or txnAppId"
            )
