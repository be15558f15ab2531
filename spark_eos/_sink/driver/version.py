"""Planner and commit worker. Batch writes: may a version be written, or is it written already?

A version is compared before it is skipped, because a wrong skip is a silent loss. The planner
compares cluster and topic, the commit worker the rows. See docs/design/batch_writes.md.
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
    """Planner worker. Raise if the version can neither be written nor be skipped."""
    options, last = _options(session), recovered.last_batch_id
    if last is None:
        return
    fields = {"application": options.application, "version": options.version, "last": last}
    if options.version > last:
        if not recovered.complete and recovered.committed_partitions:
            raise OperatorError(
                "version {last} of txnAppId '{application}' is committed in part. Write it again,"
                " from the same rows, before version {version}",
                **fields,
            )
        return
    logged = session.log.batch(options.query_id, options.version)
    if logged is not None and not logged.is_aborted:
        check_decided_here(session, logged.records, deadline)
        _check_topic(options, logged)
    elif options.version < last:  # the last version may have expired, and then it is complete
        why = "was left out or has expired (the log has no record of it)"
        raise OperatorError(
            "version {version} of txnAppId '{application}' {why}, and version {last} was written"
            " since. Versions only go up. If the rows are not in the topic, write them as version"
            " {next} or later",
            why=why if logged is None else "was aborted",
            next=last + 1,
            **fields,
        )


def check_written_rows(session: Session, results: Sequence[TaskResult]) -> None:
    """Commit worker. Raise unless a skipped version has the rows that were written."""
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


def _check_topic(options: BatchWriteOptions, logged: LoggedBatch) -> None:
    topics = sorted({p.topic for record in logged.records for p in record.partitions})
    if options.topic is not None and topics and options.topic not in topics:
        raise OperatorError(
            "version {version} of txnAppId '{application}' was written to {written} and not to"
            " '{topic}'. It would be skipped there: give each topic a txnAppId of its own",
            version=options.version,
            application=options.application,
            written=", ".join(topics),
            topic=options.topic,
        )
