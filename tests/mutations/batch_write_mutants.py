"""Batch writes: a version that comes back, and a write without a transaction log."""

from tests.mutations.mutant import SAME_ROWS, VERSIONS, mutant

_WITHOUT_LOG = "tests/simulation/test_batch_write_without_log.py"

BATCH_WRITE_MUTANTS = (
    # A version that comes back
    mutant(
        "the rows of a version that is skipped are not compared",
        "sink/driver/commit.py",
        "            check_written_rows(session, batch.results)\n",
        "            pass\n",
        tests=VERSIONS,
    ),
    mutant(
        "only the number of a version's rows is compared",
        "protocol/transactions/version.py",
        "    if written is not None and now != written:\n",
        "    if written is not None and now.records != written.records:\n",
        tests=SAME_ROWS,
    ),
    mutant(
        "a version that expired from the log is skipped with its rows",
        "protocol/transactions/version.py",
        "    if written is None and now.records:\n",
        "    if False:\n",
        tests=VERSIONS,
    ),
    mutant(
        "some tombstones of an older version are taken for all of its rows",
        "protocol/transactions/version.py",
        "    if is_dead and not is_last and len(rows) < partitions:\n",
        "    if False:\n",
        tests=SAME_ROWS,
    ),
    mutant(
        "rows that an id lost count as written",
        "protocol/transactions/version.py",
        "for record in rows if record.partitions)",
        "for record in rows)",
        tests=SAME_ROWS,
    ),
    mutant(
        "digests of different versions are compared",
        "protocol/transactions/digest.py",
        "    if version.isdecimal() and int(version) != VERSION:\n",
        "    if False:\n",
        tests="tests/unit/protocol/test_digest.py",
    ),
    mutant(
        "a log without a txnAppId is accepted",
        "options/sink.py",
        "    if log is not None and app_id is None:\n",
        "    if False:\n",
        tests="tests/unit/options/test_batch_write_options.py",
    ),
    mutant(
        "the application of a stream does not contain the id of its query",
        "foreach_batch.py",
        '    return f"{name}:{query_id}"\n',
        "    return name\n",
        tests="tests/unit/test_foreach_batch.py",
    ),
    # A write without a transaction log
    mutant(
        "abort() of a write without a log ends what may be half committed",
        "sink/driver/abort.py",
        "    if not failed.may_be_committing:\n",
        "    if True:\n",
        tests="tests/integration/test_commit_without_log.py",
    ),
    mutant(
        "abort() of a write without a log ends nothing where a task failed",
        "sink/driver/abort.py",
        "    if not failed.may_be_committing:\n",
        "    if False:\n",
        tests=_WITHOUT_LOG,
    ),
    mutant(
        "a write without a log that cannot be committed stays open",
        "sink/driver/commit_without_log.py",
        "        _abort(session, identities)\n        if",
        "        if",
        tests=_WITHOUT_LOG,
    ),
    mutant(
        "a write without a log aborts after its first commit request",
        "sink/driver/commit_without_log.py",
        "    _raise_unless_committed(session.options, transactions, answers)\n",
        "    _abort(session, identities)\n"
        "    _raise_unless_committed(session.options, transactions, answers)\n",
        tests=_WITHOUT_LOG,
    ),
    mutant(
        "a write without a log does not check its transactions",
        "sink/driver/commit_without_log.py",
        "        check(session, batch, messages[0].planned_at, deadline)\n",
        tests=_WITHOUT_LOG,
    ),
    mutant(
        "a write without a log does not wait for leaders",
        "sink/driver/decide.py",
        "    check_same_topics(batch, coordinator.await_leaders("
        "batch.written, batch.topic_ids, deadline))\n",
        tests="tests/unit/sink/test_commit_without_log.py",
    ),
    mutant(
        "a commit of unknown outcome is taken for committed without a log",
        "sink/driver/commit_without_log.py",
        "    if count[Outcome.DONE] == len(transactions):\n",
        "    if not count[Outcome.REFUSED]:\n",
        tests=_WITHOUT_LOG,
    ),
    mutant(
        "a commit of unknown outcome is taken for nothing visible",
        "sink/driver/commit_without_log.py",
        "    if count[Outcome.REFUSED] == len(transactions):\n",
        "    if not count[Outcome.DONE]:\n",
        tests=_WITHOUT_LOG,
    ),
    mutant(
        "rows that a person took out of the log are taken for expired",
        "recovery/recover.py",
        " and not log.has_lost_rows(query_id):",
        ":",
        tests="tests/integration/test_application_log.py",
    ),
    # Micro-batches of the jobs
    mutant(
        "a Delta table's versions are taken for written whatever was read",
        "job/delta.py",
        "        if batch_id <= max(written, default=-1) and written.get(batch_id) != read:\n",
        "        if False:\n",
        tests="tests/spark/test_delta_appends.py",
    ),
    mutant(
        "a job that is renamed is another application",
        "checkpoint/checkpoint.py",
        "        return kept or value\n",
        "        return value\n",
        tests="tests/unit/checkpoint/test_checkpoint.py",
    ),
)
