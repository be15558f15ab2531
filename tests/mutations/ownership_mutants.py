"""Who owns a query, and which log and topics count."""

from tests.mutations.mutant import (
    always,
    call,
    instead,
    mutant,
    never,
    without,
)

_COPIED = "tests/simulation/test_copied_checkpoint.py"
_TWO_DRIVERS = "tests/simulation/test_two_drivers.py"
_RESTORED = "tests/simulation/test_restored_cluster.py"
_LOST_TOPIC = "tests/chaos/test_people.py"
_PROTOCOL = "tests/unit/protocol/test_ownership.py"

OWNERSHIP_MUTANTS = (
    mutant(
        "a log that is older than Kafka is believed",
        "Ownership._look",
        always("sign", "AHEAD"),
        tests=_COPIED,
    ),
    mutant(
        "a start is logged after a look at Kafka that is out of date",
        "Ownership._checked",
        always("seen"),
        tests=_TWO_DRIVERS,
    ),
    mutant(
        "a first start that died before it was logged is not logged by the next",
        "Ownership._started",
        instead(
            "found is None and self.log.token(self.query_id) is None",
            "self.log.token(self.query_id) is None",
        ),
        tests="tests/simulation/test_every_crash_point.py",
    ),
    mutant(
        "a decision does not move the query's epoch",
        "commit._decide_and_complete",
        without("move_on"),
        tests=_COPIED,
    ),
    mutant(
        "another driver is not looked for before the decision",
        "Ownership.next_token",
        never("TAKEN_OVER"),
        tests=_COPIED,
    ),
    mutant(
        "a move that was refused is taken for made",
        "Ownership.move_on",
        without("complete_move"),
        tests=_COPIED,
    ),
    mutant(
        "a decision that is completed by another driver is no move",
        "Ownership.take_over",
        never("completes"),
        tests=_COPIED,
    ),
    mutant(
        "a decision hides behind a start",
        "ownership.position",
        instead(
            "count <= _ONE_MORE and not may_decide(mark)",
            "not may_decide(mark)",
        ),
        tests=_PROTOCOL,
    ),
    mutant(
        "a cluster that was restored to the middle of the last batch is believed",
        "ownership.sign_of_restored_kafka",
        never("identity", "COMMITTED_STATES"),
        tests=_RESTORED,
    ),
    mutant(
        "a cluster that was restored to the batch before is believed",
        "ownership.sign_of_restored_kafka",
        never("NOT_MOVED"),
        tests=_PROTOCOL,
    ),
    mutant(
        "source offsets that were edited are believed",
        "edited_checkpoint.check_input_as_logged",
        never("accepts"),
        tests="tests/simulation/test_edited_checkpoint.py",
    ),
    mutant(
        "the driver that was started last is not known to the commit worker",
        "decide.is_visible_already",
        instead(
            "now != (recovered.newest_entry, recovered.driver)", "now[0] != recovered.newest_entry"
        ),
        tests=_TWO_DRIVERS,
    ),
    mutant(
        "a row of another query's id is ended",
        "commit.commit_decided",
        without("_check_ids"),
        tests="tests/unit/endtxn/test_commit.py",
    ),
    mutant(
        "a topic that was replaced is committed to",
        "commit.commit_decided",
        never("replaced"),
        tests=_LOST_TOPIC,
    ),
    mutant(
        "a topic that was replaced is decided on",
        "decide.decide",
        call(
            "check_topics",
            "session.cluster.coordinator.await_leaders(batch.written, {}, deadline)",
        ),
        tests=_LOST_TOPIC,
    ),
    mutant(
        "a log that was replaced under a session is not opened again",
        "TransactionLog.refresh",
        never("is_replaced"),
        tests="tests/integration/test_log_append.py",
    ),
)
