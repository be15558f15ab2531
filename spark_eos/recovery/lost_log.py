"""Planner worker, at a query's first start on a log. Is this the log that has its decisions?

A log that does not know the query says that nothing was ever decided, and the last batch would be
written again. Kafka knows better: an id of the query whose last transaction was committed has been
decided in some log, because nothing is committed without. So the log was deleted, or the option
points to another one now. Not for batch writes: what was written is known by version of an
application in a log, and somebody who names a new log means that.
"""

from spark_eos.errors import FencedError, OperatorError
from spark_eos.kafka.coordinator import CoordinatorClient
from spark_eos.log import TransactionLog
from spark_eos.protocol.deadline import Deadline
from spark_eos.protocol.replay import QueryTail
from spark_eos.protocol.transactional_id import parse_transactional_id


def check_log_is_the_querys(
    tail: QueryTail, *, log: TransactionLog, coordinator: CoordinatorClient, deadline: Deadline
) -> None:
    """Raise where a log without a row of the query cannot be the one that it wrote to."""
    if tail.last_batch_id is not None:
        return
    committed = _committed_id(tail.query_id, coordinator, deadline)
    if committed is None:
        return
    log.refresh()
    if log.last_batch_id(tail.query_id) is not None:
        raise FencedError(
            f"another driver has started query {tail.query_id} and committed {committed} since this"
            " one looked at the log. Only one may run: this one stops"
        )
    raise OperatorError(
        f"the transaction log at {log.location} has no row of query {tail.query_id}, and"
        f" {committed} was committed in Kafka: its decision is in another log, or the log was"
        " deleted, and the last batch could be written twice. Set transactionLog to the log that"
        " the query had (it may be copied as a whole, while no query writes to it), or start with a"
        " new checkpointLocation"
    )


def _committed_id(query_id: str, coordinator: CoordinatorClient, deadline: Deadline) -> str | None:
    for listing in coordinator.list_committed(deadline):
        parsed = parse_transactional_id(listing.transactional_id)
        if parsed is not None and parsed.query_id == query_id:
            return listing.transactional_id
    return None
