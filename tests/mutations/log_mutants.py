"""The log: its guard, its disk, what is kept of it."""

from tests.mutations.mutant import (
    POWER_CUT,
    REAL_LOG,
    always,
    argument,
    assigned,
    before,
    call,
    instead,
    mutant,
    never,
    without,
)

BROKEN_LOG = "tests/integration/test_log_broken.py"
NESTING = "tests/integration/test_log_nesting.py"
VACUUM = "tests/integration/test_log_vacuum.py"

LOG_MUTANTS = (
    # The guard in Delta
    mutant(
        "the guard in Delta compares with a snapshot that is always new",
        "TransactionLog._commit",
        before("commit", "self._table.refresh()"),
    ),
    mutant(
        "no application transaction in the commit",
        "TransactionLog._commit",
        argument("commit", 1, "{}"),
        tests=REAL_LOG,
    ),
    mutant(
        "no look at the query's tail before the commit",
        "TransactionLog.append",
        never("is_current"),
        tests=REAL_LOG,
    ),
    mutant(
        "no look at the query's tail after the commit",
        "TransactionLog._commit",
        never("is_current"),
        tests=REAL_LOG,
    ),
    mutant(
        "the error of a commit is believed",
        "TransactionLog.append",
        before("_settle", "break"),
        tests=REAL_LOG,
    ),
    mutant(
        "a decision is not synced to the log's disk",
        "TransactionLog._commit",
        without("sync"),
    ),
    mutant(
        "a decision that reported a failure is not synced",
        "TransactionLog._settle",
        without("sync"),
    ),
    mutant(
        "a decision is synced without the commits below it",
        "FileStore.sync",
        argument("sync_commits", "after", "version - 1"),
        tests=POWER_CUT,
    ),
    mutant(
        "the way to a new log is not synced",
        "FileStore.sync",
        without("sync_path"),
        tests=POWER_CUT,
    ),
    mutant(
        "a checkpoint is synced before what it names",
        "retention.checkpoint",
        without("sync"),
        tests=POWER_CUT,
    ),
    # Clean-up
    mutant(
        "data files that others are about to commit are deleted",
        "vacuum._unneeded",
        instead("old.after - _WAIT", "old.after"),
        tests=VACUUM,
    ),
    mutant(
        "data files that were committed since are deleted",
        "vacuum.vacuum",
        without("refresh"),
        tests=VACUUM,
    ),
    mutant(
        "data files are deleted as soon as they are replaced",
        "vacuum._unneeded",
        assigned("needed", "newest.files"),
        tests=VACUUM,
    ),
    mutant(
        "data files are judged by a past snapshot that is too young",
        "vacuum.vacuum",
        assigned("old", "[*past, newest]"),
        tests=VACUUM,
    ),
    mutant(
        "files in the log's folder that the log did not write are deleted",
        "files.is_data_file",
        instead("_DATA_FILE.fullmatch(name) is not None", "not name.startswith('_')"),
        tests=VACUUM,
    ),
    mutant(
        "a past snapshot of a driver that was frozen counts as older than it is",
        "vacuum.vacuum",
        argument("PastSnapshot", "before", "after"),
        tests=VACUUM,
    ),
    mutant(
        "a past snapshot of a driver that was frozen counts as newer than it is",
        "vacuum._unneeded",
        instead("old.after", "old.before"),
        tests=VACUUM,
    ),
    mutant(
        "a backlog of data files is deleted while one batch waits",
        "vacuum._delete",
        never("monotonic"),
        tests=VACUUM,
    ),
    mutant(
        "a backlog of data files that is left counts as deleted",
        "vacuum._delete",
        instead("False", "True"),
        tests=VACUUM,
    ),
    mutant(
        "a clock that was ahead stops clean-up",
        "vacuum.vacuum",
        instead("s.before <= now", "True"),
        tests=VACUUM,
    ),
    # Nesting
    mutant(
        "a log inside of a table is opened",
        "nesting.check_above",
        never("is_table"),
        tests=NESTING,
    ),
    mutant(
        "a log inside of another query's checkpoint is opened",
        "nesting.check_above",
        never("is_checkpoint"),
        tests=NESTING,
    ),
    mutant(
        "a log inside of its query's own checkpoint is refused",
        "nesting.check_above",
        always("own_checkpoint"),
        tests=NESTING,
    ),
    mutant(
        "the sink opens the log without its checkpoint",
        "Session.open_log",
        argument("open", "checkpoint", None),
        tests="tests/integration/test_commit_and_abort.py",
    ),
    mutant(
        "a log that contains a table is opened",
        "nesting.check_below",
        never("has_table"),
        tests=NESTING,
    ),
    mutant(
        "a log that contains a checkpoint is opened",
        "nesting.check_below",
        never("has_checkpoint"),
        tests=NESTING,
    ),
    mutant(
        "only the top of the log's folder is searched for tables and checkpoints",
        "nesting.check_below",
        without("extend"),
        tests=NESTING,
    ),
    mutant(
        "the commits of the log are listed when it is opened",
        "nesting.check_below",
        instead("entries.folders - own", "entries.folders"),
        tests=NESTING,
    ),
    mutant(
        "a nested log is created before it is refused",
        "TransactionLog.open",
        before("check_nesting", "LogTable.open(location, storage_options or {})"),
        tests=NESTING,
    ),
    mutant(
        "a log is not checked for nesting",
        "TransactionLog.open",
        without("check_nesting"),
        tests=NESTING,
    ),
    mutant(
        "a reader is checked for nesting",
        "TransactionLog.existing",
        call("cls", "cls.open(location, storage_options)"),
        tests=NESTING,
    ),
    mutant(
        "folders are compared as they are written",
        "Place.of",
        call("realpath", "uri"),
        tests=NESTING,
    ),
    mutant(
        "a table on an object store is known by its first commit only",
        "_log.folders",
        assigned("_FILES_OF_A_TABLE", "(f'{COMMITS}/{0:020}.json',)"),
        tests=NESTING,
    ),
    mutant(
        "a table on an object store is known by its checkpoint only",
        "_log.folders",
        assigned("_FILES_OF_A_TABLE", "(f'{COMMITS}/_last_checkpoint',)"),
        tests=NESTING,
    ),
    mutant(
        "links in the log's folder are followed when it is opened",
        "DiskFolders.entries",
        argument("is_dir", "follow_symlinks", None),
        tests=NESTING,
    ),
    mutant(
        "a log is refused where the folders above it may not be read",
        "folders._unless_denied",
        always("any"),
        tests=NESTING,
    ),
    mutant(
        "a store that does not answer passes for one without nesting",
        "folders._unless_denied",
        never("any"),
        tests=NESTING,
    ),
    mutant(
        "an aborted batch dies with its query",
        "expiry._may_die",
        instead("row.state is TransactionState.COMPLETE_ABORT", "False"),
        tests="tests/unit/log/test_expiry.py",
    ),
    mutant(
        "an intent to abort may follow a commit in the log",
        "guard._check_step",
        never("is_pending"),
        tests="tests/unit/log/test_guard.py",
    ),
    mutant(
        "a log that has lost its commits is taken for a new one",
        "location.open_table",
        without("_check_empty"),
        tests=BROKEN_LOG,
    ),
    mutant(
        "a log to which a person has added a column cannot be written any more",
        "LogTable.commit",
        argument("write_deltalake", "schema_mode", "None"),
        tests=BROKEN_LOG,
    ),
)
