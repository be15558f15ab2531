"""What must not happen on the way and at the end, each planted in a clean history."""

from tests.unit.chaos.builders import batch, fault, group, offsets, put_off, rows_of, stopped


def faults_every_8_s(events, start, end):
    """Each lasts one second; behind the last of them a batch without rows completes."""
    starts = range(start, end, 8)
    for number, at in enumerate(starts, 10):
        events.append(fault(number, "worker-kill", "start", float(at)))
        events.append(fault(number, "worker-kill", "end", at + 1.0))
    events.append(batch(2, 29.0, starts[-1] + 2.0, 4))


# --- the group ---


def group_ahead_of_rows(events):
    """Rows that no batch has, and a group that stands behind them."""
    rows_of(events, "input").extend([[0, 4, "a", "a:4"], [1, 4, "b", "b:4"]])
    events.append(group(52.9, 5))


def group_ahead_of_what_began(events):
    events.append(group(52.9, 5))


def group_behind_at_the_end(events):
    events.append(group(52.9, 3))


def group_fell(events):
    """Batch 1 is complete at 30: for ten seconds a group that stands lower is not behind."""
    events += [group(32.0, 4), group(33.0, 3), group(34.0, 4)]


def group_fell_under_many_faults(events):
    faults_every_8_s(events, 32, 56)
    put_off(events, 45.0, 15.0)
    events += [group(31.5, 4), *(group(float(at), 3) for at in range(33, 50)), group(51.0, 4)]


def group_fell_on_disk(events):
    """For the shortest time, under a fault, and told to nobody."""
    rows_of(events, "group_moves")[2:2] = [[4, 2, 1, 1]]


def group_left_behind(events):
    """Batch 1 is complete at 30, and ten seconds later the group is still where batch 0 ends."""
    events.append(group(41.0, 2))


def group_left_behind_under_many_faults(events):
    put_off(events, 45.0, 100.0)
    faults_every_8_s(events, 32, 72)
    events += [group(float(at), 2) for at in range(33, 70)]


# --- transactions that are open ---


def open_transaction(events):
    rows_of(events, "open").append(["t-0", "Ongoing"])


def left_by_a_stop(events):
    """The stop itself is no excuse, and neither is a fault that was over before."""
    put_off(events, 22.5, 20.0)
    events += [fault(7, "driver-stop", "start", 43.0), fault(7, "driver-stop", "end", 45.0)]
    events.append(stopped(44.9, in_tasks=True))


def data_without_marker(events):
    rows_of(events, "transactions").append([0, 6, 8, 100, 2, "open"])


def offsets_without_marker(events):
    rows_of(events, "group_transactions").append([4, 6, 7, 102, 2, "open"])


def stable_below_end(events):
    events.append(offsets(52.9, {0: (6, 9), 1: (6, 6)}))


def ends_at_8(events):
    """In the last sample: what was open has ended by then."""
    last = max((e for e in events if e["kind"] == "offsets"), key=lambda event: event["at"])
    last["partitions"]["0"] = [8, 8]


def stuck(events):
    events += [offsets(32.0 + i, {0: (6, 7)}) for i in range(12)]
    ends_at_8(events)


def stuck_under_many_faults(events):
    """For 230 s and longer, of which no more than an eighth is under faults."""
    put_off(events, 31.0, 240.0)
    faults_every_8_s(events, 32, 268)
    events += [offsets(float(at), {0: (6, 7)}) for at in range(32, 265)]
    ends_at_8(events)


def orphan(events, until):
    """At offset 5 of partition 0, before batch 1 is complete, and open until long after that."""
    events[0]["bounds"]["stable_s"] = 120.0
    for event in events:
        if event["kind"] == "offsets" and event["at"] == 22.0:
            event["partitions"]["0"] = [3, 6]
    events.remove(offsets(31.0, {0: (6, 6), 1: (6, 6)}))
    put_off(events, 45.0, until - 31.0)
    events += [offsets(float(at), {0: (5, 8), 1: (6, 6)}) for at in range(31, until)]
    ends_at_8(events)


def orphan_in_the_calm(events):
    """No look is wrong until the batch is complete for 10 s."""
    orphan(events, 71)


def orphan_under_many_faults(events):
    """They excuse it for as long as a recovery may take, 30 s, and no longer."""
    orphan(events, 71)
    faults_every_8_s(events, 32, 72)


# What is planted: the kind of the anomaly, and words of its text.
PLANTED = {
    group_ahead_of_rows: ("group offset", "it is ahead of 2 rows"),
    group_ahead_of_what_began: ("group offset", "ahead of the begun"),
    group_behind_at_the_end: ("group offset", "it is behind 2 visible rows"),
    group_fell: ("group offset", "2 samples: fell from"),
    group_fell_under_many_faults: ("group offset", "fell from"),
    group_fell_on_disk: ("group offset", "1 moves on disk go back"),
    group_left_behind: ("group offset", "behind the complete"),
    group_left_behind_under_many_faults: ("group offset", "behind the complete"),
    open_transaction: ("hanging transaction", "the coordinators still list some"),
    left_by_a_stop: ("hanging transaction", "1 were left by a stop in order"),
    data_without_marker: ("hanging transaction", "data on disk without a marker"),
    offsets_without_marker: ("hanging transaction", "data on disk without a marker"),
    stable_below_end: ("hanging transaction", "the last stable offset is below the end"),
    stuck: ("stuck last stable offset", "partition 0 stood at 6 for 11.0 s"),
    stuck_under_many_faults: ("stuck last stable offset", "partition 0 stood at 6 for 2"),
    orphan_in_the_calm: ("stuck last stable offset", "31 samples: below a complete"),
    orphan_under_many_faults: ("stuck last stable offset", "11 samples: below a complete"),
}
# Those that other checks find too, each for a good reason.
FOUND_BY_OTHERS_TOO = {group_ahead_of_rows, group_behind_at_the_end}
