"""Who owns a query, and which log and topics count."""

from tests.mutations.mutant import mutant

_COPIED = "tests/simulation/test_copied_checkpoint.py"
_TWO_DRIVERS = "tests/simulation/test_two_drivers.py"
_RESTORED = "tests/simulation/test_restored_cluster.py"
_LOST_TOPIC = "tests/chaos/test_people.py"

OWNERSHIP_MUTANTS = (
    mutant(
        "a log that is older than Kafka is believed",
        "recovery/ownership.py",
        "            if sign is None or where not in (Position.AHEAD, Position.OUTDATED):\n",
        "            if True:\n",
        tests=_COPIED,
    ),
    mutant(
        "a start is logged after a look at Kafka that is out of date",
        "recovery/ownership.py",
        "            if self.log.token(self.query_id) == seen:\n",
        "            if True:\n",
        tests=_TWO_DRIVERS,
    ),
    mutant(
        "a first start that died before it was logged is not logged by the next",
        "recovery/ownership.py",
        "        is_new = found is None and self.log.token(self.query_id) is None\n",
        "        is_new = self.log.token(self.query_id) is None\n",
        tests="tests/simulation/test_every_crash_point.py",
    ),
    mutant(
        "a decision does not move the query's epoch",
        "sink/driver/commit.py",
        "        Ownership(session).move_on(decision.token, deadline)\n",
        tests=_COPIED,
    ),
    mutant(
        "another driver is not looked for before the decision",
        "recovery/ownership.py",
        "        if where in (Position.TAKEN_OVER, Position.AHEAD):\n"
        "            raise self._overtaken(where, deadline)\n"
        "        if where is Position.OUTDATED:\n",
        "        if where is Position.OUTDATED:\n",
        tests=_COPIED,
    ),
    mutant(
        "a move that was refused is taken for made",
        "recovery/ownership.py",
        "        if moved is None or not is_next(token.before, moved):\n",
        "        if False:\n",
        tests=_COPIED,
    ),
    mutant(
        "a decision that is completed by another driver is no move",
        "recovery/ownership.py",
        "        if completes or name != self.transactional_id:\n",
        "        if name != self.transactional_id:\n",
        tests=_COPIED,
    ),
    mutant(
        "a decision hides behind a start",
        "protocol/transactions/ownership.py",
        "    if count <= _ONE_MORE and not may_decide(mark):\n",
        "    if not may_decide(mark):\n",
        tests="tests/unit/protocol/test_ownership.py",
    ),
    mutant(
        "a cluster that was restored to the middle of the last batch is believed",
        "protocol/transactions/ownership.py",
        "            return now\n    return driver",
        "            pass\n    return driver",
        tests=_RESTORED,
    ),
    mutant(
        "a cluster that was restored to the batch before is believed",
        "protocol/transactions/ownership.py",
        "    return driver if unknown and where is Position.NOT_MOVED else None\n",
        "    return None\n",
        tests="tests/unit/protocol/test_ownership.py",
    ),
    mutant(
        "source offsets that were edited are believed",
        "recovery/edited_checkpoint.py",
        "    if not Ownership(session).accepts(code, deadline):\n",
        "    if False:\n",
        tests="tests/simulation/test_edited_checkpoint.py",
    ),
    mutant(
        "the driver that was started last is not known to the commit worker",
        "sink/driver/decide.py",
        "    if now != (tail.newest_entry, tail.driver):\n",
        "    if now[0] != tail.newest_entry:\n",
        tests=_TWO_DRIVERS,
    ),
    mutant(
        "a row of another query's id is ended",
        "endtxn/commit.py",
        "    _check_ids(records)\n",
        tests="tests/unit/endtxn/test_commit.py",
    ),
    mutant(
        "a topic that was replaced is committed to",
        "endtxn/commit.py",
        "    if replaced:\n        raise replaced_error(records[0], replaced)\n",
        tests=_LOST_TOPIC,
    ),
    mutant(
        "a topic that was replaced is decided on",
        "sink/driver/decide.py",
        "        check_topics(session, batch, deadline)\n",
        "        session.cluster.coordinator.await_leaders(batch.written, {}, deadline)\n",
        tests=_LOST_TOPIC,
    ),
    mutant(
        "a log that was replaced under a session is not opened again",
        "log/delta.py",
        "        if self._is_replaced():\n",
        "        if False:\n",
        tests="tests/integration/test_log_append.py",
    ),
)
