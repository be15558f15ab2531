"""Planner and commit worker. Was a batch decided on this cluster (docs/design/recovery.md)?"""

from collections.abc import Iterable

from spark_eos._deadline import Deadline
from spark_eos._protocol.transactions.transaction import TransactionRecord
from spark_eos._session import Session
from spark_eos.errors import OperatorError


def check_decided_here(
    session: Session, records: Iterable[TransactionRecord], deadline: Deadline
) -> None:
    """Raise if a row of the log is of another cluster. Rows of version 1 do not name theirs."""
    known = [record for record in records if record.cluster_id is not None]
    here = session.cluster.coordinator.cluster_id(deadline) if known else None
    for record in known:
        if record.cluster_id != here:
            raise OperatorError(
                "batch {batch_id} of query {query_id} is decided on the Kafka cluster {decided_on},"
                " but {servers} is cluster {here}. Only {decided_on} can complete the batch: start"
                " with its {option}, and change the option when the batch is complete. If that"
                " cluster is gone for good, see which rows of the batch are here, write what is"
                " missing by hand, and start with a new checkpointLocation or txnAppId",
                batch_id=record.batch_id,
                query_id=record.query_id,
                decided_on=record.cluster_id,
                servers=session.cluster.config.bootstrap_servers,
                here=here,
                option="kafka.bootstrap.servers",
            )
