"""What is below a driver ends with the one who started it, also what is frozen."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from chaos.process import kill, start_time, with_all_below

LIMIT_S = 60
ROOT = Path(__file__).parents[3]
# A driver whose child has a group of its own, as Python workers of Spark have.
DRIVER = """
import os, subprocess, time
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
print(os.getpid(), child.pid, flush=True)
time.sleep(1000)
"""
STARTER = f"""
import subprocess, sys, time
from chaos.process import Guard
guard = Guard()
driver = subprocess.Popen(
    [sys.executable, "-c", {DRIVER!r}], start_new_session=True, stdout=subprocess.PIPE, text=True
)
told = driver.stdout.readline()
guard.watch(driver.pid)
print(told, flush=True)
time.sleep(1000)
"""


def state(pid):
    """R, S, T, ..., or None where it is gone; one that nobody has buried yet counts as gone."""
    try:
        found = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if found in "ZX" else found


def wait_for(condition):
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def start(program):
    """A program that tells the pids of a driver and its child."""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    return process, [int(pid) for pid in process.stdout.readline().split()]


def test_frozen_driver_and_its_child_end_with_the_killed_starter():
    starter, pids = start(STARTER)
    seen = {(pid, start_time(pid)) for pid in pids}
    try:
        with starter:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            wait_for(lambda: [state(pid) for pid in pids] == ["T", "T"])
            starter.kill()
        wait_for(lambda: [state(pid) for pid in pids] == [None, None])
    finally:
        kill(seen)


def test_child_stays_on_the_list_when_its_driver_is_gone():
    driver, (pid, child) = start(DRIVER)
    try:
        with driver:
            seen = with_all_below({(pid, start_time(pid))})
            assert {one for one, _ in seen} == {pid, child}
            driver.kill()
        assert with_all_below(seen) == {(child, start_time(child))}
    finally:
        os.kill(child, signal.SIGKILL)
    wait_for(lambda: state(child) is None)


def test_process_with_the_id_of_one_that_is_gone_is_left_alone():
    with subprocess.Popen(["sleep", "1000"]) as other:
        mistaken = {(other.pid, "1")}
        assert with_all_below(mistaken) == set()
        kill(mistaken)
        assert state(other.pid) is not None
        other.kill()
