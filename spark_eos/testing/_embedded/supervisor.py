"""Runs as a process of its own between the program that wants a broker and the broker's JVM.

It ends the JVM as soon as that program is gone, also when SIGKILL left it no time to clean up.
PR_SET_PDEATHSIG alone would not do: it fires when the *thread* that forked ends. This process has
one thread, so for its own child the flag is right, and covers its own sudden death.

Started as a plain script in isolated mode, so it imports nothing of this package.

    supervisor.py <parent pid> <command> ...    pid of the command goes to stdout as one line
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
CHECK_PARENT_S = 0.5


def main(arguments: list[str]) -> int:
    """Start the command, tell its pid, and stay until it or the parent is gone."""
    parent, command = int(arguments[0]), arguments[1:]
    child_ended = _wake_on_child()
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        preexec_fn=_die_with(os.getpid()),  # noqa: PLW1509 - there is one thread
    )
    print(child.pid, flush=True)
    # The pipe tells at once; asking who the parent is covers a fork of it that keeps the pipe open.
    while child.poll() is None:
        ready, _, _ = select.select([sys.stdin, child_ended], [], [], CHECK_PARENT_S)
        if sys.stdin in ready or os.getppid() != parent:
            child.kill()
            child.wait()
        elif child_ended in ready:
            os.read(child_ended, 64)
    return 0


def _wake_on_child() -> int:
    """File descriptor that becomes readable when a child changes its state."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reader


def _die_with(supervisor: int) -> Callable[[], None]:
    """What the child does between fork and exec; libc is loaded before the fork."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def between_fork_and_exec() -> None:
        if libc is not None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(1)

    return between_fork_and_exec


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
