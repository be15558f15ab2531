"""Planner worker, at the first start of a query on a log. Is this the log that has its decisions?

A log says by its token where the query's own epoch is, and `ownership.py` compares that. A log that
was written by an older release has no token, and one that does not know the query has none either.
Then the ids of the tasks have to tell: an id whose last transaction was committed has been decided
in some log, because nothing is committed without. If this log does not know that transaction, it
was deleted, restored from a backup, or the option names another one now.
"""

from spark_eos._deadline import Deadline
from spark_eos._protocol.transactions.state import COMMITTED_STATES
from spark_eos._protocol.transactions.transactional_id import parse_transactional_id
from spark_eos._session import Session
from spark_eos.errors import StaleLogError


def check_log_is_the_querys(session: Session, deadline: Deadline) -> None:
    """Raise where a log without a token cannot be the one that the query wrote to."""
    query_id, log = session.query_id, session.log
    if log.token(query_id) is not None:
        return
    committed = _unknown_commit(session, deadline)
    if committed is None:
        return
    log.refresh()
    if log.token(query_id) is not None:
        return  # another driver was started on this log, and knows the commit
    newest = log.last_batch_id(query_id)
    has = "has no row" if newest is None else f"ends with batch {newest}"
    raise StaleLogError(
        f"the transaction log at {log.location} {has} of query {query_id}, and {committed} was"
        " committed in Kafka since: its decision is in another log, or the log was deleted or"
        " restored from a backup, and the last batch could be written twice. Set transactionLog to"
        " the newest log that the query had (it may be copied as a whole, while no query writes to"
        " it), or start with a new checkpointLocation or txnAppId"
    )


def _unknown_commit(session: Session, deadline: Deadline) -> str | None:
    """An id of the query with a committed transaction that the log does not have."""
    coordinator, last = session.cluster.coordinator, session.log.last_batch(session.query_id)
    if last is not None:
        logged = {record.identity.transactional_id: record.identity for record in last.records}
        found = coordinator.describe(list(logged), deadline)
        for name, now in found.items():
            if now and now.state in COMMITTED_STATES and now.identity != logged[name]:
                return name
        return None
    for listing in coordinator.list_committed(deadline):
        parsed = parse_transactional_id(listing.transactional_id)
        if parsed is not None and parsed.query_id == session.query_id:
            return listing.transactional_id
    return None
