"""Commit worker: decide, complete, abort, and the offsets of the source."""

from tests.mutations.mutant import Mutant, mutant

_OFFSETS = "        batch = replace(batch, offsets=prepared)\n"

COMMIT_MUTANTS = (
    # The decision
    mutant(
        "no check of the prepared transactions before the decision",
        "sink/driver/decide.py",
        "    check_prepared(\n",
        "    (lambda *a, **k: None)(\n",
    ),
    mutant(
        "a coordinator that answers from the past is believed",
        "sink/driver/decide.py",
        "        ask_again = is_stale(batch, found) or (",
        "        ask_again = False and (",
        tests="tests/unit/sink/test_decide.py",
    ),
    mutant(
        "records at unknown offsets are decided on",
        "kafka/produce/delivery.py",
        "        if any(p.first_offset < 0 or p.last_offset < 0 for p in written):\n",
        "        if False:\n",
        tests="tests/unit/kafka/test_delivery.py",
    ),
    mutant(
        "EndTxn before the decision",
        "sink/driver/decide.py",
        '    failpoint("checked")\n',
        "    coordinator.end([r.identity for r in decided], committed=True, deadline=deadline)\n"
        '    failpoint("checked")\n',
    ),
    mutant(
        "the planner's view of the log is not compared with the commit worker's",
        "sink/driver/decide.py",
        "    if now != (tail.newest_entry, tail.driver):\n",
        "    if False:\n",
    ),
    mutant(
        "only the number of the last batch is compared",
        "sink/driver/decide.py",
        "    if now != (tail.newest_entry, tail.driver):\n",
        "    if log.last_batch_id(batch.query_id) != tail.last_batch_id:\n",
    ),
    mutant(
        "an empty partition leaves no row",
        "protocol/transactions/decision.py",
        "    return (*rows, *emptied)\n",
        "    return tuple(rows)\n",
    ),
    mutant(
        "a batch that has no rows any more leaves no row",
        "sink/driver/decide.py",
        "    if decided or any(row.state is TransactionState.EMPTY for row in rows):\n",
        "    if decided:\n",
    ),
    mutant(
        "an older batch that comes back is not compared",
        "sink/driver/decide.py",
        "    check_same_batch(\n",
        "    if batch.batch_id < tail.last_batch_id:\n        return True\n    check_same_batch(\n",
    ),
    mutant(
        "the end of the batch before is not logged",
        "protocol/transactions/decision.py",
        "        return (*rows, *_completion_before(batch, last, at))\n",
        "        return tuple(rows)\n",
    ),
    # Complete
    mutant(
        "an aborted transaction is taken for complete",
        "sink/driver/complete.py",
        "        if fate is Fate.COMMITTED:\n",
        "        if fate in (Fate.COMMITTED, Fate.ABORTED):\n",
    ),
    # Abort
    mutant(
        "abort() does not look at the log",
        "sink/driver/abort.py",
        "    if _complete_if_decided(session, failed, owner, deadline):",
        "    if False:",
    ),
    mutant(
        "abort() does not fence the partitions without a message",
        "sink/driver/abort.py",
        "    _fence_silent(session, failed, deadline)\n    if ended:",
        "    if ended:",
    ),
    mutant(
        "abort() fences once, and does not watch",
        "endtxn/fence.py",
        "        if watch.passed:\n            return\n",
        "        return\n",
    ),
    mutant(
        "abort() leaves the offsets transaction open",
        "sink/driver/abort.py",
        "        fence_open(session, session.transactional_id(None), deadline)\n",
        "        pass\n",
    ),
    mutant(
        "abort() does not end what the messages name",
        "sink/driver/abort.py",
        "    if not undecided:\n",
        "    if True:\n",
    ),
    mutant(
        "abort() of an overtaken driver fences the new one",
        "sink/driver/abort.py",
        " or _is_overtaken(session, failed):",
        ":",
    ),
    mutant(
        "abort() ends transactions before the log knows",
        "sink/driver/abort.py",
        "    _log_intent(session, failed, owner, deadline)\n",
        tests="tests/simulation/test_stop_in_commit.py",
    ),
    mutant(
        "abort() does not look at the log behind its look at Kafka",
        "sink/driver/abort.py",
        "    session.log.refresh()  # behind the look: whoever ended one has logged why before\n",
        tests="tests/simulation/test_stop_in_commit.py",
    ),
    mutant(
        "abort() goes on where its intent could not be logged",
        "sink/driver/abort.py",
        "        if failed.may_be_committing:\n            raise\n",
        tests="tests/simulation/test_stop_in_commit.py",
    ),
    mutant(
        "what an abort that died has left open is not looked for",
        "sink/driver/plan.py",
        " or not tail.complete\n",
        "\n",
        tests="tests/simulation/test_stop_in_commit.py",
    ),
    mutant(
        "a late task of an overtaken driver is left alone",
        "sink/driver/plan.py",
        "    return is_long_ago or not",
        "    return not",
        tests="tests/simulation/test_late_task.py",
    ),
    mutant(
        "a write whose end could not be logged has failed",
        "sink/driver/commit.py",
        "    except SparkEosError:\n        # Do not",
        "    except ZeroDivisionError:\n        # Do not",
        tests="tests/simulation/test_batch_write.py",
    ),
    mutant(
        "abort() completes a decision that may not be on the disk",
        "sink/driver/abort.py",
        "    if decided:\n        log.sync()\n",
        "    if decided:\n",
    ),
    # The offsets of the source
    mutant(
        "the offsets are committed on their own",
        "sink/driver/commit.py",
        _OFFSETS,
        "        session.cluster.coordinator.end("
        "[prepared.identity], committed=True, deadline=deadline)\n",
    ),
    mutant("the offsets are not in the decision", "sink/driver/commit.py", _OFFSETS),
    mutant(
        "offsets that are committed are moved again",
        "protocol/transactions/replay.py",
        "not self.complete and not self.committed_offsets)",
        "not self.complete)",
    ),
    mutant(
        "the offsets of a torn batch are not moved",
        "protocol/transactions/replay.py",
        "            or (batch_id == self.last_batch_id and not self.complete"
        " and not self.committed_offsets)\n",
    ),
    # Tasks
    mutant(
        "a batch write outside of a task takes the id of partition 0",
        "sink/batch_writer.py",
        "partition=current_partition(),",
        "partition=0,",
        tests="tests/unit/sink/test_task.py",
    ),
    # Topics
    mutant(
        "a producer creates the topic that it asks about",
        "kafka/config/client_config.py",
        "**overrides, **_FIXED}",
        "**overrides}",
        tests="tests/spark/test_missing_topics.py",
    ),
    # Jobs
    Mutant(
        "an error of another library ends a job for good",
        "spark_eos/job/supervise.py",
        (
            (r"^([A-Za-z_]\w*(?:\.\w+)+)(?=:|$)", r"\b([A-Z][A-Za-z]*Error)\b"),
            ('f"{found.__module__}.{found.__qualname__}"', "found.__name__"),
        ),
        tests="tests/unit/job/test_supervise.py",
    ),
)
