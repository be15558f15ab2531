"""Processes of a driver, found through /proc, so that none is left behind and none is mistaken.

As a program it is what `Guard` starts: it ends the drivers when the one who started them is gone.
"""

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

GONE = (FileNotFoundError, ProcessLookupError)
LOOK_EVERY_S = 1.0
END_S = 60


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


def with_all_below(processes):
    """Those of them that still run, and what is below them."""
    found = set()
    for pid, started in processes:
        if started is not None and (pid, started) not in found and start_time(pid) == started:
            found |= {(pid, started)} | descendants(pid)
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


class Guard:
    """Ends all that is below some drivers as soon as this process is gone, however it went.

    A driver sees by itself that its standard input is closed. One that is frozen does not, nor does
    what is frozen below it, and a signal to its group does not reach Python workers: they have
    groups of their own. So a process of its own keeps a list.
    """

    def __init__(self):
        # A session of its own: Ctrl-C is for this process.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(os.getpid())],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def watch(self, pid):
        self._process.stdin.write(f"{pid}\n".encode())
        self._process.stdin.flush()

    def close(self):
        """End what is left, now."""
        self._process.stdin.close()
        self._process.wait(END_S)


def guard(parent):
    """Keep a list of what is below the processes named on standard input, and end it at its end."""
    seen = set()
    while True:
        # A fork of the parent may keep the pipe open: so it is also asked for.
        gone = os.getppid() != parent
        if select.select([0], [], [], 0 if gone else LOOK_EVERY_S)[0]:
            told = os.read(0, 65_536)
            gone = not told
            seen |= {(pid, start_time(pid)) for pid in map(int, told.split())}
        seen = with_all_below(seen)
        if gone:
            break
    kill(seen)


if __name__ == "__main__":
    guard(int(sys.argv[1]))
