"""Every second driver has transactions that do not time out within a run's patience."""

from types import SimpleNamespace

import pytest

from chaos import workload
from chaos.workload import LONG_TIMEOUT_MS, NotNow, World


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(workload, "FIRST_BATCH_S", 0.2)
    found = World(tmp_path, None, rate=1, transaction_timeout_ms=12_000, master="local")
    found.cluster = SimpleNamespace(proxied_servers="", servers="")
    found.clock = SimpleNamespace(python="python")
    found.disk = SimpleNamespace(log=tmp_path)
    found.checkpoint = SimpleNamespace(last_completed_at=0.0)
    return found


def driver(number, stopped=lambda: None):
    return SimpleNamespace(number=number, runs=True, started_at=10.0 * number, stop=stopped)


@pytest.mark.parametrize(("number", "timeout_ms"), [(1, 12_000), (2, LONG_TIMEOUT_MS), (3, 12_000)])
def test_time_outs_take_turns(world, number, timeout_ms):
    options = world._settings(number)["options"]
    assert options["kafka.transaction.timeout.ms"] == str(timeout_ms)


def test_driver_that_times_out_soon_stays(world):
    world.supervisor = SimpleNamespace(driver=driver(3))
    assert world.driver_that_times_out().number == 3


@pytest.mark.parametrize("completed_at", [29.0, 31.0])
def test_another_one_is_replaced_and_has_to_complete_a_batch(world, completed_at):
    def stop():
        world.supervisor.driver = driver(3)
        world.checkpoint.last_completed_at = completed_at

    world.supervisor = SimpleNamespace(driver=driver(2, stop))
    if completed_at > 30.0:
        assert world.driver_that_times_out().number == 3
    else:
        with pytest.raises(NotNow, match="no batch of the driver after 2"):
            world.driver_that_times_out()
