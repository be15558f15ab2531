"""Planner: recovery, and a batch that runs again."""

from tests.mutations.mutant import OTHER_CLUSTER, VERSIONS, Mutant, mutant

_COMMITTED_BATCH = "        if batch_id < self.last_batch_id or self.rows_complete:\n"
_WRITE_ONCE = "return Action.SKIP if partition in self.committed_partitions else Action.WRITE"
_LOOK = "found |= fates(config, looked, deadline)"
_GROUP_LOOK = "= offsets_fate(config, r.group_id, r.source_offsets, deadline)"

RECOVERY_MUTANTS = (
    # Recovery
    mutant(
        "recovery completes a decision that may not be on the disk",
        "recovery/recover.py",
        "    if batch.pending:\n        log.sync()\n",
        tests="tests/simulation/test_power_cut.py",
    ),
    mutant(
        "recovery commits what was to be aborted",
        "recovery/recover.py",
        "        [r for r in batch.decided if",
        "        [r for r in batch.pending if",
        tests="tests/simulation/test_stop_in_commit.py",
    ),
    mutant(
        "a log that does not know the query is believed",
        "recovery/lost_log.py",
        "    committed = _unknown_commit(session, deadline)\n",
        "    committed = None\n",
        tests="tests/integration/test_look_for_a_lost_log.py",
    ),
    mutant(
        "a partition without a leader is not waited for",
        "endtxn/commit.py",
        "    return session.cluster.coordinator.await_leaders(written, ids, deadline)\n",
        "    return {}\n",
        tests="tests/integration/test_no_leader.py",
    ),
    mutant(
        "a follower in the client's rack is asked what became of a batch",
        "kafka/consume/offset_probe.py",
        '                "client.rack": "",\n',
        tests="tests/integration/test_rack.py",
    ),
    mutant(
        "another cluster is asked what became of a batch",
        "endtxn/commit.py",
        "    check_decided_here(session, records, deadline)\n",
        tests="tests/unit/endtxn/test_commit.py",
    ),
    mutant(
        "a query with an unfinished batch is started on another cluster",
        "recovery/ownership.py",
        "        check_decided_here(self.session, self._unfinished(), deadline)\n",
        tests=OTHER_CLUSTER,
    ),
    mutant(
        "a torn batch does not tie a query to its cluster",
        "recovery/ownership.py",
        "        return last.decided if last.is_whole else last.committed\n",
        "        return last.decided\n",
        tests=OTHER_CLUSTER,
    ),
    mutant(
        "a start with other options is forgotten without a word",
        "recovery/ownership.py",
        "        if code == self._accepted or self.accepts(code, deadline):\n",
        "        if True:\n",
        tests=OTHER_CLUSTER,
    ),
    mutant(
        "a version is taken for written on another cluster",
        "sink/driver/version.py",
        "    check_decided_here(session, logged.records, deadline)\n",
        tests=OTHER_CLUSTER,
    ),
    mutant(
        "a version is taken for written to another topic",
        "sink/driver/version.py",
        "    _check_topic(options, logged)\n",
        tests=VERSIONS,
    ),
    mutant(
        "a version that is torn is left behind",
        "sink/driver/version.py",
        "        if not tail.complete and tail.committed_partitions:\n",
        "        if False:\n",
        tests=VERSIONS,
    ),
    mutant(
        "abort() of an attempt that recovery has judged fences the new driver",
        "sink/driver/abort.py",
        "if not decided.isdisjoint(failed.identities) or ",
        "if ",
        tests="tests/simulation/test_late_abort.py",
    ),
    mutant(
        "a commit file that Spark has removed is missed",
        "checkpoint/checkpoint.py",
        "        return any(int(name) > batch_id ",
        "        return any(False ",
        tests="tests/unit/checkpoint/test_checkpoint.py",
    ),
    mutant(
        "a right that was taken away is an end",
        "endtxn/commit.py",
        "    _raise_if_not_allowed(records[0], answers)\n",
        tests="tests/unit/endtxn/test_commit.py",
    ),
    mutant(
        "no recovery",
        "recovery/recover.py",
        "if last_batch_id is None or session.has_commit(last_batch_id):",
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
        "endtxn/commit.py",
        "found |= cluster.fates(looked, deadline)",
        "found |= {name: Fate.COMMITTED for name, _ in looked}",
    ),
    mutant(
        "refused is taken for aborted",
        "endtxn/commit.py",
        "found |= cluster.fates(looked, deadline)",
        "found |= {name: Fate.ABORTED for name, _ in looked}",
    ),
    Mutant(
        "unknown is taken for committed",
        "spark_eos/endtxn/commit.py",
        (
            ("if a.outcome is Outcome.DONE}", "if a.outcome is not Outcome.REFUSED}"),
            ("    if unknown:", "    if False:"),
        ),
    ),
    mutant(
        "offsets that were refused are taken for committed",
        "endtxn/commit.py",
        "= cluster.groups.offsets_fate(r.group_id, r.source_offsets, deadline)",
        "= Fate.COMMITTED",
    ),
    mutant(
        "offsets that were refused are taken for aborted",
        "endtxn/commit.py",
        "= cluster.groups.offsets_fate(r.group_id, r.source_offsets, deadline)",
        "= Fate.ABORTED",
    ),
    mutant("orphans stay open", "endtxn/fence.py", "    if orphans:\n", "    if False:\n"),
    mutant(
        "orphans are ended before the decided ones are complete",
        "sink/driver/plan.py",
        "    tail = recover(",
        "    abort_orphans(session, deadline)\n    tail = recover(",
    ),
    # A batch that runs again
    mutant(
        "a committed batch is written again",
        "protocol/transactions/replay.py",
        _COMMITTED_BATCH + "            return Action.SKIP\n",
    ),
    mutant(
        "a torn batch is written whole",
        "protocol/transactions/replay.py",
        _WRITE_ONCE,
        "return Action.WRITE",
    ),
    mutant(
        "a torn batch is skipped whole",
        "protocol/transactions/replay.py",
        _WRITE_ONCE,
        "return Action.SKIP",
    ),
    mutant(
        "the rows of a torn batch are not compared",
        "sink/driver/decide.py",
        "    if logged is not None and not tail.rows_complete:\n",
        "    if False:\n",
    ),
    mutant(
        "rows are written again where only the offsets are lost",
        "protocol/transactions/replay.py",
        "or self.rows_complete:\n",
        "or self.complete:\n",
    ),
    mutant(
        "the digest of the rows is not compared",
        "protocol/transactions/replay.py",
        "            or replayed.digest != record.digest\n",
    ),
    mutant(
        "the number of partitions is not compared",
        "protocol/transactions/replay.py",
        "            record.sink_partitions != len(results)\n            or replayed is None",
        "            replayed is None",
    ),
    mutant(
        "the offsets of a group are asked for while orphans are open",
        "sink/driver/plan.py",
        "    if is_first or _may_have_orphans(memory, tail, now):\n",
        "    if is_first and tail.complete:\n"
        "        restore_group_offsets(session, deadline)\n"
        "    if is_first or _may_have_orphans(memory, tail, now):\n",
        tests="tests/simulation/test_every_crash_point.py",
    ),
    mutant(
        "the source offsets of the batch are not compared",
        "protocol/transactions/replay.py",
        "if not all(is_same_input(record, input_digest, older_input_digest)"
        " for record in committed):",
        "if False:",
    ),
    mutant(
        "the files behind an offset of a file source are not compared",
        "checkpoint/checkpoint.py",
        '"\\n".join([str(watermark), *sources, *files])',
        '"\\n".join([str(watermark), *sources])',
        tests="tests/unit/checkpoint/test_checkpoint.py",
    ),
)
