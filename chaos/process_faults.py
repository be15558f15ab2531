"""Faults of the driver."""

import os
import signal
import time
from contextlib import suppress

from chaos.cluster import NODES
from chaos.proxy import DELAY, Rule
from chaos.supervisor import STOP_S
from chaos.wait import within
from chaos.workload import REACH_S, NotNow

# Steps of the product at which a process can be held, from the first to the last.
DRIVER_STEPS = ("planned", "offsets-prepared", "checked", "decided", "completed")
TASK_STEPS = ("task-started", "begun", "written", "prepared")
# Of a driver that recovers.
SURVEYED = "surveyed"
START_S = 120
# Time for a process to leave that came to a step just when it was given up.
LEAVE_S = 0.1


def signal_to(pid, number):
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def one_of(rng, found, what):
    if not found:
        raise NotNow(f"there is no {what}")
    return rng.choice(sorted(found))


# --- driver ---


def driver_kill(world, rng):
    """SIGKILL to the driver's program and its JVM."""
    driver = world.driver()
    yield f"driver {driver.number}", 0.0
    driver.kill()
    yield


def driver_pause(world, rng):
    """SIGSTOP to the driver for 2 to 10 s, then SIGCONT."""
    driver = world.driver()
    yield f"driver {driver.number}", rng.uniform(2, 10)
    driver.signal(signal.SIGSTOP)
    yield
    driver.signal(signal.SIGCONT)


def driver_stop(world, rng):
    """`query.stop()`, at any moment or while a process stands at a step; then a new driver."""
    driver, steps = world.driver(), rng.deal((TASK_STEPS, DRIVER_STEPS, (None,)))
    step = rng.deal(steps, rng.turn // 3)
    if step is not None:
        world.hold_at(driver, step)
    yield f"driver {driver.number}{f' at {step!r}' if step else ''}", rng.uniform(0.5, 4)
    world.supervisor.hold_down(2 * STOP_S)  # until it was looked at what this one left
    driver.stop()
    yield
    if step is not None:
        world.let_go(driver, step)
    world.look_after_stop(driver, in_tasks=steps is TASK_STEPS)
    world.supervisor.hold_down(0)


def zombie_driver(world, rng):
    """A driver frozen with all of its workers, replaced, and awake again beside the new one."""
    driver = world.driver()
    yield f"driver {driver.number}", rng.uniform(15, 25)
    driver.signal(signal.SIGSTOP, workers=True)
    world.supervisor.replace()
    yield
    driver.signal(signal.SIGCONT, workers=True)


def driver_kill_at(world, rng):
    """A driver killed at a step of commit or recovery; every second time its worker goes on."""
    step, lives_on = rng.deal((*DRIVER_STEPS, SURVEYED)), rng.deal((True, False))
    driver = world.driver()
    alive = ", its worker goes on" if lives_on else ""
    if step == SURVEYED:
        yield from _kill_two(world, driver, lives_on, alive)
        return
    held = world.hold_at(driver, step)
    yield f"driver {driver.number} at '{step}'{alive}", 0.0
    _kill_held(world, driver, step, held, lives_on)
    yield


def _kill_held(world, driver, step, held, lives_on):
    driver.kill()
    if lives_on:
        world.let_go(driver, step)
    else:
        signal_to(held, signal.SIGKILL)


def _kill_two(world, driver, lives_on, alive):
    """Only a batch that is decided and not complete is surveyed: the first kill makes one."""
    held = world.hold_at(driver, "decided")
    first = f"driver {driver.number} at 'decided'"
    yield f"{first}, and the next one if it comes to '{SURVEYED}'", 0.0
    _kill_held(world, driver, "decided", held, lives_on=False)
    try:
        second, held = _hold_successor(world, driver)
    except NotNow as why:
        yield f"{first}; {why}"
        return
    _kill_held(world, second, SURVEYED, held, lives_on)
    yield f"{first}, driver {second.number} at '{SURVEYED}'{alive}"


def _hold_successor(world, driver):
    """The driver after this one, and its process that stands behind its survey."""
    deadline = time.monotonic() + START_S
    if not within(START_S, lambda: world.supervisor.driver is not driver):
        raise NotNow(f"no driver came after {driver.number}")
    second = world.supervisor.driver
    while True:
        try:
            return second, world.hold_at(second, SURVEYED)
        except NotNow:
            # A driver starts for longer than a step may take to be reached.
            if not second.runs or time.monotonic() > deadline:
                raise
            time.sleep(LEAVE_S)


def time_out_down(world, rng):
    """A driver killed around its decision, and none until every transaction has timed out."""
    driver = world.driver_that_times_out()
    step = rng.deal(("checked", "decided"))
    held = world.hold_at(driver, step)
    yield f"driver {driver.number} at '{step}'", world.transaction_timeout_s + 3
    world.supervisor.hold_down(world.transaction_timeout_s + 3)
    driver.kill()
    signal_to(held, signal.SIGKILL)
    yield


def time_out_frozen(world, rng):
    """A driver held at a step until its transactions have timed out, and then let go."""
    driver = world.driver_that_times_out()
    step = rng.deal(("prepared", "checked", "decided"))
    world.hold_at(driver, step)
    yield f"driver {driver.number} at '{step}'", world.transaction_timeout_s + 3
    yield
    world.let_go(driver, step)


def torn_by_time_out(world, rng):
    """Some EndTxn of a batch are late, the driver dies, and what they were for times out."""
    driver = world.driver_that_times_out()
    late = world.transaction_timeout_s + 6
    node = rng.deal(NODES)
    count = rng.randint(1, 2)
    hits = world.hits
    world.cluster.proxies.by_node[node].add_rule(Rule("EndTxn", DELAY, late, count))
    deadline = time.monotonic() + REACH_S
    while world.hits == hits:
        if time.monotonic() > deadline or not driver.runs:
            world.cluster.proxies.by_node[node].clear_rules()
            raise NotNow(f"no EndTxn came to broker {node}")
        time.sleep(0.01)
    yield f"driver {driver.number}, {count} EndTxn to broker {node}", late - 3
    world.supervisor.hold_down(late - 3)
    # The driver waits for those that are late: time for the others of the batch to get through.
    time.sleep(1.0)
    driver.signal(signal.SIGKILL, workers=True)
    yield
    world.cluster.proxies.by_node[node].clear_rules()
