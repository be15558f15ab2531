"""Lines of the protocol, each with what is left when it is taken away.

A mutant that no test notices is a step that nobody guards.
"""

from dataclasses import dataclass

SIMULATION = "tests/simulation"
REAL_LOG = "tests/integration/test_log_append.py"
POWER_CUT = "tests/integration/test_log_power_cut.py"
OTHER_CLUSTER = "tests/integration/test_other_cluster.py"


@dataclass(frozen=True)
class Mutant:
    """`changes` are pairs of old and new text. `tests` is where it must be noticed."""

    name: str
    file: str
    changes: tuple[tuple[str, str], ...]
    tests: str = SIMULATION

    def apply(self, text):
        for old, new in self.changes:
            assert text.count(old) == 1, f"{self.name}: not once in {self.file}: {old}"
            text = text.replace(old, new)
        return text


def mutant(name, file, old, new="", **others):
    return Mutant(name, f"spark_eos/{file}", ((old, new),), **others)


_COMMITTED_BATCH = "        if batch_id < self.last_batch_id or self.complete:\n"
_WRITE_ONCE = "return Action.SKIP if partition in self.committed_partitions else Action.WRITE"
_LOOK = "found |= fates(config, looked, deadline)"
_GROUP_LOOK = "= offsets_fate(config, r.group_id, r.source_offsets, deadline)"
_OFFSETS = "        batch = replace(batch, offsets=offsets)\n"

MUTANTS = (
    # The decision
    mutant(
        "no check of the prepared transactions before the decision",
        "sink/decide.py",
        "    check_prepared(\n",
        "    (lambda *a, **k: None)(\n",
    ),
    mutant(
        "a coordinator that answers from the past is believed",
        "sink/decide.py",
        "    while is_from_the_past(batch, found) and pauses.wait():\n",
        "    while False:\n",
        tests="tests/unit/sink/test_decide.py",
    ),
    mutant(
        "records at unknown offsets are decided on",
        "kafka/delivery.py",
        "        if any(p.first_offset < 0 or p.last_offset < 0 for p in written):\n",
        "        if False:\n",
        tests="tests/unit/kafka/test_delivery.py",
    ),
    mutant(
        "EndTxn before the decision",
        "sink/decide.py",
        '    failpoint("checked")\n',
        "    coordinator.end([r.identity for r in decided], committed=True, deadline=deadline)\n",
    ),
    mutant(
        "the planner's view of the log is not compared with the commit worker's",
        "sink/decide.py",
        "if log.last_batch_id(batch.query_id) != tail.last_batch_id:",
        "if False:",
    ),
    mutant(
        "an empty partition leaves no row",
        "protocol/decision.py",
        "    return (*rows, *emptied)\n",
        "    return tuple(rows)\n",
    ),
    mutant(
        "a batch that has no rows any more leaves no row",
        "sink/decide.py",
        "    if decided or any(row.state is TransactionState.EMPTY for row in rows):\n",
        "    if decided:\n",
    ),
    mutant(
        "an older batch that comes back is not compared",
        "sink/decide.py",
        "    if batch.batch_id < tail.last_batch_id or tail.complete:\n",
        "    if batch.batch_id < tail.last_batch_id:\n        return True\n    if tail.complete:\n",
    ),
    mutant(
        "the end of the batch before is not logged",
        "protocol/decision.py",
        "        return (*rows, *completion_rows(last, at))\n",
        "        return tuple(rows)\n",
    ),
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
        "            self._table = DeltaTable("
        "table_uri(self.location), storage_options=self._options)\n",
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
    # Complete
    mutant(
        "an aborted transaction is taken for complete",
        "sink/complete.py",
        "        if fate is Fate.COMMITTED:\n",
        "        if fate in (Fate.COMMITTED, Fate.ABORTED):\n",
    ),
    # Abort
    mutant(
        "abort() does not look at the log",
        "sink/abort.py",
        "    if complete_if_decided("
        "query_id, batch_id, log, coordinator, options.client, deadline):",
        "    if False:",
    ),
    mutant(
        "abort() does not fence the partitions without a message",
        "sink/abort.py",
        "    fence_silent(options, query_id, messages, sink_partitions, coordinator, deadline)\n",
    ),
    mutant(
        "abort() fences once, and does not watch",
        "sink/abort.py",
        "        if watch.passed:\n            return\n",
        "        return\n",
    ),
    mutant(
        "abort() leaves the offsets transaction open",
        "sink/abort.py",
        "        _fence_open("
        "str(offsets_id), coordinator, options.transaction_timeout_ms, deadline)\n",
        "        pass\n",
    ),
    mutant(
        "abort() does not end what the messages name",
        "sink/abort.py",
        "    if not identities:\n",
        "    if True:\n",
    ),
    mutant(
        "abort() of an overtaken driver fences the new one",
        "sink/abort.py",
        "if last_batch_id is not None and last_batch_id > batch_id:",
        "if False:",
    ),
    mutant(
        "abort() completes a decision that may not be on the disk",
        "sink/abort.py",
        "    if decided:\n        log.sync()\n",
    ),
    # Recovery
    mutant(
        "recovery completes a decision that may not be on the disk",
        "recovery/recover.py",
        "    if batch.pending:\n        log.sync()\n",
    ),
    mutant(
        "a log that does not know the query is believed",
        "recovery/lost_log.py",
        "    if tail.last_batch_id is not None:\n",
        "    if True:\n",
    ),
    mutant(
        "another cluster is asked what became of a batch",
        "recovery/survey.py",
        "    check_decided_here(records, ",
        "    (lambda *a, **k: None)(records, ",
        tests=OTHER_CLUSTER,
    ),
    mutant(
        "a torn batch is written on on another cluster",
        "recovery/recover.py",
        "    if plan.verdict is Verdict.SOME_COMMITTED:\n",
        "    if False:\n",
        tests=OTHER_CLUSTER,
    ),
    mutant(
        "a version is taken for written on another cluster",
        "sink/batch_commit.py",
        "    if tail.complete and tail.last_batch_id == options.version:\n",
        "    if False:\n",
        tests=OTHER_CLUSTER,
    ),
    mutant(
        "no recovery",
        "recovery/recover.py",
        "if last_batch_id is None or (checkpoint and checkpoint.has_commit(last_batch_id)):",
        "if True:",
    ),
    mutant(
        "recovery logs nothing",
        "recovery/recover.py",
        "    if rows:\n        log.append",
        "    if False:\n        log.append",
    ),
    mutant(
        "refused is taken for committed",
        "recovery/survey.py",
        _LOOK,
        "found |= {name: Fate.COMMITTED for name, _ in looked}",
    ),
    mutant(
        "refused is taken for aborted",
        "recovery/survey.py",
        _LOOK,
        "found |= {name: Fate.ABORTED for name, _ in looked}",
    ),
    Mutant(
        "unknown is taken for committed",
        "spark_eos/recovery/survey.py",
        (
            ("if a.outcome is Outcome.DONE}", "if a.outcome is not Outcome.REFUSED}"),
            ("    if unknown:", "    if False:"),
        ),
    ),
    mutant(
        "offsets that were refused are taken for committed",
        "recovery/survey.py",
        _GROUP_LOOK,
        "= Fate.COMMITTED",
    ),
    mutant(
        "offsets that were refused are taken for aborted",
        "recovery/survey.py",
        _GROUP_LOOK,
        "= Fate.ABORTED",
    ),
    mutant("orphans stay open", "recovery/orphans.py", "    if orphans:\n", "    if False:\n"),
    mutant(
        "orphans are ended before the decided ones are complete",
        "sink/plan.py",
        "    tail = recover(\n",
        "    abort_orphans(query_id, coordinator=coordinator,"
        " timeout_ms=options.transaction_timeout_ms, deadline=deadline)\n"
        "    tail = recover(\n",
    ),
    # A batch that runs again
    mutant(
        "a committed batch is written again",
        "protocol/replay.py",
        _COMMITTED_BATCH + "            return Action.SKIP\n",
    ),
    mutant(
        "a torn batch is written whole", "protocol/replay.py", _WRITE_ONCE, "return Action.WRITE"
    ),
    mutant(
        "a torn batch is skipped whole", "protocol/replay.py", _WRITE_ONCE, "return Action.SKIP"
    ),
    mutant(
        "the rows of a torn batch are not compared",
        "sink/decide.py",
        "    if logged is not None and tail.committed_partitions:\n",
        "    if False:\n",
    ),
    mutant(
        "the digest of the rows is not compared",
        "protocol/replay.py",
        "            or replayed.digest != record.digest\n",
    ),
    mutant(
        "the number of partitions is not compared",
        "protocol/replay.py",
        "            record.sink_partitions != len(results)\n            or replayed is None",
        "            replayed is None",
    ),
    mutant(
        "the source offsets of the batch are not compared",
        "protocol/replay.py",
        "if any(record.input_digest != input_digest for record in committed):",
        "if False:",
    ),
    # The offsets of the source
    mutant(
        "the offsets are committed on their own",
        "sink/commit.py",
        _OFFSETS,
        "        if offsets is not None:\n"
        "            coordinator_client(options.client).end("
        "[offsets.identity], committed=True, deadline=deadline)\n",
    ),
    mutant("the offsets are not in the decision", "sink/commit.py", _OFFSETS),
    mutant(
        "offsets that are committed are moved again",
        "protocol/replay.py",
        "not self.complete and not self.committed_offsets)",
        "not self.complete)",
    ),
    mutant(
        "the offsets of a torn batch are not moved",
        "protocol/replay.py",
        "            or (batch_id == self.last_batch_id and not self.complete"
        " and not self.committed_offsets)\n",
    ),
)
