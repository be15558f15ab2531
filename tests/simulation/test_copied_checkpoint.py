"""A person restores an older checkpoint, or starts a copy of one. No row is visible twice.

The checkpoint and its log, inside of it, are restored or copied together. Kafka stays as it is.
"""

import copy
from itertools import product

import pytest

from spark_eos.errors import OperatorError, StaleLogError
from tests.simulation.driver import GROUP, Driver, World, workload
from tests.simulation.explore import EXPECTED, finish, requests, run
from tests.simulation.faults import Fault, Way
from tests.simulation.freeze import start
from tests.simulation.oracle import check_exactly_once, check_no_wrong_row

pytestmark = pytest.mark.usefixtures("simulated")

WORKLOAD = workload((1, 1), (1,), (0, 1), group=GROUP)
SMALL = workload((1, 1), (1,))
STOPPED = (*EXPECTED, OperatorError)


def copied(world):
    """Another checkpoint with its log, for the same Kafka."""
    return World(
        world.workload,
        broker=world.broker,
        storage=copy.deepcopy(world.storage),
        files=dict(world.files),
        draws=world.draws + 500,
    )


def backups(world, driver):
    """What a backup holds that is taken before each request of the driver."""
    taken = {}

    def before_call(number):
        taken[number] = (copy.deepcopy(world.storage), dict(world.files))

    driver.schedule.before_call = before_call
    return taken


def restored(world, backup):
    """The world with an older checkpoint."""
    new = copy.deepcopy(world)
    new.storage, new.files = copy.deepcopy(backup[0]), dict(backup[1])
    return new


@pytest.mark.parametrize("way", [None, Way.CRASHED, Way.LOST])
def test_restored_backup_stops_the_query_or_does_no_harm(way):
    """The query ran to its end, or died at any request; the backup is of any time before."""
    stopped = finished = 0
    for died_at in requests(WORKLOAD) if way is not None else [None]:
        world = World(WORKLOAD)
        driver = Driver(world, *([] if died_at is None else [Fault(died_at, way)]))
        taken = backups(world, driver)
        run(driver)
        for backup in taken.values():
            again = restored(world, backup)
            try:
                Driver(again).run()
            except OperatorError:
                stopped += 1
                check_no_wrong_row(again.broker, WORKLOAD, 0)
            else:
                finished += 1
                check_exactly_once(again.broker, WORKLOAD)
    assert stopped > 20, "hardly any backup was older than what was committed"
    assert finished > 0, "every start was refused"


@pytest.mark.parametrize("batches", [1, 2])
def test_restored_backup_is_named_as_what_it_is(batches):
    world = World(WORKLOAD)
    driver = Driver(world)
    taken = backups(world, driver)
    run(driver)
    calls = driver.schedule.calls
    backup = taken[calls.index(f"file commits/{batches - 1}") + 2]
    with pytest.raises(StaleLogError) as error:
        Driver(restored(world, backup)).run()
    text = str(error.value)
    assert f"ends with batch {batches - 1} " in text
    assert "-driver is at epoch" in text
    assert "acknowledge" in text


def test_restored_backup_whose_evidence_was_overwritten_stops_too():
    """After the newest commit another attempt was killed: no id shows a commit any more."""
    world = World(WORKLOAD)
    driver = Driver(world)
    taken = backups(world, driver)
    run(driver)
    backup = taken[driver.schedule.calls.index("file commits/0") + 2]
    for transaction in world.broker.transactions.values():
        if not transaction.transactional_id.endswith("-driver"):
            world.broker.init_producer_id(transaction.transactional_id, 1000)
    with pytest.raises(StaleLogError):
        Driver(restored(world, backup)).run()


def test_person_who_says_so_writes_the_batches_again():
    world = World(WORKLOAD)
    driver = Driver(world)
    taken = backups(world, driver)
    run(driver)
    again = restored(world, taken[driver.schedule.calls.index("file commits/0") + 2])
    with pytest.raises(StaleLogError) as error:
        Driver(again).run()
    code = str(error.value).split("acknowledge to '")[1].split("'")[0]
    with pytest.raises(AssertionError, match="visible twice"):  # that is what they asked for
        Driver(again, acknowledge=code).run()
    notes = [r for c in again.storage.commits for r in c.records if r.acknowledged is not None]
    assert [note.acknowledged for note in notes] == [code]
    assert all(note.is_note for note in notes)


def test_code_is_good_for_one_state_only():
    world = World(WORKLOAD)
    driver = Driver(world)
    taken = backups(world, driver)
    run(driver)
    backup = taken[driver.schedule.calls.index("file commits/0") + 2]
    with pytest.raises(StaleLogError) as error:
        Driver(restored(world, backup)).run()
    code = str(error.value).split("acknowledge to '")[1].split("'")[0]
    older = taken[driver.schedule.calls.index("Delta commit of 0 PrepareCommit") + 1]
    with pytest.raises(StaleLogError):
        Driver(restored(world, older), acknowledge=code).run()


def overlap(copied_at, started_at):
    """The original is frozen, a copy is started and frozen; both go on to their ends."""
    world = World(SMALL)
    original = start(world)
    original.run_until(copied_at)
    other = copied(world)
    duplicate = start(other)
    duplicate.run_until(started_at)
    original.run_until(None)
    duplicate.run_until(None)
    return world, original, duplicate


def test_copy_that_is_started_while_the_original_runs_doubles_nothing():
    wrong, gone_on = [], 0
    numbers = requests(SMALL)
    for places in product(numbers, numbers):
        world, original, duplicate = overlap(*places)
        try:
            check_no_wrong_row(world.broker, SMALL, 0)
            for driver in (original, duplicate):
                assert driver.error is None or isinstance(driver.error, STOPPED), repr(driver.error)
            ended = [driver.error is None for driver in (original, duplicate)]
            gone_on += any(ended)
            if any(ended):
                check_no_wrong_row(world.broker, SMALL, len(SMALL.batches))
        except AssertionError as error:
            wrong.append(f"{places}: {error}")
    assert wrong == []
    assert gone_on > len(numbers), "hardly ever one of them went on"


def test_copy_of_a_query_that_has_moved_on_stops():
    world = World(SMALL)
    driver = Driver(world)
    taken = backups(world, driver)
    run(driver)
    storage, files = taken[driver.schedule.calls.index("file commits/0") + 2]
    copy_of_it = World(SMALL, broker=world.broker, storage=storage, files=files, draws=900)
    with pytest.raises(StaleLogError):
        Driver(copy_of_it).run()
    check_exactly_once(world.broker, SMALL)
    Driver(world).run()


def test_backup_of_before_a_decision_that_another_driver_completed_stops_the_query():
    """The driver that decided died before the query's epoch moved, so the next one moves it."""
    one_batch = workload((1, 1))
    calls = finish(World(one_batch)).schedule.calls
    world = World(one_batch)
    decided = Driver(world, Fault(1 + calls.index("InitProducerId driver, expected"), Way.CRASHED))
    taken = backups(world, decided)
    run(decided)
    backup = taken[1 + decided.schedule.calls.index("Delta commit of 0 PrepareCommit")]
    Driver(world).run()
    check_exactly_once(world.broker, one_batch)
    again = restored(world, backup)
    with pytest.raises(StaleLogError):
        Driver(again).run()
    check_exactly_once(again.broker, one_batch)
