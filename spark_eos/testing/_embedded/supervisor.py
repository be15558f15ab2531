"""Supervisor process. It kills the broker's JVM when the parent has ended, even by SIGKILL.

PR_SET_PDEATHSIG in the parent is not enough, because it fires when the forking *thread* ends. This
process has one thread, so its child can have the flag, which covers the end of this process.

It runs as a plain script in isolated mode, so it imports nothing of this package.

    supervisor.py <parent pid> <command> ...    prints the pid of the command as one line
"""

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
    """Start the command, print its pid, and wait until the command or the parent has ended."""
    parent, command = int(arguments[0]), arguments[1:]
    child_ended = _wake_on_child()
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        preexec_fn=_die_with(os.getpid()),  # noqa: PLW1509 - there is one thread
    )
    print(child.pid, flush=True)
    # The pipe reports the parent's end at once, unless a fork of the parent keeps the pipe open.
    while child.poll() is None:
        ready, _, _ = select.select([sys.stdin, child_ended], [], [], CHECK_PARENT_S)
        if sys.stdin in ready or os.getppid() != parent:
            child.kill()
            child.wait()
        elif child_ended in ready:
            os.read(child_ended, 64)
    return 0


def _wake_on_child() -> int:
    """A file descriptor that becomes readable when a child changes its state."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reader


def _die_with(supervisor: int) -> Callable[[], None]:
    """The child's code between fork and exec. libc is loaded before the fork."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def between_fork_and_exec() -> None:
        if libc is not None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(1)

    return between_fork_and_exec


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
