"""Planner: recovery, and a batch that runs again."""

from tests.mutations.mutant import (
    OTHER_CLUSTER,
    VERSIONS,
    always,
    argument,
    assigned,
    before,
    call,
    instead,
    mutant,
    never,
    returns,
    without,
    without_key,
)

_CRASHES = "tests/simulation/test_every_crash_point.py"

RECOVERY_MUTANTS = (
    # Recovery
    mutant(
        "recovery completes a decision that may not be on the disk",
        "recover.recover",
        without("sync"),
        tests="tests/simulation/test_power_cut.py",
    ),
    mutant(
        "recovery commits what was to be aborted",
        "recover.recover",
        argument(
            "commit_decided",
            1,
            "[r for r in batch.pending if r.identity.transactional_id not in lost]",
        ),
        tests="tests/simulation/test_stop_in_commit.py",
    ),
    mutant(
        "a log that does not know the query is believed",
        "lost_log.check_log_is_the_querys",
        call("_unknown_commit", "None"),
        tests="tests/integration/test_look_for_a_lost_log.py",
    ),
    mutant(
        "a partition without a leader is not waited for",
        "commit.await_topics",
        returns("{}"),
        tests="tests/integration/test_no_leader.py",
    ),
    mutant(
        "a follower in the client's rack is asked what became of a batch",
        "OffsetProbe.__init__",
        without_key("client.rack"),
        tests="tests/integration/test_rack.py",
    ),
    mutant(
        "another cluster is asked what became of a batch",
        "commit.commit_decided",
        without("check_decided_here"),
        tests="tests/unit/endtxn/test_commit.py",
    ),
    mutant(
        "a query with an unfinished batch is started on another cluster",
        "Ownership.take_over",
        without("check_decided_here"),
        tests=OTHER_CLUSTER,
    ),
    mutant(
        "a torn batch does not tie a query to its cluster",
        "Ownership._unfinished",
        always("is_whole"),
        tests=OTHER_CLUSTER,
    ),
    mutant(
        "a start with other options is forgotten without a word",
        "Ownership._logged_id",
        always("_accepted"),
        tests=OTHER_CLUSTER,
    ),
    mutant(
        "a version is taken for written on another cluster",
        "version.check_txn_version",
        without("check_decided_here"),
        tests=OTHER_CLUSTER,
    ),
    mutant(
        "a version is taken for written to another topic",
        "version.check_txn_version",
        without("_check_topic"),
        tests=VERSIONS,
    ),
    mutant(
        "a version that is torn is left behind",
        "version.check_txn_version",
        never("committed_partitions"),
        tests=VERSIONS,
    ),
    mutant(
        "abort() of an attempt that recovery has judged fences the new driver",
        "abort.abort",
        never("isdisjoint"),
        tests="tests/simulation/test_late_abort.py",
    ),
    mutant(
        "a commit file that Spark has removed is missed",
        "Checkpoint.has_commit",
        call("any", "False"),
        tests="tests/unit/checkpoint/test_checkpoint.py",
    ),
    mutant(
        "a right that was taken away is an end",
        "commit.commit_decided",
        without("_raise_if_not_allowed"),
        tests="tests/unit/endtxn/test_commit.py",
    ),
    mutant("no recovery", "recover.recover", always("has_commit")),
    mutant("recovery logs nothing", "recover.recover", without("append")),
    mutant(
        "refused is taken for committed",
        "commit.commit_decided",
        call("fates", "{name: Fate.COMMITTED for name, _ in looked}"),
    ),
    mutant(
        "refused is taken for aborted",
        "commit.commit_decided",
        call("fates", "{name: Fate.ABORTED for name, _ in looked}"),
    ),
    mutant(
        "unknown is taken for committed",
        "commit.commit_decided",
        instead("a.outcome is Outcome.DONE", "a.outcome is not Outcome.REFUSED"),
        assigned("unknown", "[]"),
    ),
    mutant(
        "offsets that were refused are taken for committed",
        "commit.commit_decided",
        call("offsets_fate", "Fate.COMMITTED"),
    ),
    mutant(
        "offsets that were refused are taken for aborted",
        "commit.commit_decided",
        call("offsets_fate", "Fate.ABORTED"),
    ),
    mutant("orphans stay open", "fence.abort_orphans", never("orphans")),
    mutant(
        "orphans are ended before the decided ones are complete",
        "plan.plan",
        before("recover", "abort_orphans(session, deadline)"),
    ),
    # A batch that runs again
    mutant(
        "a committed batch is written again",
        "RecoveredQuery.action",
        never("batch_id", "rows_complete"),
    ),
    mutant(
        "a torn batch is written whole",
        "RecoveredQuery.action",
        never("committed_partitions"),
    ),
    mutant(
        "a torn batch is skipped whole",
        "RecoveredQuery.action",
        always("committed_partitions"),
    ),
    mutant(
        "the rows of a torn batch are not compared",
        "decide.is_visible_already",
        without("check_same_partitions"),
    ),
    mutant(
        "rows are written again where only the offsets are lost",
        "RecoveredQuery.action",
        instead("self.rows_complete", "self.complete"),
    ),
    mutant(
        "the digest of the rows is not compared",
        "replay.check_same_partitions",
        instead("replayed.digest != record.digest", "False"),
    ),
    mutant(
        "the number of partitions is not compared",
        "replay.check_same_partitions",
        instead("record.sink_partitions != len(results)", "False"),
    ),
    mutant(
        "the offsets of a group are asked for while orphans are open",
        "plan.plan",
        before(
            "_may_have_orphans",
            "if is_first and recovered.complete:\n    restore_group_offsets(session, deadline)",
        ),
        tests=_CRASHES,
    ),
    mutant(
        "the source offsets of the batch are not compared",
        "replay.check_same_batch",
        call("all", "True"),
    ),
    mutant(
        "the files behind an offset of a file source are not compared",
        "Checkpoint._input_digest",
        instead("[str(watermark), *sources, *files]", "[str(watermark), *sources]"),
        tests="tests/unit/checkpoint/test_checkpoint.py",
    ),
)
