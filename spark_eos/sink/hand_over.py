"""Planner worker, deliveryGuarantee at_least_once. End what exactly-once runs of the query left.

A batch that was decided and not completed would hold back readers until its time-out, and its log
would later call it committed. So it is completed first. What was lost of it is written by the run
at least once, and the log is told that it does not owe these rows any more.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from spark_eos.deadline import Deadline
from spark_eos.errors import OptionError
from spark_eos.log import TransactionLog
from spark_eos.log.table import log_exists
from spark_eos.options.sink import AtLeastOnceOptions
from spark_eos.protocol.batch import ABORTED
from spark_eos.protocol.state import TransactionState
from spark_eos.protocol.transaction import TransactionRecord
from spark_eos.protocol.transactional_id import parse_transactional_id
from spark_eos.recovery.checkpoint import Checkpoint
from spark_eos.recovery.orphans import abort_orphans
from spark_eos.recovery.recover import recover
from spark_eos.sink.connections import coordinator_client, ownership, transaction_log

_STEP = timedelta(microseconds=1)
# Where the log was when this process looked at a query; None where there was none.
_looked: dict[tuple[AtLeastOnceOptions, str], datetime | None] = {}


def hand_over(options: AtLeastOnceOptions) -> None:
    """Complete the last batch of an exactly-once run, if there is one."""
    if options.checkpoint_location is None or options.transaction_log is None:
        return  # its location was set for the session only: nothing is known of other runs
    checkpoint = Checkpoint(options.checkpoint_location)
    query_id = checkpoint.query_id()
    key, location = (options, query_id), options.transaction_log
    deadline = Deadline.after_ms(options.api_timeout_ms)
    if key in _looked and _looked[key] is None:
        return
    log = None
    if log_exists(location, {}):
        log = transaction_log(location, query_id, options.checkpoint_location)
    if log is None or not log.knows(query_id):
        _check_nothing_open(query_id, location, options, deadline)
        _looked[key] = None
    elif _looked.get(key) != log.newest_entry(query_id):
        _complete(query_id, log, checkpoint, options, deadline)
        _looked[key] = log.newest_entry(query_id)


def _complete(
    query_id: str,
    log: TransactionLog,
    checkpoint: Checkpoint,
    options: AtLeastOnceOptions,
    deadline: Deadline,
) -> None:
    coordinator = coordinator_client(options.client)
    owner = ownership(options, query_id, log)
    owner.take_over(deadline)
    recover(
        query_id,
        log=log,
        checkpoint=checkpoint,
        config=options.client,
        coordinator=coordinator,
        ownership=owner,
        timeout_ms=options.transaction_timeout_ms,
        deadline=deadline,
    )
    _write_off(query_id, log)
    abort_orphans(
        query_id,
        coordinator=coordinator,
        timeout_ms=options.transaction_timeout_ms,
        deadline=deadline,
    )


def _check_nothing_open(
    query_id: str, location: str, options: AtLeastOnceOptions, deadline: Deadline
) -> None:
    """Raise where an exactly-once run with another log has left something."""
    for listing in coordinator_client(options.client).list_open(deadline):
        parsed = parse_transactional_id(listing.transactional_id)
        if parsed is not None and parsed.query_id == query_id:
            raise OptionError(
                f"{listing.transactional_id} is open: an exactly_once run of this query was not"
                f" completed, and {location} is not its transaction log. Set transactionLog to its"
                " log, or start the query once more with deliveryGuarantee exactly_once"
            )


def _write_off(query_id: str, log: TransactionLog) -> None:
    """Log that the rows that were lost of the last batch are not owed any more."""
    last = log.last_batch(query_id)
    lost = [r for r in last.records if r.state in ABORTED] if last is not None else []
    if last is not None and lost:
        at = log.next_timestamp(query_id)
        log.append(query_id, last.batch_id, [row for r in lost for row in _written_off(r, at)])


def _written_off(record: TransactionRecord, at: datetime) -> list[TransactionRecord]:
    """Its end, if that is not in the log yet, and then `Empty`: an id without rows."""
    ended = []
    if record.state is TransactionState.PREPARE_ABORT:
        record = record.moved_to(TransactionState.COMPLETE_ABORT, at)
        ended = [record]
    empty = record.moved_to(TransactionState.EMPTY, at + _STEP)
    return [*ended, replace(empty, partitions=())]
