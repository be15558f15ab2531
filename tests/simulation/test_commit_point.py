"""The append of the decision divides a batch: nothing is decided before, nothing undone after."""

import pytest

from tests.simulation.driver import GROUP, Driver, World, workload
from tests.simulation.explore import finish, run
from tests.simulation.faults import TIME_OUTS, Fault, Way
from tests.simulation.oracle import check_nothing_open, visible_values

pytestmark = pytest.mark.usefixtures("simulated")

WORKLOAD = workload((1, 1), group=GROUP)


def rows_in(world, state):
    return [
        record
        for commit in world.storage.commits
        for record in commit.records
        if record.state.wire_name == state
    ]


def decided_rows(world):
    return rows_in(world, "PrepareCommit")


@pytest.fixture
def calls(simulated):
    """The requests of a run without a fault."""
    return finish(World(WORKLOAD)).schedule.calls


@pytest.mark.parametrize("way", TIME_OUTS)
def test_what_timed_out_before_the_look_is_not_decided(calls, way):
    """Else a batch that could simply run again would be torn, and would have to come back equal."""
    looked = calls.index("DescribeTransactions") + 1
    failed = 0
    for number in range(1, looked + 1):
        driver = Driver(World(WORKLOAD), Fault(number, way))
        if run(driver) is not None:
            failed += 1
            assert decided_rows(driver.world) == [], f"{driver.schedule.fired[0]}"
    assert failed >= 4, "hardly any time-out was met"


@pytest.mark.parametrize("way", [Way.REFUSED, Way.UNKNOWN])
def test_abort_completes_what_is_decided(calls, way):
    """`commit` fails behind the decision, and Spark calls `abort`."""
    completed = 0
    for number in range(1, len(calls)):
        driver = Driver(World(WORKLOAD), Fault(number, way))
        run(driver)
        check_nothing_open(driver.world.broker)
        if decided_rows(driver.world):
            completed += 1
            seen, _ = visible_values(driver.world.broker)
            assert sorted(seen) == sorted(WORKLOAD.values(1)), f"{driver.schedule.fired[0]}"
            assert driver.world.broker.groups[GROUP] == WORKLOAD.offsets(0)
    assert completed >= 3, "no request behind the decision was met"


@pytest.mark.parametrize("way", [way for way in Way if way not in TIME_OUTS])
def test_next_start_aborts_nothing_that_is_decided(calls, way):
    """It could write it again. But the batch would have to come back equal, and may not."""
    completed = 0
    for number in range(1, len(calls)):
        driver = Driver(World(WORKLOAD), Fault(number, way))
        run(driver)
        decided = {row.identity for row in decided_rows(driver.world)}
        finish(driver.world)
        aborted = {row.identity for row in rows_in(driver.world, "CompleteAbort")}
        assert not decided & aborted, f"{driver.schedule.fired[0]}"
        completed += bool(decided)
    assert completed >= 3, "no request behind the decision was met"


def test_decision_that_was_taken_without_an_answer_is_found(calls):
    """The append happened and reported a failure: the log is looked at, and the batch goes on."""
    number = next(n for n, name in enumerate(calls, 1) if name.startswith("Delta commit"))
    driver = Driver(World(WORKLOAD), Fault(number, Way.UNKNOWN))
    assert run(driver) is None
    assert len(decided_rows(driver.world)) == 3
