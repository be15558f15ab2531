"""What a snapshot reader makes of batches that were aborted: nothing is missed or waited for."""

import pytest

from spark_eos._protocol.offsets.snapshot import outputs, whole_batches
from tests.simulation.driver import Driver, World, workload
from tests.simulation.job import Job
from tests.simulation.log import newest_first
from tests.simulation.oracle import visible_values
from tests.simulation.test_other_layout import run_all_in, world_with_an_aborted_batch

pytestmark = pytest.mark.usefixtures("simulated")


def batches_in(world):
    return outputs(newest_first(r for commit in world.storage.commits for r in commit.records))


def latest_in(world):
    broker = world.broker
    return {place: broker.last_stable_offset(place) for place in broker.log if place[0] == "out"}


class OneVersion(Job):
    """A run of one version, whatever became of those before it."""

    def write(self, version):
        self.commit(self._tasks(version, 2), version)

    def fail(self, version):
        """The second task fails for good."""
        self.abort([*self._tasks(version, 1), None], version)

    def _tasks(self, version, number):
        self._options = self.options(version)
        writer, rows = self.plan(), self.world.workload.batches[version]
        return [self.run_task(writer, version, p, rows[p]) for p in range(number)]


def test_version_that_was_aborted_and_left_out_is_not_waited_for():
    world = World(workload((1, 1), (1, 1), (1, 1)))
    OneVersion(world).write(0)
    OneVersion(world).fail(1)
    assert [(b.batch_id, b.complete) for b in batches_in(world)] == [(0, True), (1, False)]
    assert whole_batches(batches_in(world), latest_in(world)) == latest_in(world)
    OneVersion(world).write(2)
    assert [(b.batch_id, b.complete) for b in batches_in(world)] == [(0, True), (2, True)]
    assert whole_batches(batches_in(world), latest_in(world)) == latest_in(world)


def test_aborted_attempt_is_not_counted_where_its_rows_came_back_elsewhere():
    world = world_with_an_aborted_batch()
    driver = Driver(world)
    run_all_in(driver, driver.plan(), 1, 2)
    (batch,) = batches_in(world)
    seen, _ = visible_values(world.broker)
    assert sum(batch.records().values()) == sum(seen.values())
