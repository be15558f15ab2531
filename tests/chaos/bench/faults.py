"""The faults. Each is a generator of three steps, so that none is left unhealed.

The first `yield` says to whom it will happen and for how many seconds, the second comes when it has
happened, and what follows heals it. A fault that cannot be given now raises `NotNow`.
"""

import os
import signal
import time
from contextlib import suppress

from kafka import KafkaAdminClient, TopicPartition

from tests.chaos.bench.cluster import INPUT, NODES, OUTPUT
from tests.chaos.bench.proxy import ACTIONS, DELAY, Rule

REACH_S = 25.0
# Steps of the product at which a process can be held, from the first to the last.
DRIVER_STEPS = ("planned", "offsets-prepared", "checked", "decided", "completed")
TASK_STEPS = ("task-started", "begun", "written", "prepared")
FRAMES = ("EndTxn", "Produce", "InitProducerId", "TxnOffsetCommit", "AddPartitionsToTxn")


class NotNow(Exception):  # noqa: N818 - a reason, not a failure
    """There is nobody to whom this could happen, or no way to do it here."""


def signal_to(pid, number):
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def one_of(rng, found, what):
    if not found:
        raise NotNow(f"there is no {what}")
    return rng.choice(sorted(found))


# --- driver ---


def driver_kill(world, rng):
    driver = world.supervisor.driver
    yield f"driver {driver.number}", 0.0
    driver.kill()
    yield


def driver_pause(world, rng):
    driver = world.supervisor.driver
    yield f"driver {driver.number}", rng.uniform(2, 10)
    driver.signal(signal.SIGSTOP)
    yield
    driver.signal(signal.SIGCONT)


def zombie_driver(world, rng):
    """Frozen with everything below it, replaced, and awake again while the new one works."""
    driver = world.supervisor.driver
    yield f"driver {driver.number}", rng.uniform(15, 25)
    driver.signal(signal.SIGSTOP, workers=True)
    world.supervisor.replace()
    yield
    driver.signal(signal.SIGCONT, workers=True)


def driver_kill_at(world, rng):
    """Killed at a step of the commit; half of the time its Python worker lives on and goes on."""
    step, lives_on = rng.choice(DRIVER_STEPS), rng.random() < 0.5
    driver = world.supervisor.driver
    held = world.hold_at(driver, step)
    yield f"driver {driver.number} at '{step}'{', its worker goes on' if lives_on else ''}", 0.0
    driver.kill()
    if lives_on:
        world.let_go(driver, step)
    else:
        signal_to(held, signal.SIGKILL)
    yield


def time_out_down(world, rng):
    """Decided, killed, and down until every transaction has timed out."""
    driver = world.supervisor.driver
    step = rng.choice(("checked", "decided"))
    held = world.hold_at(driver, step)
    yield f"driver {driver.number} at '{step}'", world.transaction_timeout_s + 3
    world.supervisor.hold_down(world.transaction_timeout_s + 3)
    driver.kill()
    signal_to(held, signal.SIGKILL)
    yield


def time_out_frozen(world, rng):
    """Held at a step until its transactions have timed out, and then on as if nothing were."""
    driver = world.supervisor.driver
    step = rng.choice(("prepared", "checked", "decided"))
    world.hold_at(driver, step)
    yield f"driver {driver.number} at '{step}'", world.transaction_timeout_s + 3
    yield
    world.let_go(driver, step)


def torn_by_time_out(world, rng):
    """Some EndTxn arrive, some are late; the driver dies and the rest of the batch times out."""
    driver = world.supervisor.driver
    late = world.transaction_timeout_s + 6
    node = rng.choice(NODES)
    count = rng.randint(1, 2)
    hits = world.hits
    world.cluster.proxies.by_node[node].add_rule(Rule("EndTxn", DELAY, late, count))
    deadline = time.monotonic() + REACH_S
    while world.hits == hits:
        if time.monotonic() > deadline or driver is not world.supervisor.driver:
            world.cluster.proxies.by_node[node].clear_rules()
            raise NotNow(f"no EndTxn came to broker {node}")
        time.sleep(0.01)
    yield f"driver {driver.number}, {count} EndTxn to broker {node}", late - 3
    world.supervisor.hold_down(late - 3)
    # The others of the batch are let through before the driver is gone.
    time.sleep(0.05)
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
    yield from kill_one(rng, world.supervisor.driver.executors(), "executor")


def executor_pause(world, rng):
    """Long enough that the driver gives it up: it wakes up as a zombie."""
    seconds = rng.choice((3.0, 14.0))
    yield from pause_one(rng, world.supervisor.driver.executors(), "executor", seconds)


def worker_kill(world, rng):
    yield from kill_one(rng, world.supervisor.driver.workers(), "worker")


def worker_kill_at(world, rng):
    """A task's worker, killed at a step of its write."""
    driver, step = world.supervisor.driver, rng.choice(TASK_STEPS)
    pid = world.hold_at(driver, step)
    yield f"worker {pid} at '{step}'", 0.0
    signal_to(pid, signal.SIGKILL)
    yield


def worker_pause(world, rng):
    yield from pause_one(rng, world.supervisor.driver.workers(), "worker", rng.uniform(2, 12))


# --- brokers ---


def _broker_kill(world, rng, node):
    yield f"broker {node}", rng.uniform(1, 6)
    world.cluster.kafka.kill(node)
    yield
    world.cluster.kafka.start_node(node)


def _broker_pause(world, rng, node):
    yield f"broker {node}", rng.uniform(2, 10)
    world.cluster.kafka.pause(node)
    yield
    world.cluster.kafka.resume(node)


def broker_kill(world, rng):
    yield from _broker_kill(world, rng, rng.choice(NODES))


def broker_pause(world, rng):
    yield from _broker_pause(world, rng, rng.choice(NODES))


def coordinator_kill(world, rng):
    yield from _broker_kill(world, rng, world.coordinator())


def coordinator_pause(world, rng):
    yield from _broker_pause(world, rng, world.coordinator())


def leader_move(world, rng):
    """Other leaders for the topics and for the coordinators' own topics."""
    turn = rng.choice((1, 2))
    yield f"all partitions, by {turn}", 0.0
    admin = KafkaAdminClient(bootstrap_servers=world.cluster.servers)
    try:
        topics = [INPUT, OUTPUT, "__transaction_state", "__consumer_offsets"]
        moved = {
            TopicPartition(topic["name"], part["partition_index"]): [
                (node + turn - 1) % len(NODES) + 1 for node in part["replica_nodes"]
            ]
            for topic in admin.describe_topics(topics)
            for part in topic["partitions"]
        }
        admin.alter_partition_reassignments(moved)
        time.sleep(1.0)
        admin.elect_leaders(0, raise_errors=False)
    finally:
        admin.close()
    yield


# --- network, disk, clock ---


def _frames(action):
    def give(world, rng):
        api = rng.choice(FRAMES)
        count, seconds = rng.randint(1, 6), rng.uniform(0.2, 6)
        yield f"{count} {api} per broker, {seconds:.1f} s", rng.uniform(3, 8)
        for proxy in world.cluster.proxies.by_node.values():
            proxy.add_rule(Rule(api, action, seconds, count))
        yield
        for proxy in world.cluster.proxies.by_node.values():
            proxy.clear_rules()

    return give


def net_stall(world, rng):
    """The query and one broker cannot hear each other; the brokers can."""
    node = rng.choice(NODES)
    yield f"broker {node}", rng.uniform(2, 10)
    world.cluster.proxies.stall(node)
    yield
    world.cluster.proxies.flow(node)


def log_failure(world, rng):
    if world.disk.how is None:
        raise NotNow("running as root where nothing may be mounted: writes cannot be made to fail")
    if not world.disk.log.exists():
        raise NotNow("there is no log yet")
    yield world.disk.how, rng.uniform(2, 8)
    world.disk.fail()
    yield
    world.disk.mend()


def _clock(world):
    if not world.clock.works:
        raise NotNow("libfaketime does not work here, and the clock of the machine is not ours")
    return world.clock


def clock_jump(world, rng):
    """The wall clock of workers that run; by seconds, as librdkafka waits for as long as it goes
    back.
    """
    clock, seconds = _clock(world), rng.choice((-1, 1)) * rng.uniform(5, 30)
    yield f"{seconds:+.1f} s", rng.uniform(3, 10)
    clock.set(seconds)
    yield
    clock.set(0)


def clock_skew(world, rng):
    """A driver on a machine whose clock is wrong, within what brokers take as times of records."""
    clock, seconds = _clock(world), rng.choice((-7_200, -600, 600, 1_800))
    driver = world.supervisor.driver
    yield f"driver {driver.number + 1}, {seconds:+} s", rng.uniform(50, 70)
    driver.kill()
    clock.set(seconds)
    yield
    world.supervisor.driver.kill()
    clock.set(0)


FAULTS = {
    "driver-kill": driver_kill,
    "driver-pause": driver_pause,
    "driver-kill-at": driver_kill_at,
    "zombie-driver": zombie_driver,
    "time-out-down": time_out_down,
    "time-out-frozen": time_out_frozen,
    "torn-by-time-out": torn_by_time_out,
    "executor-kill": executor_kill,
    "executor-pause": executor_pause,
    "worker-kill": worker_kill,
    "worker-kill-at": worker_kill_at,
    "worker-pause": worker_pause,
    "broker-kill": broker_kill,
    "broker-pause": broker_pause,
    "coordinator-kill": coordinator_kill,
    "coordinator-pause": coordinator_pause,
    "leader-move": leader_move,
    **{f"net-{action}": _frames(action) for action in ACTIONS},
    "net-stall": net_stall,
    "log-failure": log_failure,
    "clock-jump": clock_jump,
    "clock-skew": clock_skew,
}
