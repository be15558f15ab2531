"""Each anomaly is planted in a clean history, and found; the clean one has none."""

import json

import pytest

from tests.chaos.bench.checker import CHECKS, judge
from tests.chaos.bench.history import History, load
from tests.chaos.bench.run import sort_out
from tests.chaos.bench.timing import Fault, longest_standstill, recoveries_of
from tests.unit.chaos import planted_in_progress, planted_in_rows
from tests.unit.chaos.builders import clean, group, put_off, rows_of, seen, sorted_by_time, without

PLANTED = planted_in_rows.PLANTED | planted_in_progress.PLANTED
FOUND_BY_OTHERS_TOO = planted_in_rows.FOUND_BY_OTHERS_TOO | planted_in_progress.FOUND_BY_OTHERS_TOO


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


def test_batch_lost_to_its_time_out_and_decided_again_is_clean():
    events = clean()
    rows_of(events, "transactions").append([0, 6, 7, 100, 5, "abort"])
    rows_of(events, "decisions")[3:3] = [
        [1, "t-0", 100, 5, "PrepareCommit"],
        [1, "t-0", 100, 5, "CompleteAbort"],
    ]
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


def test_row_that_a_reader_sees_once_more_was_seen_in_time():
    events = clean()
    events.append(seen(99.0, "live", rows_of(events, "seen", "live")))
    assert found(events) == []


def test_faults_before_a_recovery_are_one_recovery_from_the_last_ones_end():
    first, second = Fault(1, "a", "", 10.0, 11.0), Fault(2, "b", "", 12.0, 15.0)
    third = Fault(3, "c", "", 30.0, 30.0)
    found = recoveries_of([first, second, third], [(7, 0.0, 20.0), (8, 0.0, 31.0)])
    assert [(r.name, r.seconds, r.batch) for r in found] == [("a + b", 5.0, 7), ("c", 1.0, 8)]


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
