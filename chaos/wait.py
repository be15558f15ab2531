"""Waits with a limit."""

import time

POLL_S = 0.05


def within(timeout, condition):
    """Wait for a condition; whether it came true in time."""
    deadline = time.monotonic() + timeout
    while not (true := condition()) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return true
