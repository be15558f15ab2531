"""The two ways to start a broker's JVM: tied to this process, or left to run on its own."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_eos.testing._embedded import supervisor
from spark_eos.testing._embedded.failure import EmbeddedKafkaError
from spark_eos.testing._embedded.process import ProcessIdentity

LAUNCH_TIMEOUT_S = 20.0
REAP_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Launched:
    """A JVM that was started, and the supervisor that ties it to this process, if any."""

    jvm: ProcessIdentity
    supervisor: subprocess.Popen[str] | None

    def end(self, number: signal.Signals, grace_s: float) -> None:
        """Send a signal and wait; what is still there after the grace is killed."""
        self.jvm.signal(number)
        if not self.jvm.wait(grace_s):
            self.jvm.signal(signal.SIGKILL)
            self.jvm.wait(REAP_TIMEOUT_S)
        self.release()

    def release(self) -> None:
        """Let go of the supervisor, which ends the JVM if it is still there."""
        if self.supervisor is not None:
            _close(self.supervisor)


Launch = Callable[[Sequence[str], Path], Launched]


def supervised(command: Sequence[str], console: Path) -> Launched:
    """Start a JVM that cannot outlive this process, however this process ends."""
    with console.open("ab") as output:
        # A session of its own: Ctrl-C is for the caller, which then stops the broker in order.
        watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__, str(os.getpid()), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            start_new_session=True,
        )
    try:
        return Launched(_identity(_told_pid(watcher), console), watcher)
    except BaseException:
        _close(watcher)
        raise


def detached(command: Sequence[str], console: Path) -> Launched:
    """Start a JVM that goes on after this process. Its pid must be kept by the caller."""
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    pid = os.posix_spawn(
        command[0],
        list(command),
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(console), append, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    return Launched(_identity(pid, console), None)


def _told_pid(watcher: subprocess.Popen[str]) -> int:
    assert watcher.stdout is not None  # noqa: S101 - opened as a pipe above
    ready, _, _ = select.select([watcher.stdout], [], [], LAUNCH_TIMEOUT_S)
    line = watcher.stdout.readline() if ready else ""
    if not line:
        raise EmbeddedKafkaError(f"the broker's supervisor gave no pid in {LAUNCH_TIMEOUT_S:.0f} s")
    return int(line)


def _identity(pid: int, console: Path) -> ProcessIdentity:
    identity = ProcessIdentity.of(pid)
    if identity is None:
        raise EmbeddedKafkaError(f"the broker's JVM ended at once, see {console}")
    return identity


def _close(watcher: subprocess.Popen[str]) -> None:
    for pipe in (watcher.stdin, watcher.stdout):
        if pipe is not None:
            pipe.close()
    try:
        watcher.wait(REAP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        watcher.kill()
        watcher.wait()
