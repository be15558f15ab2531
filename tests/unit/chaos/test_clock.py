"""A clock that is said to jump must jump, back and forth, under a process that runs."""

import subprocess
import sys
import time

import pytest

from chaos.clock import SHARED_MEMORY, WallClock

LIMIT_S = 60
PROGRAM = """
import sys, time
for _ in sys.stdin:
    print(time.time(), time.monotonic(), flush=True)
"""


@pytest.fixture
def clock(tmp_path):
    found = WallClock(tmp_path)
    if not found.works:
        pytest.skip("libfaketime does not work here")
    return found


def test_wall_clock_of_a_running_process_jumps_and_its_monotonic_clock_does_not(clock):
    assert clock.python != sys.executable
    with started(clock) as process:
        for seconds in (0, 3600, -86_400, 0):
            clock.set(seconds)
            deadline = time.monotonic() + LIMIT_S
            while abs(offset(process) - seconds) > 60:
                assert time.monotonic() < deadline
                time.sleep(0.1)  # it looks once a second
        process.stdin.close()


def test_shared_memory_of_a_killed_process_is_removed_and_of_a_running_one_is_not(clock):
    with started(clock) as killed, started(clock) as running:
        for process in (killed, running):
            offset(process)  # it is up
        of_killed, of_running = left_by(killed), left_by(running)
        killed.kill()
        killed.wait()
        assert of_killed == left_by(killed) != []
        clock.close()
        assert left_by(killed) == []
        assert left_by(running) == of_running != []
        running.stdin.close()


def started(clock):
    return subprocess.Popen(
        [clock.python, "-u", "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def left_by(process):
    return sorted(SHARED_MEMORY.glob(f"*faketime*_{process.pid}"))


def offset(process):
    """How far its wall clock is off. Its monotonic clock never is."""
    before = time.monotonic()
    process.stdin.write("\n")
    process.stdin.flush()
    wall, monotonic = map(float, process.stdout.readline().split())
    assert before <= monotonic <= time.monotonic()
    return wall - time.time()
