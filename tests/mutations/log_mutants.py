"""The log: its guard, its disk, what is kept of it."""

from tests.mutations.mutant import POWER_CUT, REAL_LOG, mutant

LOG_MUTANTS = (
    # The guard in Delta
    mutant(
        "the guard in Delta compares with a snapshot that is always new",
        "log/delta.py",
        "        _write(\n",
        "        self._table.update_incremental()\n        _write(\n",
    ),
    mutant(
        "no application transaction in the commit",
        "log/delta.py",
        "app_transactions=wanted.transactions, ",
        "",
        tests=REAL_LOG,
    ),
    mutant(
        "no look at the query's tail before the commit",
        "log/delta.py",
        "if not seen.is_current(self._table):",
        "if False:",
        tests=REAL_LOG,
    ),
    mutant(
        "no look at the query's tail after the commit",
        "log/delta.py",
        "        if not written.is_current(self._table):\n            return False\n",
        tests=REAL_LOG,
    ),
    mutant(
        "the error of a commit is believed",
        "log/delta.py",
        "            if self._settle(seen, wanted, records):\n                return\n",
        "            break\n",
        tests=REAL_LOG,
    ),
    mutant(
        "a decision is not synced to the log's disk",
        "log/delta.py",
        "        self._store.sync(self._table.version())\n        self._table.update",
        "        self._table.update",
    ),
    mutant(
        "a decision that reported a failure is not synced",
        "log/delta.py",
        "                self._store.sync(self._table.version())\n",
    ),
    mutant(
        "a decision is synced without the commits below it",
        "log/files.py",
        "after=self._synced_version,",
        "after=version - 1,",
        tests=POWER_CUT,
    ),
    mutant(
        "the way to a new log is not synced",
        "log/files.py",
        "                durable.sync_path(self._folder)\n",
        "                pass\n",
        tests=POWER_CUT,
    ),
    mutant(
        "a checkpoint is synced before what it names",
        "log/retention.py",
        "                    store.sync(table.version())\n",
        tests=POWER_CUT,
    ),
    mutant(
        "data files that others are about to commit are deleted",
        "log/retention.py",
        "        retention_hours=VACUUM_HOURS,\n",
        "        retention_hours=0,\n",
        tests="tests/integration/test_log_vacuum.py",
    ),
    mutant(
        "data files that were committed since are deleted",
        "log/retention.py",
        "    table.update_incremental()\n    table.vacuum(\n",
        "    table.vacuum(\n",
        tests="tests/integration/test_log_vacuum.py",
    ),
    mutant(
        "an aborted batch dies with its query",
        "log/expiry.py",
        "            row.state is TransactionState.COMPLETE_ABORT for row",
        "            False for row",
        tests="tests/unit/log/test_expiry.py",
    ),
    mutant(
        "an intent to abort may follow a commit in the log",
        "log/guard.py",
        "        if record.state.is_pending:\n",
        "        if False:\n",
        tests="tests/unit/log/test_guard.py",
    ),
)
