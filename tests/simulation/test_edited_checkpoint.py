"""A person edits the newest file in offsets/, to move a query back or ahead."""

import copy

import pytest

from spark_eos.errors import OperatorError
from tests.simulation.driver import GROUP, Driver, World, workload
from tests.simulation.explore import finish
from tests.simulation.oracle import check_exactly_once

pytestmark = pytest.mark.usefixtures("simulated")

DONE = workload((1, 1), (1, 0, 1), group=GROUP)
MORE = workload((1, 1), (1, 0, 1), (1, 1), group=GROUP)


def edited(batch_id):
    """A query with two complete batches, and a change of one of its files by hand."""
    world = World(DONE)
    finish(world)
    world.workload = MORE
    name = f"offsets/{batch_id}"
    world.files[name] = world.files[name].replace('"0": ', '"0": 1')
    return world


def test_query_whose_newest_offsets_were_edited_stops():
    world = edited(1)
    before = copy.deepcopy(world.broker.log)
    with pytest.raises(OperatorError, match="the file offsets/1 in checkpointLocation") as error:
        Driver(world).run()
    assert "acknowledge to 'edited-checkpoint-" in str(error.value)
    assert world.broker.log == before


def test_it_goes_on_where_the_file_was_put_back():
    world = edited(1)
    with pytest.raises(OperatorError):
        Driver(world).run()
    world.files["offsets/1"] = world.files["offsets/1"].replace('"0": 1', '"0": ')
    del world.files["offsets/2"]  # planned behind the edited file
    Driver(world).run()
    check_exactly_once(world.broker, MORE)


def test_it_goes_on_where_a_person_says_so():
    world = edited(1)
    with pytest.raises(OperatorError) as error:
        Driver(world).run()
    code = str(error.value).split("acknowledge to '")[1].split("'")[0]
    Driver(world, acknowledge=code).run()
    check_exactly_once(world.broker, MORE)
    notes = [r for c in world.storage.commits for r in c.records if r.acknowledged is not None]
    assert [note.acknowledged for note in notes] == [code]


def test_older_files_do_not_count():
    """Spark does not look at them any more, and removes them."""
    world = edited(0)
    Driver(world).run()
    check_exactly_once(world.broker, MORE)
