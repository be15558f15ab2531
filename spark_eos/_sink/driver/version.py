"""Planner and commit worker, batch writes. May a version of an application be written, or was it?

Versions go up, and each is written once: Delta's rule, where the pair belongs to a table. Here it
belongs to a log, so what would be skipped is compared with what was written: the planner compares
the cluster and the topic, the commit worker the rows. A skip of anything else would be a loss that
nobody sees.
"""

from collections.abc import Sequence

from spark_eos._deadline import Deadline
from spark_eos._endtxn.decided_here import check_decided_here
from spark_eos._options import BatchWriteOptions
from spark_eos._protocol.transactions.batch import LoggedBatch, RecoveredQuery, TaskResult
from spark_eos._protocol.transactions.version import check_same_rows
from spark_eos._session import Session
from spark_eos.errors import OperatorError, SparkEosError


def check_txn_version(session: Session, recovered: RecoveredQuery, deadline: Deadline) -> None:
    """Planner worker. Raise where the version can neither be written nor be taken for written."""
    options, log = _options(session), session.log
    if recovered.last_batch_id is None:
        return
    if options.version > recovered.last_batch_id:
        if not recovered.complete and recovered.committed_partitions:
            raise OperatorError(
                f"version {recovered.last_batch_id} of txnAppId '{options.application}' is"
                " committed in part, and the rest of its rows is not there yet: write it again,"
                f" from the same rows, before version {options.version}"
            )
        return
    logged = log.batch(options.query_id, options.version)
    if logged is None or logged.is_aborted:
        # The last one, if it is gone, is complete and expired: the commit worker sees the rows.
        _check_is_last(options, recovered, logged)
        return
    check_decided_here(session, logged.records, deadline)
    _check_topic(options, logged)


def check_written_rows(session: Session, results: Sequence[TaskResult]) -> None:
    """Commit worker. Raise unless a version that is skipped has the rows that were written."""
    options, log = _options(session), session.log
    last_version = log.last_batch_id(options.query_id)
    check_same_rows(
        log.batch(options.query_id, options.version),
        results,
        application=str(options.application),
        query_id=options.query_id,
        version=options.version,
        last_version=options.version if last_version is None else last_version,
    )


def _options(session: Session) -> BatchWriteOptions:
    if not isinstance(session.options, BatchWriteOptions):
        raise SparkEosError("only a batch write has a version")
    return session.options


def _check_is_last(
    options: BatchWriteOptions, recovered: RecoveredQuery, logged: LoggedBatch | None
) -> None:
    if options.version != recovered.last_batch_id:
        why = (
            "was aborted"
            if logged is not None
            else "was left out, or is older than the log keeps, which has no record of it"
        )
        raise OperatorError(
            f"version {options.version} of txnAppId '{options.application}' {why}, and version"
            f" {recovered.last_batch_id} was written since. Versions only go up: if its rows are"
            " not in the topic, write them as version"
            f" {(recovered.last_batch_id or 0) + 1} or later"
        )


def _check_topic(options: BatchWriteOptions, logged: LoggedBatch) -> None:
    topics = sorted({p.topic for record in logged.records for p in record.partitions})
    if options.topic is not None and topics and options.topic not in topics:
        raise OperatorError(
            f"version {options.version} of txnAppId '{options.application}' was written to"
            f" {', '.join(topics)} and not to '{options.topic}', where it would be taken for"
            " written: give each topic a txnAppId of its own"
        )
