"""Planner worker, at the first start of a query on a log. Does this log have its decisions?

`ownership.py` compares the token of a log with Kafka. A new log has no token, nor has one of an
older release. There the ids of the tasks have to show it. An id whose last transaction is committed
was decided in some log. If this log does not know that transaction, it is not the newest.
"""

from spark_eos._deadline import Deadline
from spark_eos._protocol.transactions.state import COMMITTED_STATES
from spark_eos._protocol.transactions.transactional_id import parse_transactional_id
from spark_eos._session import Session
from spark_eos.errors import StaleLogError


def check_log_is_the_querys(session: Session, deadline: Deadline) -> None:
    """Raise if the log has no token and cannot be the one that the query wrote to."""
    query_id, log = session.query_id, session.log
    if log.token(query_id) is not None:
        return
    committed = _unknown_commit(session, deadline)
    if committed is None:
        return
    log.refresh()
    if log.token(query_id) is not None:
        return  # another driver was started on this log and knows the commit
    newest = log.last_batch_id(query_id)
    raise StaleLogError(
        "the transaction log at {location} {has} of query {query_id}, but {transactional_id} was"
        " committed in Kafka since. Its decision is in another log, or the log was deleted or"
        " restored from a backup. Going on could write the last batch twice. Set {option} to the"
        " newest log of the query, or start with a new checkpointLocation or txnAppId. A log may be"
        " copied as a whole while no query writes to it",
        location=log.location,
        has="has no row" if newest is None else f"ends with batch {newest}",
        query_id=query_id,
        transactional_id=committed,
        option="transactionLog",
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
