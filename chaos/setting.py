"""Where and with what a run ran, and how to repeat it: for people who read its report."""

import os
import platform
import shlex
import subprocess
from importlib.metadata import version
from pathlib import Path

from chaos.cluster import GROUP, INPUT, MIN_INSYNC, NODES, OUTPUT, PARTITIONS
from chaos.generator import KEYS, POISON_EVERY_S
from chaos.workload import LONG_TIMEOUT_MS
from spark_eos.testing._embedded.jars import KAFKA_VERSION


def setting(master, rate, timeout_ms):
    """The machine, the versions, the workload."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    clients = [f"{name} {version(name)}" for name in ("confluent-kafka", "deltalake")]
    return {
        "machine": f"{os.cpu_count()} cores, {memory_gb:.0f} GB, {platform.system()}",
        "spark_eos": f"{version('spark-eos')}, commit {commit()}",
        "brokers": f"{len(NODES)} of Kafka {KAFKA_VERSION}, each a process",
        "topics": f"{INPUT} and {OUTPUT}, {PARTITIONS} partitions, {len(NODES)} replicas each, "
        f"min.insync.replicas {MIN_INSYNC}",
        "Spark": f"{version('pyspark')}, master {master}, Python {platform.python_version()}",
        "clients": ", ".join(clients),
        "input": f"{rate} rows a second of {KEYS} keys, each key's rows numbered; every "
        f"{POISON_EVERY_S:g} s a transaction of other rows that is aborted",
        "query": f"reads {INPUT}, shuffles by key, writes {OUTPUT}, and moves the group {GROUP} "
        "with it; started again whenever it ends",
        "time-out of a transaction": f"{timeout_ms / 1000:g} s; every second driver's, "
        f"{LONG_TIMEOUT_MS / 1000:g} s",
    }


def commit():
    """The commit that is checked out, and whether files differ from it."""
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        told = subprocess.run(git, capture_output=True, text=True, check=False, timeout=10)
    except OSError:
        return "unknown"
    return told.stdout.strip() or "unknown"


def command(seed, minutes, names, given):
    """What repeats the choice of faults of this run, also where there are more kinds of them."""
    found = [
        ".venv/bin/python",
        "-m",
        "chaos",
        "--seed",
        str(seed),
        "--minutes",
        f"{minutes:g}",
        "--nemeses",
        ",".join(names),
    ]
    for option, value in given.items():
        if value is not None:
            found += [option, str(value)]
    return shlex.join(found)
