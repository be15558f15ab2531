"""Readers that poll all the time while drivers are killed: who sees a part of a micro-batch?"""

import threading
from collections import Counter

import pytest

from tests.chaos.conftest import ROWS_PER_FILE
from tests.chaos.test_snapshot_torn import rows
from tests.chaos.transactions import end_open_transactions


class Poller(threading.Thread):
    """Reads the whole topic again and again at one isolation level."""

    def __init__(self, scenario, **options):
        super().__init__(daemon=True)
        self.polls, self.in_part, self.most, self.failure = 0, 0, 0, None
        self._scenario, self._options = scenario, options
        self._enough = threading.Event()

    def run(self):
        try:
            while not self._enough.is_set():
                self._look()
        except BaseException as failure:
            self.failure = failure

    def _look(self):
        """A file is a micro-batch, so the numbers tell which one a row is of."""
        seen = Counter(
            int(value) // ROWS_PER_FILE for value in rows(self._scenario, **self._options)
        )
        self.polls += 1
        self.in_part += any(count != ROWS_PER_FILE for count in seen.values())
        assert len(seen) >= self.most, "a micro-batch that was there is gone"
        self.most = len(seen)

    def finish(self):
        self._enough.set()
        self.join(60)
        if self.failure is not None:
            raise self.failure
        self._look()  # at the end of it all


@pytest.mark.slow
def test_snapshot_shows_no_part_of_a_batch_while_drivers_are_killed(scenario, record_property):
    log = str(scenario.checkpoint / "transaction_state")
    scenario.add_files(2)
    scenario.run()
    at_snapshot = Poller(scenario, **{"isolation.level": "snapshot", "transactionLog": log})
    committed = Poller(scenario)
    at_snapshot.start()
    committed.start()
    for partitions in ({0, 2}, {1}, set()):
        scenario.add_files(3)
        with scenario.driver("decided") as driver:
            driver.wait_for("decided")
            driver.kill()
        end_open_transactions(scenario, commit_partitions=partitions)
        polled = at_snapshot.polls, committed.polls
        with scenario.driver() as driver:  # starts, recovers, and goes on
            driver.finish()
        assert at_snapshot.polls > polled[0]
        assert committed.polls > polled[1]
    scenario.check()  # waits for the last markers, which the last look has to be behind
    at_snapshot.finish()
    committed.finish()
    for name, poller in (("snapshot", at_snapshot), ("read_committed", committed)):
        text = f"{name}: {poller.polls} polls, {poller.in_part} with a part of a micro-batch"
        record_property(name, text)
        print(text)
    assert at_snapshot.in_part == 0
    assert committed.in_part > 0  # or there was nothing to be seen, and the test says nothing
    assert at_snapshot.most == len(scenario.rows) // ROWS_PER_FILE
