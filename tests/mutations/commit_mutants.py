"""Commit worker: decide, complete, abort, and the offsets of the source."""

from tests.mutations.mutant import (
    always,
    assigned,
    before,
    call,
    instead,
    mutant,
    never,
    without,
)

_STOP = "tests/simulation/test_stop_in_commit.py"

COMMIT_MUTANTS = (
    # The decision
    mutant(
        "no check of the prepared transactions before the decision",
        "decide._check_transactions",
        without("check_prepared"),
    ),
    mutant(
        "a coordinator that answers from the past is believed",
        "decide._describe",
        assigned("ask_again", "False"),
        tests="tests/unit/sink/test_decide.py",
    ),
    mutant(
        "records at unknown offsets are decided on",
        "DeliveryReports.partitions",
        never("any"),
        tests="tests/unit/kafka/test_delivery.py",
    ),
    mutant(
        "EndTxn before the decision",
        "decide.decide",
        before(
            "failpoint",
            "coordinator.end([r.identity for r in decided], committed=True, deadline=deadline)",
        ),
    ),
    mutant(
        "the planner's view of the log is not compared with the commit worker's",
        "decide.is_visible_already",
        never("now"),
    ),
    mutant(
        "only the number of the last batch is compared",
        "decide.is_visible_already",
        instead(
            "now != (recovered.newest_entry, recovered.driver)",
            "log.last_batch_id(batch.query_id) != recovered.last_batch_id",
        ),
    ),
    mutant(
        "an empty partition leaves no row",
        "decision.decision_rows",
        instead("(*rows, *emptied)", "tuple(rows)"),
    ),
    mutant(
        "a batch that has no rows any more leaves no row",
        "decide.decide",
        never("any", "EMPTY"),
    ),
    mutant(
        "an older batch that comes back is not compared",
        "decide.is_visible_already",
        before("check_same_batch", "if batch.batch_id < recovered.last_batch_id:\n    return True"),
    ),
    mutant(
        "the end of the batch before is not logged",
        "decision.decision_rows",
        call("_completion_before", "()"),
    ),
    # Complete
    mutant(
        "an aborted transaction is taken for complete",
        "complete.complete",
        instead("fate is Fate.COMMITTED", "fate in (Fate.COMMITTED, Fate.ABORTED)"),
    ),
    # Abort
    mutant("abort() does not look at the log", "abort.abort", never("_complete_if_decided")),
    mutant(
        "abort() does not fence the partitions without a message",
        "abort.abort",
        without("_fence_silent"),
    ),
    mutant(
        "abort() fences once, and does not watch",
        "fence.fence_running",
        always("watch", "passed"),
    ),
    mutant("abort() leaves the offsets transaction open", "abort.abort", without("fence_open")),
    mutant(
        "abort() does not end what the messages name",
        "abort._abort_prepared",
        always("undecided"),
    ),
    mutant(
        "abort() of an overtaken driver fences the new one",
        "abort.abort",
        never("_is_overtaken"),
    ),
    mutant(
        "abort() ends transactions before the log knows",
        "abort.abort",
        without("_log_intent"),
        tests=_STOP,
    ),
    mutant(
        "abort() does not look at the log behind its look at Kafka",
        "abort._may_be_decided",
        without("refresh"),
        tests=_STOP,
    ),
    mutant(
        "abort() goes on where its intent could not be logged",
        "abort._log_intent",
        never("may_be_committing"),
        tests=_STOP,
    ),
    mutant(
        "what an abort that died has left open is not looked for",
        "plan._may_have_orphans",
        never("complete"),
        tests=_STOP,
    ),
    mutant(
        "a late task of an overtaken driver is left alone",
        "plan._may_have_orphans",
        assigned("is_long_ago", "False"),
        tests="tests/simulation/test_late_task.py",
    ),
    mutant(
        "a write whose end could not be logged has failed",
        "commit._log_completion",
        instead("SparkEosError", "ZeroDivisionError"),
        tests="tests/simulation/test_batch_write.py",
    ),
    mutant(
        "abort() completes a decision that may not be on the disk",
        "abort._complete_if_decided",
        without("sync"),
    ),
    # The offsets of the source
    mutant(
        "the offsets are committed on their own",
        "commit.commit",
        call(
            "replace",
            "session.cluster.coordinator.end([prepared.identity], committed=True,"
            " deadline=deadline) and batch",
        ),
    ),
    mutant("the offsets are not in the decision", "commit.commit", call("replace", "batch")),
    mutant(
        "offsets that are committed are moved again",
        "RecoveredQuery.moves_offsets",
        always("committed_offsets"),
    ),
    mutant(
        "the offsets of a torn batch are not moved",
        "RecoveredQuery.moves_offsets",
        never("committed_offsets"),
    ),
    # Tasks
    mutant(
        "a batch write outside of a task takes the id of partition 0",
        "BatchWriter.write",
        call("current_partition", "0"),
        tests="tests/unit/sink/test_task.py",
    ),
    # Topics
    mutant(
        "a producer creates the topic that it asks about",
        "ClientConfig.librdkafka",
        instead("_FIXED", "{}"),
        tests="tests/spark/test_missing_topics.py",
    ),
    # Jobs
    mutant(
        "an error of another library ends a job for good",
        "_supervise.verdict",
        assigned(
            "names",
            "set(re.findall(r'\\b([A-Z][A-Za-z]*Error)\\b',"
            " ''.join(traceback.format_exception(error))))",
        ),
        instead("f'{found.__module__}.{found.__qualname__}'", "found.__name__"),
        tests="tests/unit/job/test_supervise.py",
    ),
)
