"""A person restores the whole Kafka cluster from a snapshot of its disks. Log and checkpoint stay.

Rows that were committed since are gone from the topics, and the query must not go on without them.
A snapshot of a time before the query was started has no trace of it: that looks like a query that
was left alone until the coordinator has forgotten its ids, and is not told.
"""

import copy
from collections import Counter
from contextlib import suppress

import pytest

from spark_eos.errors import OperatorError
from tests.simulation.driver import GROUP, Driver, World, workload
from tests.simulation.explore import run
from tests.simulation.oracle import check_exactly_once, visible_values

pytestmark = pytest.mark.usefixtures("simulated")

DONE = workload((1, 1), (1, 0, 1), group=GROUP)
MORE = workload((1, 1), (1, 0, 1), (1, 1), group=GROUP)


def snapshots():
    """A world with two batches, and the broker's state before each request that led there."""
    world = World(DONE)
    driver, taken = Driver(world), []
    driver.schedule.before_call = lambda _number: taken.append(copy.deepcopy(world.broker))
    run(driver)
    world.workload = MORE
    return world, driver.schedule.calls, taken


def restored(world, broker):
    new = copy.deepcopy(world)
    new.broker = copy.deepcopy(broker)
    return new


def knows_the_query(broker):
    return any(name.endswith("-driver") for name in broker.transactions)


def test_older_cluster_stops_the_query_or_nothing_was_lost():
    world, calls, taken = snapshots()
    stopped, finished = [], []
    for name, broker in zip(calls, taken, strict=True):
        if not knows_the_query(broker):
            continue
        again = restored(world, broker)
        try:
            Driver(again).run()
        except OperatorError as error:
            stopped.append((name, str(error)))
        else:
            check_exactly_once(again.broker, MORE)
            finished.append(name)
    assert len(stopped) > 10, "hardly any snapshot was older than what was committed"
    assert [name for name, text in stopped if "was restored from a backup" not in text] == []
    assert finished, "every start was refused"


def test_person_who_says_so_goes_on_without_the_lost_rows():
    """What the snapshot has committed stays as it is, and the next batch is written once."""
    world, _, taken = snapshots()
    accepted = 0
    for broker in filter(knows_the_query, taken):
        try:
            Driver(restored(world, broker)).run()
        except OperatorError as error:
            code = str(error).split("acknowledge to '")[1].split("'")[0]
        else:
            continue
        again = restored(world, broker)
        with suppress(AssertionError):  # rows are lost, or only the group's offsets
            Driver(again, acknowledge=code).run()
        before, _ = visible_values(broker)
        now, _ = visible_values(again.broker)
        assert now == before + Counter(["b2p0r0", "b2p1r0"])
        notes = [r for c in again.storage.commits for r in c.records if r.acknowledged is not None]
        assert [note.acknowledged for note in notes] == [code]
        assert all(note.is_note for note in notes)
        accepted += 1
    assert accepted > 10
