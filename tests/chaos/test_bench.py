"""The chaos bench, in a short form for every run and in a long one with all faults.

What it judges by is tested on its own, with planted anomalies: tests/unit/chaos.
"""

import pytest

from chaos import bench
from chaos.checker import judge
from chaos.history import load

SHORT = ("driver-kill-at", "worker-kill-at", "broker-kill", "net-cut-after", "net-repeat")
# A driver restarts in ten seconds; on a machine that is busy with other things in a hundred.
BOUND_S = 240
SEED = 886


def check(verdict, report, least_faults):
    text = report.with_suffix(".md").read_text()
    assert verdict.anomalies == [], text
    assert len(verdict.run.faults) >= least_faults, text
    assert report.exists()


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_a_few_faults_leave_every_row_exactly_once(tmp_path):
    """The seed is one that starts with a driver killed right behind its decision."""
    verdict, report = bench.run(
        SEED,
        0,
        SHORT,
        faults=3,
        master="local[2,4]",
        timeout_ms=25_000,
        bound_s=BOUND_S,
        build=tmp_path,
    )
    check(verdict, report, least_faults=3)
    assert verdict.run.faults[0].target.startswith("driver 1 at 'decided'")
    # The same history, with one row taken out of what the reader saw, must be condemned.
    events = load(tmp_path / str(SEED) / "history.jsonl")
    for event in events:
        if event["kind"] == "seen" and event["reader"] == "final":
            event["rows"].pop()
    assert "lost" in {anomaly.kind for anomaly in judge(events).anomalies}


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [3, 4])
def test_all_faults_leave_every_row_exactly_once(tmp_path, seed):
    verdict, report = bench.run(seed, 8, bound_s=BOUND_S, build=tmp_path)
    check(verdict, report, least_faults=5)
