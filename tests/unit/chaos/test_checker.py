"""Each anomaly is planted in a clean history, and found; the clean one has none."""

import json

import pytest

from chaos.checker import CHECKS, judge
from chaos.history import History, load
from chaos.run import sort_out
from chaos.timing import Fault, longest_standstill, recoveries_of
from tests.unit.chaos import planted_in_drivers, planted_in_progress, planted_in_rows
from tests.unit.chaos.builders import (
    clean,
    fault,
    group,
    put_off,
    rows_of,
    seen,
    sorted_by_time,
    stopped,
    without,
)

PLACES = (planted_in_rows, planted_in_progress, planted_in_drivers)
PLANTED = {plant: what for place in PLACES for plant, what in place.PLANTED.items()}
FOUND_BY_OTHERS_TOO = {plant for place in PLACES for plant in place.FOUND_BY_OTHERS_TOO}


def planted(plant):
    events = clean()
    plant(events)
    return sorted_by_time(events)


def found(events):
    return [(anomaly.kind, anomaly.text) for anomaly in judge(sorted_by_time(events)).anomalies]


def test_clean_history_has_no_anomaly():
    assert judge(clean()).anomalies == []


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_planted_anomaly_is_found(plant):
    kind, words = PLANTED[plant]
    anomalies = found(planted(plant))
    assert any(kind == one and words in text for one, text in anomalies), anomalies
    # And by the one check that looks for it: else it could go, and nobody would notice.
    assert (len(anomalies) > 1) == (plant in FOUND_BY_OTHERS_TOO), anomalies


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_check_can_speak(check):
    """A check that no planted history makes speak may as well not be there."""
    assert any(list(check(sort_out(planted(plant)))) for plant in PLANTED)


@pytest.mark.parametrize(
    ("kind", "reader"),
    [
        *[("input", None), ("batch", None), ("offsets", None), ("group", None), ("driver", None)],
        *[("transactions", None), ("group_transactions", None), ("decisions", None)],
        *[("open", None), ("end", None), ("seen", "final"), ("seen", "live")],
    ],
)
def test_history_that_lacks_something_proves_nothing(kind, reader):
    assert "incomplete history" in dict(found(without(clean(), kind, reader)))


@pytest.mark.parametrize("excuse", ["in the commit", "a broker was away"])
def test_what_a_stop_may_leave_open(excuse):
    events = clean()
    put_off(events, 22.5, 20.0)
    events.append(stopped(44.9, in_tasks=excuse != "in the commit"))
    if excuse == "a broker was away":
        events += [fault(7, "broker-kill", "start", 42.0), fault(7, "broker-kill", "end", 43.0)]
    assert found(events) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("restored-backup", planted_in_drivers.STALE),
        ("copied-checkpoint", planted_in_drivers.STALE),
        ("copied-checkpoint", planted_in_drivers.FENCED),
    ],
)
def test_driver_that_stops_on_a_state_that_is_not_its_own_is_right(name, text):
    events = clean()
    planted_in_drivers.people(events, name, "failed", text)
    assert found(events) == []


def test_history_from_before_the_moves_of_the_group_were_read_is_judged_without():
    assert judge(without(clean(), "group_moves")).anomalies == []


def test_run_without_faults_that_was_asked_for_none_is_clean():
    events = without(clean(), "fault")
    events[0]["nemeses"] = {}
    assert judge(events).anomalies == []


def test_row_seen_late_near_a_fault_has_the_bound_of_a_recovery():
    events = clean()
    next(e for e in events if e.get("reader") == "live" and e["at"] > 30)["at"] = 45.0
    assert found(events) == []


def test_batch_lost_to_its_time_out_and_decided_again_is_clean():
    events = clean()
    rows_of(events, "transactions").append([0, 6, 7, 100, 5, "abort"])
    rows_of(events, "decisions")[3:3] = [
        [1, "t-0", 100, 5, "PrepareCommit"],
        [1, "t-0", 100, 5, "CompleteAbort"],
    ]
    assert judge(events).anomalies == []


def test_partition_lost_to_its_time_out_and_empty_when_it_runs_again_is_clean():
    events = clean()
    rows_of(events, "transactions").append([0, 6, 7, 300, 5, "abort"])
    statuses = ("PrepareCommit", "CompleteAbort", "Empty")
    rows_of(events, "decisions")[3:3] = [[1, "t-2", 300, 5, status] for status in statuses]
    assert judge(events).anomalies == []


def test_old_answer_of_a_coordinator_under_a_fault_is_no_anomaly():
    events = clean()
    events.append(group(21.5, 2))
    events.append(group(21.6, 0))
    assert found(events) == []


def test_old_answers_now_and_then_are_no_anomaly():
    """Each is excused on its own, however far the first of them is back."""
    events = clean()
    planted_in_progress.faults_every_8_s(events, 32, 56)
    put_off(events, 45.0, 15.0)
    for at in (33.0, 41.0, 48.0):
        events += [group(at, 4), group(at + 0.5, 3), group(at + 1.0, 4)]
    assert found(events) == []


@pytest.mark.parametrize("until", [40, 51])
def test_orphan_that_is_ended_soon_is_no_anomaly(until):
    """In the calm within 10 s of the batch's end, near a fault later."""
    events = clean()
    planted_in_progress.orphan(events, until)
    if until > 40:
        planted_in_progress.faults_every_8_s(events, 32, 48)
    assert found(events) == []


def test_look_counts_from_the_moment_at_which_it_asked():
    events = clean()
    planted_in_progress.orphan(events, 40)
    late = {"asked": 39.9, "at": 45.0, "partitions": {"0": [5, 8]}}
    events.append({"kind": "offsets", **late})
    assert found(events) == []
    events[-1]["asked"] = 40.1
    assert [kind for kind, _ in found(events)] == ["stuck last stable offset"]


def test_row_that_a_reader_sees_once_more_was_seen_in_time():
    events = clean()
    events.append(seen(99.0, "live", rows_of(events, "seen", "live")))
    assert found(events) == []


def test_faults_before_a_recovery_are_one_recovery_from_the_last_ones_end():
    first, second = Fault(1, "a", "", 10.0, 11.0), Fault(2, "b", "", 12.0, 15.0)
    third = Fault(3, "c", "", 30.0, 30.0)
    found = recoveries_of([first, second, third], [(7, 0.0, 20.0), (8, 0.0, 31.0)], 5.0)
    assert [(r.name, r.seconds, r.batch) for r in found] == [("a + b", 5.0, 7), ("c", 1.0, 8)]


def test_fault_behind_the_bound_of_the_one_before_is_a_recovery_of_its_own():
    first, second = Fault(1, "a", "", 10.0, 12.0), Fault(2, "b", "", 17.1, 18.0)
    found = recoveries_of([first, second], [(7, 0.0, 20.0)], 5.0)
    assert [(r.name, r.seconds, r.batch) for r in found] == [("a", 8.0, 7), ("b", 2.0, 7)]


def test_standstill_under_a_fault_does_not_count():
    samples = [(float(at), 5, 9) for at in range(20)]
    assert longest_standstill(samples, [])[0] == 19.0
    one, other = Fault(1, "a", "", 3.0, 12.0), Fault(2, "b", "", 10.0, 14.0)
    assert longest_standstill(samples, [one])[0] == 10.0
    assert longest_standstill(samples, [one, other])[0] == 8.0
    assert longest_standstill(samples, [Fault(1, "a", "", -5.0, 2.0)])[0] == 17.0
    assert longest_standstill(samples, [Fault(1, "a", "", 17.0, 30.0)])[0] == 17.0
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
