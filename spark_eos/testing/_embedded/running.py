"""Command line. A detached cluster: find it or stop it, from any process of the user."""

import signal
import time
from dataclasses import dataclass
from pathlib import Path

from spark_eos.testing._embedded.cluster import STOP_GRACE_S
from spark_eos.testing._embedded.failure import EmbeddedKafkaError
from spark_eos.testing._embedded.layout import live_processes, read_layout, write_processes

KILL_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """The cluster of a folder, with the processes that really run."""

    bootstrap_servers: str
    nodes: int
    pids: dict[int, int]


def look(folder: Path) -> RunningCluster | None:
    """The cluster of a folder, or None if the folder has none."""
    layout = read_layout(folder)
    if layout is None:
        return None
    pids = {node: process.pid for node, process in live_processes(folder).items()}
    return RunningCluster(layout.bootstrap_servers, len(layout.nodes), pids)


def stop(folder: Path) -> list[int]:
    """Stop the processes of a folder, and return their pids."""
    processes = live_processes(folder)
    deadline = time.monotonic() + STOP_GRACE_S
    for process in processes.values():
        process.signal(signal.SIGTERM)
    for process in processes.values():
        if not process.wait(deadline - time.monotonic()):
            process.signal(signal.SIGKILL)
    left = [process.pid for process in processes.values() if not process.wait(KILL_WAIT_S)]
    if left:
        raise EmbeddedKafkaError("the brokers with pids {pids} survived SIGKILL", pids=left)
    if processes:
        write_processes(folder, {})
    return sorted(process.pid for process in processes.values())
