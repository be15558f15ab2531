"""Each anomaly is planted in a clean history, and found; the clean one has none."""

import json

import pytest

from tests.chaos.bench.checker import CHECKS, judge
from tests.chaos.bench.history import History, load
from tests.chaos.bench.run import sort_out
from tests.chaos.bench.timing import Fault, longest_standstill, recoveries_of
from tests.unit.chaos.builders import (
    clean,
    driver,
    fault,
    group,
    offsets,
    rows_of,
    sorted_by_time,
    without,
)


def kinds(events):
    return {anomaly.kind for anomaly in judge(sorted_by_time(events)).anomalies}


def plant_lost(events):
    rows_of(events, "seen", "final")[:] = [
        row for row in rows_of(events, "seen", "final") if row[3] not in ("a:2", "a:3")
    ]


def plant_duplicate(events):
    rows_of(events, "seen", "final").append([0, 6, "a", "a:3"])
    rows_of(events, "transactions").append([0, 6, 6, 100, 1, "commit"])


def plant_poison(events):
    rows_of(events, "seen", "final").append([0, 6, "a", "poison:1"])
    rows_of(events, "transactions").append([0, 6, 6, 100, 1, "commit"])


def plant_row_taken_back(events):
    rows_of(events, "seen", "live").append([0, 3, "a", "a:9"])
    events.append({"kind": "input", "at": 2.0, "rows": []})


def plant_visible_abort(events):
    rows_of(events, "transactions")[3][5] = "abort"


def plant_visible_outside_of_any_transaction(events):
    del rows_of(events, "transactions")[3]


def plant_undecided_commit(events):
    rows_of(events, "transactions").append([0, 6, 6, 100, 7, "commit"])


def plant_torn_batch(events):
    rows = rows_of(events, "seen", "final")
    rows.remove([1, 4, "b", "b:3"])


def plant_torn_decision(events):
    rows_of(events, "transactions").append([0, 6, 6, 300, 0, "abort"])
    rows_of(events, "decisions").append([1, "t-2", 300, 0, "PrepareCommit"])


def plant_reorder(events):
    rows = rows_of(events, "seen", "final")
    rows[2][3], rows[3][3] = rows[3][3], rows[2][3]


def plant_scattered_key(events):
    row = next(row for row in rows_of(events, "seen", "final") if row[3] == "a:3")
    row[0], row[1] = 1, 6
    rows_of(events, "transactions").append([1, 6, 6, 101, 1, "commit"])


def plant_group_ahead(events):
    events.append(group(50.0, 5))


def plant_group_behind_at_the_end(events):
    events.append(group(50.0, 3))


def plant_group_fell(events):
    events.append(group(46.0, 3))
    events.append(group(47.0, 4))


def plant_group_left_behind(events):
    """Batch 1 is complete at 30, and ten seconds later the group is still where batch 0 ends."""
    events.append(group(41.0, 2))


def plant_open_transaction(events):
    rows_of(events, "open").append(["t-0", "Ongoing"])


def plant_data_without_marker(events):
    rows_of(events, "transactions").append([0, 6, 8, 100, 2, "open"])


def plant_stable_below_end(events):
    events.append(offsets(49.0, {0: (6, 9), 1: (6, 6)}))


def plant_stuck(events):
    events += [offsets(32.0 + i, {0: (6, 7)}) for i in range(12)]
    events.append(offsets(48.0, {0: (8, 8)}))


def plant_slow_recovery(events):
    for event in events:
        if event["kind"] == "batch" and event["id"] == 1:
            event["end"] = 51.5


def plant_no_recovery(events):
    events += [fault(2, "broker-kill", "start", 40.0), fault(2, "broker-kill", "end", 41.0)]


def plant_operator(events):
    text = "spark_eos.errors.OutcomeUnknownError: batch 1"
    events.append(driver(3, "end", 49.0, outcome="failed", text=text))


def plant_not_drained(events):
    events[-1]["drained"] = False


PLANTED = {
    plant_lost: "lost",
    plant_duplicate: "duplicated",
    plant_poison: "aborted read",
    plant_row_taken_back: "aborted read",
    plant_visible_abort: "aborted read",
    plant_visible_outside_of_any_transaction: "aborted read",
    plant_undecided_commit: "wrong commit",
    plant_torn_batch: "torn batch",
    plant_torn_decision: "torn batch",
    plant_reorder: "reordered",
    plant_scattered_key: "reordered",
    plant_group_ahead: "group offset",
    plant_group_behind_at_the_end: "group offset",
    plant_group_fell: "group offset",
    plant_group_left_behind: "group offset",
    plant_open_transaction: "hanging transaction",
    plant_data_without_marker: "hanging transaction",
    plant_stable_below_end: "hanging transaction",
    plant_stuck: "stuck last stable offset",
    plant_slow_recovery: "slow recovery",
    plant_no_recovery: "slow recovery",
    plant_operator: "needs an operator",
    plant_not_drained: "not drained",
}


def test_clean_history_has_no_anomaly():
    assert judge(clean()).anomalies == []


@pytest.mark.parametrize(
    ("plant", "kind"), PLANTED.items(), ids=lambda x: getattr(x, "__name__", "")
)
def test_planted_anomaly_is_found(plant, kind):
    events = clean()
    plant(events)
    assert kind in kinds(events)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_check_can_speak(check):
    """A check that no planted history makes speak may as well not be there."""

    def says(plant):
        events = clean()
        plant(events)
        return list(check(sort_out(sorted_by_time(events))))

    assert any(says(plant) for plant in PLANTED)


@pytest.mark.parametrize(
    "kind",
    ["input", "seen", "batch", "offsets", "group", "transactions", "decisions", "open", "end"],
)
def test_history_that_lacks_something_proves_nothing(kind):
    assert "incomplete history" in kinds(without(clean(), kind))


def test_batch_lost_to_its_time_out_and_decided_again_is_clean():
    events = clean()
    rows_of(events, "transactions").append([0, 6, 7, 100, 5, "abort"])
    rows_of(events, "decisions")[2:2] = [
        [1, "t-0", 100, 5, "PrepareCommit"],
        [1, "t-0", 100, 5, "CompleteAbort"],
    ]
    assert judge(events).anomalies == []


def test_old_answer_of_a_coordinator_under_a_fault_is_no_anomaly():
    events = clean()
    events.append(group(21.5, 2))
    events.append(group(21.6, 0))
    assert kinds(events) == set()


def test_faults_before_a_recovery_are_one_recovery_from_the_last_ones_end():
    first, second = Fault(1, "a", "", 10.0, 11.0), Fault(2, "b", "", 12.0, 15.0)
    third = Fault(3, "c", "", 30.0, 30.0)
    found = recoveries_of([first, second, third], [(7, 0.0, 20.0), (8, 0.0, 31.0)])
    assert [(r.name, r.seconds, r.batch) for r in found] == [("a + b", 5.0, 7), ("c", 1.0, 8)]


def test_standstill_under_a_fault_does_not_count():
    samples = [(float(at), 5, 9) for at in range(20)]
    assert longest_standstill(samples, [])[0] == 19.0
    assert longest_standstill(samples, [Fault(1, "a", "", 3.0, 12.0)])[0] == 7.0
    assert longest_standstill([(at, at, 99) for at in range(20)], [])[0] == 0.0
    assert longest_standstill([(at, 5, 5) for at in range(20)], [])[0] == 0.0


def test_history_is_read_back_as_it_was_written(tmp_path):
    history = History(tmp_path / "seed" / "history.jsonl")
    history.add("end", drained=True, why="")
    history.close()
    with history.path.open("a") as file:
        file.write('{"kind": "half')
    (event,) = load(history.path)
    assert event["kind"] == "end"
    assert event["drained"] is True
    assert {"at", "wall"} <= event.keys()
    assert json.loads(history.path.read_text().splitlines()[0]) == event
