"""The supervisor tells how a driver ended: as it was asked to, or otherwise. And ends them all."""

import time

import pytest

from chaos import driver
from chaos.history import History, load
from chaos.supervisor import Supervisor

LIMIT_S = 60
ENDS_AT_ONCE = """
import json, sys
from pathlib import Path
settings = json.loads(sys.argv[1])
Path(settings["result"]).write_text('{"ok": true, "text": ""}')
"""
ENDS_WHEN_ASKED = """
import json, sys, time
from pathlib import Path
settings = json.loads(sys.argv[1])
while not Path(settings["stop"]).exists():
    time.sleep(0.02)
Path(settings["result"]).write_text('{"ok": true, "text": ""}')
"""
DIES = "import os; os.kill(os.getpid(), 9)"


@pytest.fixture
def start(tmp_path, monkeypatch):
    """A supervisor of drivers that are this program."""
    started = []

    def begin(program):
        query = tmp_path / "query.py"
        query.write_text(program)
        monkeypatch.setattr(driver, "QUERY", query)
        history = History(tmp_path / "history.jsonl")
        found = Supervisor(tmp_path / "drivers", lambda _: {"python": "python"}, history)
        started.append((found, history))
        found.start()
        return found

    yield begin
    for found, history in started:
        found.close()
        history.close()


def first_end(tmp_path):
    """(outcome, text) of the first driver that ended."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        events = load(tmp_path / "history.jsonl")
        ends = [e for e in events if e["kind"] == "driver" and e["phase"] == "end"]
        if ends:
            return ends[0]["outcome"], ends[0]["text"]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_query_that_ends_unasked_has_failed(start, tmp_path):
    start(ENDS_AT_ONCE)
    assert first_end(tmp_path) == ("failed", "the query ended, and nobody had asked it to")


def test_driver_that_dies_unasked_has_failed(start, tmp_path):
    start(DIES)
    assert first_end(tmp_path) == ("failed", "exit status -9, and nobody had asked it to")


def test_driver_that_is_stopped_has_ended(start, tmp_path):
    start(ENDS_WHEN_ASKED).driver.stop()
    assert first_end(tmp_path) == ("ended", "")


def test_driver_that_is_stopped_at_the_end_has_ended(start, tmp_path):
    assert start(ENDS_WHEN_ASKED).stop()
    assert first_end(tmp_path) == ("ended", "")


def test_driver_that_is_killed_was_killed(start, tmp_path):
    start(ENDS_WHEN_ASKED).driver.kill()
    assert first_end(tmp_path) == ("killed", "exit status -9")


def test_old_driver_that_has_won_is_the_one_that_runs(start, tmp_path):
    """Nobody starts a third one beside it: faults are to hit the one that works."""
    found = start(ENDS_WHEN_ASKED)
    old = found.driver
    found.replace()
    found.driver.kill()
    first_end(tmp_path)
    deadline = time.monotonic() + LIMIT_S
    while found.driver is not old:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    old.kill()
    while found.driver is old:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    events = [e for e in load(tmp_path / "history.jsonl") if e["kind"] == "driver"]
    assert [e["number"] for e in events if e["phase"] == "start"] == [1, 2, 3]


def test_close_ends_all_drivers_also_where_one_makes_trouble(start, monkeypatch):
    found = start(ENDS_WHEN_ASKED)
    first = found.driver
    found.replace()
    second = found.driver

    def trouble():
        raise OSError("trouble")

    with monkeypatch.context() as patch:
        patch.setattr(second, "close", trouble)
        with pytest.raises(OSError, match="trouble"):
            found.close()
    assert not first.runs
    # The guard has ended the one that could not be closed.
    deadline = time.monotonic() + LIMIT_S
    while second.runs:
        assert time.monotonic() < deadline
        time.sleep(0.02)
