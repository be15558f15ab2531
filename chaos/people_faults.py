"""Faults that people bring about: a backup is restored, a checkpoint is copied.

The checkpoint and its transaction log are copied as a whole, while no process writes to them. The
target names the driver that has to stop; `progress_checks.went_on` asks whether it did.
"""

import os
import shutil
import signal

from chaos.process_faults import START_S
from chaos.supervisor import STOP_S
from chaos.wait import within
from chaos.workload import FIRST_BATCH_S, NotNow

RESTORED = "restored-backup"
COPIED = "copied-checkpoint"
# Nobody writes to the checkpoint or to the log at these steps.
QUIET = "planned"
VERY_MOMENT = (QUIET, "prepared", "decided")


class State:
    """A checkpoint and its transaction log, in folders of their own."""

    def __init__(self, checkpoint, log):
        self.checkpoint = checkpoint
        self.log = log

    def copy_to(self, other):
        """Replace what is there. Synced: a power cut that comes later is no part of this fault."""
        for source, target in ((self.checkpoint, other.checkpoint), (self.log, other.log)):
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target)
        os.sync()

    def remove(self):
        for folder in (self.checkpoint, self.log):
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def last_commit(self):
        """The last batch that Spark has written down as complete."""
        names = (path.name for path in (self.checkpoint / "commits").iterdir())
        return max((int(name) for name in names if name.isdigit()), default=-1)


def _query_state(world):
    return State(world.folder / "checkpoint", world.disk.log)


def _other_state(world, name):
    return State(world.folder / name / "checkpoint", world.folder / name / "transaction_state")


def _copy_at(world, driver, step, name):
    """A copy of the state that the query has while the driver stands at a step."""
    world.hold_at(driver, step)
    copy = _other_state(world, name)
    _query_state(world).copy_to(copy)
    return copy


def _await_newer(world, driver, copy, batches):
    """Until the query has completed so many batches that the copy does not have."""
    state, wanted = _query_state(world), copy.last_commit + batches
    if not within(START_S, lambda: state.last_commit >= wanted or not driver.runs):
        raise NotNow(f"driver {driver.number} completed no batch in {START_S} s")
    if state.last_commit < wanted:
        raise NotNow(f"driver {driver.number} has ended")


def _await_end(driver):
    """A driver that goes on where it must stop is killed: the judge sees that it did."""
    if not within(FIRST_BATCH_S, lambda: not driver.runs):
        driver.signal(signal.SIGKILL, workers=True)
        within(STOP_S, lambda: not driver.runs)


def restored_backup(world, rng):
    """A backup of checkpoint and log, one to three batches old, is restored, and tried."""
    driver, batches = world.driver(), rng.deal((1, 2, 3))
    backup = _copy_at(world, driver, QUIET, "backup")
    world.let_go(driver, QUIET)
    _await_newer(world, driver, backup, batches)
    yield f"the driver after {driver.number}, {batches} batches back", 0.0
    world.supervisor.hold_down(2 * FIRST_BATCH_S)
    driver.signal(signal.SIGKILL, workers=True)
    within(STOP_S, lambda: not driver.runs)
    newest = _other_state(world, "newest")
    _query_state(world).copy_to(newest)
    backup.copy_to(_query_state(world))
    tried = world.supervisor.replace()
    _await_end(tried)
    newest.copy_to(_query_state(world))
    yield f"driver {tried.number}, {batches} batches back"
    backup.remove()
    newest.remove()
    world.supervisor.hold_down(0)


def copied_checkpoint(world, rng):
    """A query from a copy of checkpoint and log beside the first one: an older copy, or of now."""
    step = rng.deal((None, *VERY_MOMENT))
    driver = world.driver()
    if step is None:
        yield from _older_copy(world, driver)
    else:
        yield from _copy_of_now(world, driver, step)


def _older_copy(world, driver):
    """The query has gone on: the copy has to stop, and the query need not notice."""
    copy = _copy_at(world, driver, QUIET, "copy")
    world.let_go(driver, QUIET)
    _await_newer(world, driver, copy, 1)
    yield f"a copy of driver {driver.number}'s, one batch old", 0.0
    second = world.supervisor.replace(checkpoint=copy.checkpoint, log=copy.log)
    _await_end(second)
    yield f"driver {second.number}, from a copy that is older than driver {driver.number}"
    copy.remove()


def _copy_of_now(world, driver, step):
    """The copy was started last, so it goes on: the first one has to stop, whatever it stood at.

    Its checkpoint then belongs to nobody, and the copy takes its place.
    """
    copy = _copy_at(world, driver, step, "copy")
    complete = copy.last_commit
    yield f"driver {driver.number} at '{step}', beside a copy of that moment", 0.0
    second = world.supervisor.replace(checkpoint=copy.checkpoint, log=copy.log)
    within(START_S, lambda: copy.last_commit > complete or not second.runs)
    world.let_go(driver, step)
    _await_end(driver)
    yield
    world.supervisor.hold_down(2 * STOP_S)
    second.stop()
    if not within(STOP_S, lambda: not second.runs):
        second.signal(signal.SIGKILL, workers=True)
    copy.copy_to(_query_state(world))
    copy.remove()
    world.supervisor.hold_down(0)
