"""Batch writes: a version that comes back, and a write without a transaction log."""

from tests.mutations.mutant import (
    SAME_ROWS,
    VERSIONS,
    always,
    before,
    instead,
    mutant,
    never,
    returns,
    without,
)

_WITHOUT_LOG = "tests/simulation/test_batch_write_without_log.py"

BATCH_WRITE_MUTANTS = (
    # A version that comes back
    mutant(
        "the rows of a version that is skipped are not compared",
        "commit.commit",
        without("check_written_rows"),
        tests=VERSIONS,
    ),
    mutant(
        "only the number of a version's rows is compared",
        "version.check_same_rows",
        instead("now != written", "now.records != written.records"),
        tests=SAME_ROWS,
    ),
    mutant(
        "a version that expired from the log is skipped with its rows",
        "version.check_same_rows",
        never("written", "now", "records"),
        tests=VERSIONS,
    ),
    mutant(
        "some tombstones of an older version are taken for all of its rows",
        "version._written_rows",
        never("is_dead"),
        tests=SAME_ROWS,
    ),
    mutant(
        "rows that an id lost count as written",
        "version._written_rows",
        instead("record.partitions", "True"),
        tests=SAME_ROWS,
    ),
    mutant(
        "digests of different versions are compared",
        "digest.parse_digest",
        never("isdecimal"),
        tests="tests/unit/protocol/test_digest.py",
    ),
    mutant(
        "a log without a txnAppId is accepted",
        "write._check_application",
        instead("TRANSACTION_LOG in given and TXN_APP_ID not in given", "False"),
        tests="tests/unit/options/test_batch_write_options.py",
    ),
    mutant(
        "the application of a stream does not contain the id of its query",
        "_foreach_batch.txn_app_id",
        returns("name"),
        tests="tests/unit/test_foreach_batch.py",
    ),
    # A write without a transaction log
    mutant(
        "abort() of a write without a log ends what may be half committed",
        "abort._end_unlogged",
        always("may_be_committing"),
        tests="tests/integration/test_commit_without_log.py",
    ),
    mutant(
        "abort() of a write without a log ends nothing where a task failed",
        "abort._end_unlogged",
        never("may_be_committing"),
        tests=_WITHOUT_LOG,
    ),
    mutant(
        "a write without a log that cannot be committed stays open",
        "commit_without_log.commit_without_log",
        without("_abort"),
        tests=_WITHOUT_LOG,
    ),
    mutant(
        "a write without a log aborts after its first commit request",
        "commit_without_log.commit_without_log",
        before("_raise_unless_committed", "_abort(session, identities)"),
        tests=_WITHOUT_LOG,
    ),
    mutant(
        "a write without a log does not check its transactions",
        "commit_without_log.commit_without_log",
        without("check"),
        tests=_WITHOUT_LOG,
    ),
    mutant(
        "a write without a log does not wait for leaders",
        "decide.check_topics",
        without("check_same_topics"),
        tests="tests/unit/sink/test_commit_without_log.py",
    ),
    mutant(
        "a commit of unknown outcome is taken for committed without a log",
        "commit_without_log._raise_unless_committed",
        instead("count[Outcome.DONE] == len(transactions)", "not count[Outcome.REFUSED]"),
        tests=_WITHOUT_LOG,
    ),
    mutant(
        "a commit of unknown outcome is taken for nothing visible",
        "commit_without_log._raise_unless_committed",
        instead("count[Outcome.REFUSED] == len(transactions)", "not count[Outcome.DONE]"),
        tests=_WITHOUT_LOG,
    ),
    mutant(
        "rows that a person took out of the log are taken for expired",
        "recover.recover",
        always("has_lost_rows"),
        tests="tests/integration/test_application_log.py",
    ),
    # Micro-batches of the jobs
    mutant(
        "a Delta table's versions are taken for written whatever was read",
        "DeltaAppends.append",
        never("written", "read"),
        tests="tests/spark/test_delta_appends.py",
    ),
    mutant(
        "a job that is renamed is another application",
        "Checkpoint.keep",
        instead("kept or value", "value"),
        tests="tests/unit/checkpoint/test_checkpoint.py",
    ),
)
