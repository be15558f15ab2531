"""A process of its own, where a test is about what one process knows."""

import pytest

import spark_eos._session
from spark_eos._session import Sessions


@pytest.fixture
def new_process(monkeypatch):
    """Call it, and what comes next runs in a process that has nothing open."""
    started = []

    def start():
        started.append(Sessions())
        monkeypatch.setattr(spark_eos._session, "_sessions", started[-1])

    yield start
    for sessions in started:
        sessions.close()
