"""Faults of what the query stands on: brokers, network, the log's disk, the clock."""

import signal

from kafka.errors import KafkaError

from chaos.cluster import NODES
from chaos.disk import Busy
from chaos.proxy import (
    ACTIONS,
    CUT_AFTER,
    CUT_BEFORE,
    DELAY,
    DROP,
    REORDER,
    REPEAT,
    Rule,
)
from chaos.workload import REACH_S, NotNow

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
    """SIGKILL to a broker, which is started again after 1 to 6 s."""
    yield from _broker_kill(world, rng, rng.deal(NODES))


def broker_pause(world, rng):
    """SIGSTOP to a broker for 2 to 10 s, then SIGCONT."""
    yield from _broker_pause(world, rng, rng.deal(NODES))


def coordinator_kill(world, rng):
    """The same for the broker that coordinates the query's transactions: killed."""
    yield from _broker_kill(world, rng, world.coordinator())


def coordinator_pause(world, rng):
    """The same for the broker that coordinates the query's transactions: frozen."""
    yield from _broker_pause(world, rng, world.coordinator())


def leader_move(world, rng):
    """Other leaders for the topics and for the coordinators' own topics."""
    turn = rng.deal((1, 2))
    try:
        moved, count = world.cluster.move_leaders(turn)
    except KafkaError as error:
        raise NotNow(f"the brokers would not move leaders: {error}") from error
    if not moved:
        raise NotNow("no partition got another leader")
    # Only now it is known to how many it happened.
    yield f"{moved} of {count} partitions, by {turn}", 0.0
    yield


# --- network, disk, clock ---


_FRAME_FAULTS = {
    DELAY: "Requests of a kind arrive up to 6 s late.",
    DROP: "Requests of a kind vanish: the connection stays, and no answer comes.",
    CUT_BEFORE: "The connection breaks before the broker gets a request of a kind.",
    CUT_AFTER: "The broker gets a request of a kind, and the connection breaks before its answer.",
    REPEAT: "Requests of a kind arrive a second time, up to 6 s later, on another connection.",
    REORDER: "Requests of a kind are overtaken by the next of their kind, or 3 s late.",
}


def _frames(action):
    def give(world, rng):
        api = rng.deal_api(action, ACTIONS)
        count, seconds = rng.randint(1, 6), rng.uniform(0.2, 6)
        by = f", {seconds:.1f} s" if action in (DELAY, REPEAT) else ""
        yield f"{count} {api} per broker{by}", rng.uniform(3, 8)
        for proxy in world.cluster.proxies.by_node.values():
            proxy.add_rule(Rule(api, action, seconds, count))
        yield
        for proxy in world.cluster.proxies.by_node.values():
            proxy.clear_rules()

    give.__doc__ = _FRAME_FAULTS[action]
    return give


def net_stall(world, rng):
    """The query and one broker cannot hear each other for 2 to 10 s; the brokers can."""
    node = rng.deal(NODES)
    yield f"broker {node}", rng.uniform(2, 10)
    world.cluster.proxies.stall(node)
    yield
    world.cluster.proxies.flow(node)


def log_failure(world, rng):
    """No room, no right to write, or a disk turned read-only under the log, for 2 to 8 s."""
    if not world.disk.ways:
        raise NotNow("running as root where nothing may be mounted: writes cannot be made to fail")
    way = rng.deal(world.disk.ways)
    if not world.disk.log.exists():
        raise NotNow("there is no log yet")
    try:
        world.disk.fail(way)  # only then it is known that it can be done
        yield way, rng.uniform(2, 8)
        yield
    except Busy as why:
        raise NotNow(str(why)) from why
    finally:
        world.disk.mend()


def power_cut(world, rng):
    """The driver's host loses its power around a decision: what the log's disk had not is gone."""
    if world.disk.image is None:
        raise NotNow("no image of a disk can be mounted here")
    driver, step = world.driver(), rng.deal(("checked", "decided", "completed"))
    world.hold_at(driver, step)
    yield f"driver {driver.number} at '{step}'", 0.0
    world.supervisor.hold_down(REACH_S)
    driver.signal(signal.SIGKILL, workers=True)
    world.disk.image.cut_power()
    world.supervisor.hold_down(0)
    yield


def _clock(world):
    if not world.clock.works:
        raise NotNow("libfaketime does not work here, and the clock of the machine is not ours")
    return world.clock


def clock_jump(world, rng):
    """The wall clock of running workers jumps by 5 to 30 s, ahead or back, for 3 to 10 s."""
    # Not by more: librdkafka waits for as long as it goes back.
    clock, seconds = _clock(world), rng.deal((-1, 1)) * rng.uniform(5, 30)
    yield f"{seconds:+.1f} s", rng.uniform(3, 10)
    clock.set(seconds)
    yield
    clock.set(0)


def clock_skew(world, rng):
    """A driver that starts with a wrong clock, up to 2 h behind or half an hour ahead."""
    clock, seconds = _clock(world), rng.deal((-7_200, -600, 600, 1_800))
    driver = world.driver()
    yield f"driver {driver.number + 1}, {seconds:+} s", rng.uniform(50, 70)
    driver.kill()
    clock.set(seconds)
    yield
    world.supervisor.driver.kill()
    clock.set(0)


FRAME_FAULTS = {f"net-{action}": _frames(action) for action in ACTIONS}
