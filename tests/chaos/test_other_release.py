"""A query that one release has begun and another one goes on with, in both directions.

The log's records, the checkpoint and the options are the same in both. Each release is killed with
a decided batch that the other one has to complete.
"""

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.chaos.driver import Drivers

ROOT = Path(__file__).parents[2]
# The last state in which the packages had their older names, and a batch its older classes.
OLDER = "e27606802aa464da93e1161c8976ce74cc85bc2d"
RECORDS = 600


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    """Drivers that run the older release."""
    packed = subprocess.run(
        ["git", "archive", OLDER, "spark_eos", "pyspark_txnkafka"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if packed.returncode != 0:
        pytest.skip(f"this is no git checkout with {OLDER}")
    folder = tmp_path_factory.mktemp("older")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as tar:
        tar.extractall(folder, filter="data")
    where = subprocess.run(
        [sys.executable, "-c", "import spark_eos.sink.writer as w; print(w.__file__)"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert where.stdout.startswith(str(folder))
    found = Drivers(tmp_path_factory.mktemp("older-drivers"), python_path=folder)
    yield found
    found.close()


@pytest.fixture(params=["files", "topic and group"])
def settings(request, scenario, topic):
    """What the query reads: files, or a topic whose offsets a group has too."""
    if request.param == "files":
        scenario.add_files(6)
        return {}
    source = topic(2)
    producer = Producer({"bootstrap.servers": scenario.bootstrap_servers})
    scenario.rows = [str(number) for number in range(RECORDS)]
    for number in scenario.rows:
        producer.produce(source, number, partition=int(number) % 2)
    assert producer.flush(30) == 0
    scenario.options["group.id"] = f"group-of-{source}"
    return {"read_topic": source, "offsets_per_batch": RECORDS // 6}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_each_release_completes_what_the_other_has_decided(scenario, older, settings):
    newer = scenario.drivers
    for release in (older, newer, older, newer):
        scenario.drivers = release
        with scenario.driver("decided", **settings) as driver:
            driver.wait_for("decided")
            driver.kill()
    scenario.drivers = older
    with scenario.driver("completed", **settings) as driver:
        driver.wait_for("completed")
        driver.kill()
    scenario.drivers = newer
    scenario.run(**settings)
    scenario.check()
