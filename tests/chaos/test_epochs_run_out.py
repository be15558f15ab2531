"""Transactional ids that come to the end of their epochs, while drivers are killed."""

from contextlib import contextmanager

import pytest

from spark_eos._deadline import Deadline
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.coordinator.client import CoordinatorClient
from tests.epochs import LAST_EPOCH, wear

EPOCHS_LEFT = (4, 3, 2, 1)  # by sink partition, so that each step below meets an end of epochs


@contextmanager
def coordinator(scenario):
    servers = {"bootstrap.servers": scenario.bootstrap_servers}
    client = CoordinatorClient(ClientConfig.from_options(servers))
    try:
        yield client
    finally:
        client.close()


def described(scenario):
    """What the coordinator has of each sink partition, in their order."""
    query_id = (scenario.checkpoint / "metadata").read_text().split('"')[3]
    names = [f"spark-eos-{query_id}-{partition}" for partition in range(len(EPOCHS_LEFT))]
    with coordinator(scenario) as client:
        found = client.describe(names, Deadline.after_ms(20_000))
        return [description.identity for description in found.values()]


def use_up_epochs(scenario):
    """Of each id, but for a few."""
    found = zip(described(scenario), EPOCHS_LEFT, strict=True)
    with coordinator(scenario) as client:
        wear(client, {one.transactional_id: LAST_EPOCH - left for one, left in found})


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_driver_killed_while_epochs_run_out(scenario):
    scenario.add_files(1)
    scenario.run()
    use_up_epochs(scenario)
    worn = described(scenario)
    assert [LAST_EPOCH - identity.producer_epoch for identity in worn] == list(EPOCHS_LEFT)
    scenario.add_files(6)
    for step in ("decided", "prepared", "checked", "completed"):
        with scenario.driver(step) as driver:
            driver.wait_for(step)
            driver.kill()
    scenario.run()
    scenario.check()
    for old, new in zip(worn, described(scenario), strict=True):
        assert new.producer_id != old.producer_id, "its epochs did not run out"
        assert new.producer_epoch < LAST_EPOCH / 2
