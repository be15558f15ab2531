"""Drivers in processes of their own on one log: all get through, a killed one does no damage."""

import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from spark_eos._log import TransactionLog
from spark_eos._log.record import from_table
from tests.unit.log.builders import OTHER, QUERY, decide

ROOT = Path(__file__).parents[2]

DRIVER = """
import sys
from spark_eos._log import TransactionLog, retention
from spark_eos._log.files import FileStore
from spark_eos._log.retention import Retention, MaintenanceTask
from tests.unit.log.builders import decide

location, query_id, start, batches, pace = sys.argv[1:]
# Everything is due after each append, and everything is small.
if pace == "hectic":
    retention.FAN_IN, retention.KEEP_COMMITS = (2, 2, 2), 3
log = TransactionLog.open(location)
for batch_id in range(int(start), int(start) + int(batches)):
    decide(log, [batch_id], query_id=query_id)
    print(batch_id, flush=True)
    if pace == "hectic":
        retention.run_maintenance(FileStore(location, {}), list(MaintenanceTask), Retention())
    else:
        log.maintain()
    log.refresh()
"""


def start_driver(
    location: str, query_id: str, start: int, batches: int, pace: str
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, location, query_id, str(start), str(batches), pace],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("pace", ["usual", "hectic"])
def test_queries_in_several_processes_all_get_through(tmp_path: Path, pace: str) -> None:
    location = str(tmp_path / "log")
    batches = 40
    queries = [str(uuid.uuid4()) for _ in range(3)]
    drivers = [start_driver(location, query, 0, batches, pace) for query in queries]
    for driver in drivers:
        _, errors = driver.communicate(timeout=150)
        assert driver.returncode == 0, errors
    log = TransactionLog.open(location)
    rows = from_table(log.records())
    assert len(rows) == len(set(rows)) == len(queries) * (2 * batches + 2 * (batches - 1))
    for query in queries:
        assert log.last_batch_id(query) == batches - 1
        last = log.last_batch(query)
        assert last is not None
        assert len(last.pending) == 2


def test_driver_killed_in_maintenance_leaves_a_log_with_all_rows(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    location = str(tmp_path / "log")
    bystander = TransactionLog.open(location)
    expected = set(decide(bystander, range(3), query_id=OTHER))
    start = 0
    for _ in range(5):
        driver = start_driver(location, QUERY, start, 10_000, "hectic")
        assert driver.stdout is not None
        acknowledged = [int(driver.stdout.readline()) for _ in range(dice.randint(2, 6))]
        time.sleep(dice.uniform(0, 0.15))
        driver.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in driver.communicate(timeout=30)[0].split()]
        log = TransactionLog.open(location)
        last = log.last_batch(QUERY)
        assert last is not None
        # The append that was under way may be there as well.
        assert last.batch_id in (acknowledged[-1], acknowledged[-1] + 1)
        rows = from_table(log.records())
        assert len(rows) == len(set(rows))
        assert expected <= set(rows)
        decided = {r.batch_id for r in rows if r.query_id == QUERY}
        assert decided == set(range(last.batch_id + 1))
        assert len(rows) == len(expected) + 2 * len(decided) + 2 * (len(decided) - 1)
        start = last.batch_id + 1
    decide(bystander, [3], query_id=OTHER)
