"""Faults of processes: driver, executors, Python workers."""

import os
import signal
import time
from contextlib import suppress

from tests.chaos.bench.cluster import NODES
from tests.chaos.bench.proxy import DELAY, Rule
from tests.chaos.bench.workload import REACH_S, NotNow

# Steps of the product at which a process can be held, from the first to the last.
DRIVER_STEPS = ("planned", "offsets-prepared", "checked", "decided", "completed")
TASK_STEPS = ("task-started", "begun", "written", "prepared")


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
    driver, step = world.driver(), rng.choice((None, rng.choice(DRIVER_STEPS + TASK_STEPS)))
    if step is not None:
        world.hold_at(driver, step)
    yield f"driver {driver.number}{f' at {step!r}' if step else ''}", rng.uniform(0.5, 4)
    driver.stop()
    yield
    if step is not None:
        world.let_go(driver, step)


def zombie_driver(world, rng):
    """A driver frozen with all of its workers, replaced, and awake again beside the new one."""
    driver = world.driver()
    yield f"driver {driver.number}", rng.uniform(15, 25)
    driver.signal(signal.SIGSTOP, workers=True)
    world.supervisor.replace()
    yield
    driver.signal(signal.SIGCONT, workers=True)


def driver_kill_at(world, rng):
    """A driver killed at a step of the commit; half of the time its Python worker goes on."""
    step, lives_on = rng.choice(DRIVER_STEPS), rng.random() < 0.5
    driver = world.driver()
    held = world.hold_at(driver, step)
    yield f"driver {driver.number} at '{step}'{', its worker goes on' if lives_on else ''}", 0.0
    driver.kill()
    if lives_on:
        world.let_go(driver, step)
    else:
        signal_to(held, signal.SIGKILL)
    yield


def time_out_down(world, rng):
    """A driver killed around its decision, and none until every transaction has timed out."""
    driver = world.driver()
    step = rng.choice(("checked", "decided"))
    held = world.hold_at(driver, step)
    yield f"driver {driver.number} at '{step}'", world.transaction_timeout_s + 3
    world.supervisor.hold_down(world.transaction_timeout_s + 3)
    driver.kill()
    signal_to(held, signal.SIGKILL)
    yield


def time_out_frozen(world, rng):
    """A driver held at a step until its transactions have timed out, and then let go."""
    driver = world.driver()
    step = rng.choice(("prepared", "checked", "decided"))
    world.hold_at(driver, step)
    yield f"driver {driver.number} at '{step}'", world.transaction_timeout_s + 3
    yield
    world.let_go(driver, step)


def torn_by_time_out(world, rng):
    """Some EndTxn of a batch are late, the driver dies, and what they were for times out."""
    driver = world.driver()
    late = world.transaction_timeout_s + 6
    node = rng.choice(NODES)
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


# --- executors and workers ---


def kill_one(rng, pids, kind):
    pid = one_of(rng, pids, kind)
    yield f"{kind} {pid}", 0.0
    signal_to(pid, signal.SIGKILL)
    yield


def pause_one(rng, pids, kind, seconds):
    pid = one_of(rng, pids, kind)
    yield f"{kind} {pid}", seconds
    signal_to(pid, signal.SIGSTOP)
    yield
    signal_to(pid, signal.SIGCONT)


def executor_kill(world, rng):
    """SIGKILL to an executor."""
    yield from kill_one(rng, world.driver().executors(), "executor")


def executor_pause(world, rng):
    """SIGSTOP to an executor for 3 or 14 s; the driver gives up one that is frozen for 10."""
    seconds = rng.choice((3.0, 14.0))
    yield from pause_one(rng, world.driver().executors(), "executor", seconds)


def worker_kill(world, rng):
    """SIGKILL to a Python worker."""
    yield from kill_one(rng, world.driver().workers(), "worker")


def worker_kill_at(world, rng):
    """SIGKILL to a task's worker at a step of its write."""
    driver, step = world.driver(), rng.choice(TASK_STEPS)
    pid = world.hold_at(driver, step)
    yield f"worker {pid} at '{step}'", 0.0
    signal_to(pid, signal.SIGKILL)
    yield


def worker_pause(world, rng):
    """SIGSTOP to a Python worker for 2 to 12 s, then SIGCONT."""
    yield from pause_one(rng, world.driver().workers(), "worker", rng.uniform(2, 12))
