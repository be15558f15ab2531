"""Processes of a driver, found through /proc, so that none is left behind and none is mistaken."""

import os
import signal
from contextlib import suppress
from pathlib import Path

GONE = (FileNotFoundError, ProcessLookupError)


def start_time(pid):
    """Tells a process from a later one with the same id."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except GONE:
        return None


def children(pid):
    """The names of a process's children, by their ids."""
    found = {}
    with suppress(*GONE):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(*GONE):
                for child in (task / "children").read_text().split():
                    with suppress(*GONE):
                        found[int(child)] = Path(f"/proc/{child}/comm").read_text().strip()
    return found


def descendants(pid):
    """All below a process, each with its start time."""
    found = set()
    for child in children(pid):
        found |= {(child, start_time(child))} | descendants(child)
    return found


def temporary_files_in(folder):
    """For the environment of a JVM: one that is killed leaves what it has unpacked."""
    return {"JDK_JAVA_OPTIONS": f"-Djava.io.tmpdir={folder}"}


def kill(processes):
    """SIGKILL to those that are still the ones that were seen."""
    for pid, started in processes:
        if started is not None and start_time(pid) == started:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
