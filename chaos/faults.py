"""The faults by their names. A docstring is what the report says of a fault.

Each is a generator of three steps, so that none is left unhealed. The first `yield` says to whom it
will happen and for how many seconds, the second comes when it has happened, and what follows heals
it. The second may say once more to whom, where that was not known before. A fault that cannot be
given now raises `NotNow`. Which variant it is it takes from its deck (`deal`).
"""

from chaos import cluster_faults as cluster
from chaos import people_faults as people
from chaos import process_faults as process
from chaos import task_faults as task

FAULTS = {
    "driver-kill": process.driver_kill,
    "driver-stop": process.driver_stop,
    "driver-pause": process.driver_pause,
    "driver-kill-at": process.driver_kill_at,
    "zombie-driver": process.zombie_driver,
    "time-out-down": process.time_out_down,
    "time-out-frozen": process.time_out_frozen,
    "torn-by-time-out": process.torn_by_time_out,
    "executor-kill": task.executor_kill,
    "executor-pause": task.executor_pause,
    "worker-kill": task.worker_kill,
    "worker-kill-at": task.worker_kill_at,
    "worker-pause": task.worker_pause,
    "broker-kill": cluster.broker_kill,
    "broker-pause": cluster.broker_pause,
    "coordinator-kill": cluster.coordinator_kill,
    "coordinator-pause": cluster.coordinator_pause,
    "leader-move": cluster.leader_move,
    **cluster.FRAME_FAULTS,
    "net-stall": cluster.net_stall,
    "log-failure": cluster.log_failure,
    "power-cut": cluster.power_cut,
    "clock-jump": cluster.clock_jump,
    "clock-skew": cluster.clock_skew,
    people.RESTORED: people.restored_backup,
    people.COPIED: people.copied_checkpoint,
}

# Rules for requests stay while a process is killed or frozen, and end by themselves.
AROUND = tuple(cluster.FRAME_FAULTS)
INSIDE = tuple(name for name in FAULTS if name.endswith(("-kill", "-kill-at", "-pause")))
