"""Planner worker. Step 1 of a write at least once: end what exactly-once runs of the query left.

A batch that is decided but not complete would block readers, and the log would call it committed
later. So it is completed first. The run at least once writes what was lost, and the log notes that.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from spark_eos._deadline import Deadline
from spark_eos._endtxn.fence import abort_orphans
from spark_eos._log import TransactionLog
from spark_eos._log.location import log_exists
from spark_eos._protocol.transactions.batch import ABORTED
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import TransactionRecord
from spark_eos._protocol.transactions.transactional_id import parse_transactional_id
from spark_eos._recovery.ownership import Ownership
from spark_eos._recovery.recover import recover
from spark_eos._session import Session, log_location
from spark_eos.errors import OptionError

_STEP = timedelta(microseconds=1)


def hand_over(session: Session) -> None:
    """Complete the last batch of an exactly-once run, if there is one."""
    location = log_location(session.options)
    if location is None:
        return
    memory, query_id, deadline = session.memory, session.query_id, session.deadline()
    if memory.handed_over and memory.handed_over_at is None:
        return
    log = session.newest_log() if log_exists(location, {}) else None
    newest = None if log is None or not log.knows(query_id) else log.newest_entry(query_id)
    if newest is None:
        _check_nothing_open(session, location, deadline)
    elif not memory.handed_over or memory.handed_over_at != newest:
        Ownership(session).take_over(deadline)
        recover(session, deadline)
        _write_off(query_id, session.log)
        abort_orphans(session, deadline)
        newest = session.log.newest_entry(query_id)
    memory.handed_over, memory.handed_over_at = True, newest


def _check_nothing_open(session: Session, location: str, deadline: Deadline) -> None:
    for listing in session.cluster.coordinator.list_open(deadline):
        parsed = parse_transactional_id(listing.transactional_id)
        if parsed is not None and parsed.query_id == session.query_id:
            raise OptionError(
                "{transactional_id} is open: an exactly_once run of this query was not completed,"
                " and {location} is not its transaction log. Set {option} to the log of that run,"
                " or start the query once more with deliveryGuarantee exactly_once",
                transactional_id=listing.transactional_id,
                location=location,
                option="transactionLog",
            )


def _write_off(query_id: str, log: TransactionLog) -> None:
    """Log that the lost rows of the last batch are no longer owed."""
    last = log.last_batch(query_id)
    lost = [r for r in last.records if r.state in ABORTED] if last is not None else []
    if last is not None and lost:
        at = log.next_timestamp(query_id)
        log.append(query_id, last.batch_id, [row for r in lost for row in _written_off(r, at)])


def _written_off(record: TransactionRecord, at: datetime) -> list[TransactionRecord]:
    """The end of the transaction, if it is not in the log yet, and then `Empty`: no rows."""
    if record.state is TransactionState.PREPARE_ABORT:
        ended = record.moved_to(TransactionState.COMPLETE_ABORT, at)
        return [ended, *_written_off(ended, at)]
    return [replace(record.moved_to(TransactionState.EMPTY, at + _STEP), partitions=())]
