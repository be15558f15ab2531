"""Test process. Start a broker's JVM: tied to this process, or detached from it."""

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
    """A started JVM, and the supervisor that ties it to this process, if any."""

    jvm: ProcessIdentity
    supervisor: subprocess.Popen[str] | None

    def end(self, number: signal.Signals, grace_s: float) -> None:
        """Send a signal and wait. Kill the JVM if it still runs after the grace time."""
        self.jvm.signal(number)
        if not self.jvm.wait(grace_s):
            self.jvm.signal(signal.SIGKILL)
            self.jvm.wait(REAP_TIMEOUT_S)
        if self.supervisor is not None:
            _close(self.supervisor)


Launch = Callable[[Sequence[str], Path], Launched]


def supervised(command: Sequence[str], console: Path) -> Launched:
    """Start a JVM that cannot outlive this process, however this process ends."""
    with console.open("ab") as output:
        # In a session of its own: Ctrl-C reaches the caller only, which stops the broker cleanly.
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
    """Start a JVM that keeps running after this process. The caller must keep its pid."""
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
        raise EmbeddedKafkaError(
            "the broker's supervisor printed no pid in {limit_s:.0f} s", limit_s=LAUNCH_TIMEOUT_S
        )
    return int(line)


def _identity(pid: int, console: Path) -> ProcessIdentity:
    identity = ProcessIdentity.of(pid)
    if identity is None:
        raise EmbeddedKafkaError("the broker's JVM ended at once. See {console}", console=console)
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
