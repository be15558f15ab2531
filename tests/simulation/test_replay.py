"""A batch that runs again with other rows: visible is one of the two, whole, or the query stops."""

from collections import Counter
from contextlib import suppress
from itertools import count

import pytest

from spark_eos.errors import NonDeterministicReplayError, TransactionLostError
from tests.simulation.driver import GROUP, Driver, Workload, World
from tests.simulation.explore import ENDED
from tests.simulation.faults import CrashError, Fault, Way, time_out
from tests.simulation.oracle import check_exactly_once, check_nothing_open, visible_values

pytestmark = pytest.mark.usefixtures("simulated")

ROWS = (("a0", "a1"), ("b0",))
REPLAYED = {
    "other rows": (("x0", "x1"), ("y0",)),
    "fewer rows": (("a0",), ()),
    "one partition": (("a0", "a1", "b0"),),
    "three partitions": (("a0",), ("a1",), ("b0",)),
    "rows that moved": (("b0",), ("a0", "a1")),
    "an empty partition more": (*ROWS, ()),
}


def variants(replayed):
    return [Counter(value for rows in batch for value in rows) for batch in (ROWS, replayed)]


@pytest.mark.parametrize("replayed", REPLAYED.values(), ids=REPLAYED.keys())
@pytest.mark.parametrize("way", [w for w in Way if w is not Way.KILLED])
@pytest.mark.parametrize("group", [GROUP, None])
def test_replay_with_other_rows_is_whole_or_refused(way, replayed, group):
    stopped = 0
    for number in count(1):
        world = World(Workload((ROWS,), group=group, replayed=replayed))
        first = Driver(world, Fault(number, way))
        with suppress(*ENDED):
            first.run()
        if not first.schedule.fired:
            break
        try:
            Driver(world).run()
            seen, _ = visible_values(world.broker)
            assert seen in variants(replayed), f"{first.schedule.fired[0]}: {seen}"
            assert group is None or world.broker.groups[group] == world.workload.offsets(0)
            check_nothing_open(world.broker)
        except NonDeterministicReplayError:
            stopped += 1
            seen, _ = visible_values(world.broker)
            # For nothing less is it stopped: a part of the rows is visible, and a part is lost.
            assert Counter() < seen < variants(replayed)[0], f"{first.schedule.fired[0]}: {seen}"
            check_nothing_open(world.broker)
    # The newest transaction is the one of the offsets: where that alone is lost, it need not stop.
    if way is Way.FIRST_TIMED_OUT or (way is Way.LAST_TIMED_OUT and group is None):
        assert stopped, "no torn batch was met"


def test_batch_that_came_back_with_another_input_is_refused():
    """`commits/0` deleted, `offsets/0` edited: to skip the batch by its number would lose rows."""
    world = World(Workload((ROWS,)))
    Driver(world).run()
    del world.files["commits/0"]
    world.files["offsets/0"] = world.files["offsets/0"].replace("4", "5")
    with pytest.raises(NonDeterministicReplayError):
        Driver(world).run()


def rolled_back():
    """Two batches are committed, and an operator lets Spark begin again with the first."""
    world = World(Workload((ROWS, (("c0",),)), group=GROUP))
    Driver(world).run()
    for name in ("commits/0", "commits/1", "offsets/1"):
        del world.files[name]
    return world


def test_older_batch_that_came_back_adds_nothing():
    world = rolled_back()
    Driver(world).run()
    check_exactly_once(world.broker, world.workload)


def test_older_batch_that_came_back_with_another_input_is_refused():
    world = rolled_back()
    world.files["offsets/0"] = world.files["offsets/0"].replace("4", "5")
    with pytest.raises(NonDeterministicReplayError):
        Driver(world).run()


def test_older_batch_that_came_back_while_the_last_one_is_torn():
    load = Workload((ROWS, (("c0",), ("d0",))), group=GROUP)
    undisturbed = Driver(World(load))
    undisturbed.run()
    ends = [n for n, c in enumerate(undisturbed.schedule.calls, 1) if c == "EndTxn(commit) 1"]
    world = World(load)
    with pytest.raises(CrashError):
        Driver(world, Fault(ends[1], Way.CRASHED)).run()
    time_out(world.broker, Way.ALL_TIMED_OUT)
    assert visible_values(world.broker)[0] == Counter(["a0", "a1", "b0", "c0"])
    for name in ("commits/0", "offsets/1"):
        del world.files[name]
    Driver(world).run()
    check_exactly_once(world.broker, world.workload)


@pytest.mark.parametrize("left", [["a0"], []], ids=["one row", "no row"])
def test_partition_that_lost_its_rows_and_has_none_now_is_not_lost_for_ever(left):
    """All of batch 0 timed out behind its decision; it comes back smaller, and batch 1 follows."""
    load = Workload((ROWS, (("c0",),)), replayed=(tuple(left), ()))
    undisturbed = Driver(World(load))
    undisturbed.run()
    calls = undisturbed.schedule.calls
    first = next(n for n, name in enumerate(calls, 1) if name.startswith("EndTxn(commit)"))
    world = World(load)
    with pytest.raises(TransactionLostError):
        Driver(world, Fault(first, Way.ALL_TIMED_OUT)).run()
    Driver(world).run()
    assert visible_values(world.broker)[0] == Counter([*left, "c0"])
    check_nothing_open(world.broker)
