"""What must not happen on the way and at the end, each planted in a clean history."""

from tests.unit.chaos.builders import batch, driver, fault, group, offsets, put_off, rows_of


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


def data_without_marker(events):
    rows_of(events, "transactions").append([0, 6, 8, 100, 2, "open"])


def offsets_without_marker(events):
    rows_of(events, "group_transactions").append([4, 6, 7, 102, 2, "open"])


def stable_below_end(events):
    events.append(offsets(52.9, {0: (6, 9), 1: (6, 6)}))


def stuck(events):
    events += [offsets(32.0 + i, {0: (6, 7)}) for i in range(12)]
    events.append(offsets(48.0, {0: (8, 8)}))


def stuck_under_many_faults(events):
    """For 230 s and longer, of which no more than an eighth is under faults."""
    put_off(events, 31.0, 240.0)
    faults_every_8_s(events, 32, 268)
    events += [offsets(float(at), {0: (6, 7)}) for at in range(32, 265)]


# --- recoveries and drivers ---


def slow_recovery(events):
    for event in events:
        if event["kind"] == "batch" and event["id"] == 1:
            event["end"] = 51.5


def no_recovery(events):
    events += [fault(2, "broker-kill", "start", 40.0), fault(2, "broker-kill", "end", 41.0)]


def driver_ended_with(outcome, text):
    def plant(events):
        events.append(driver(3, "end", 49.0, outcome=outcome, text=text))

    plant.__name__ = f"{outcome} {text[:40]}"
    return plant


CRASHED = "Python worker exited unexpectedly (crashed)"
UNASKED = "the query ended, and nobody had asked it to"
LAST_WORDS = (
    ("failed", "spark_eos.errors.OutcomeUnknownError: batch 1"),
    # One comes from the other.
    ("failed", "spark_eos.errors.RetriableError: x\nspark_eos.errors.CorruptLogError: y"),
    ("failed", "TypeError: x"),
    ("failed", UNASKED),
    ("failed", f"exit status -9, {UNASKED}"),
    ("killed", "exit status -11"),
)


def crashed_long_after_a_fault(events):
    """The only one was over at 21, and the bound of a recovery is 30 s."""
    events.append(driver(3, "end", 51.5, outcome="failed", text=CRASHED))


def failed_long_after_a_fault(events):
    text = "spark_eos.errors.FencedError: another driver"
    events.append(driver(3, "end", 51.5, outcome="failed", text=text))


def crashed_after_a_fault_of_no_process(events):
    for event in events:
        if event["kind"] == "fault":
            event["name"] = "broker-kill"
    events.append(driver(3, "end", 49.0, outcome="failed", text=CRASHED))


# --- what the history lacks ---


def not_drained(events):
    events[-1]["drained"] = False


def no_live_rows(events):
    events[:] = [event for event in events if event.get("reader") != "live"]


def driver_without_an_end(events):
    events.append(driver(3, "start", 40.0))


def last_offsets_too_old(events):
    """One partition is not in the last sample."""
    events.append(offsets(52.4, {1: (6, 6)}))
    events.remove(offsets(52.5, {0: (6, 6), 1: (6, 6)}))


def partition_never_sampled(events):
    for event in events:
        if event["kind"] == "offsets":
            del event["partitions"]["1"]


def last_group_too_old(events):
    events.remove(group(52.6, 4))


# What is planted: the kind of the anomaly, and words of its text.
PLANTED = {
    group_ahead_of_rows: ("group offset", "it is ahead of 2 rows"),
    group_ahead_of_what_began: ("group offset", "ahead of the begun"),
    group_behind_at_the_end: ("group offset", "it is behind 2 visible rows"),
    group_fell: ("group offset", "2 samples: fell from"),
    group_fell_under_many_faults: ("group offset", "fell from"),
    group_left_behind: ("group offset", "behind the complete"),
    group_left_behind_under_many_faults: ("group offset", "behind the complete"),
    open_transaction: ("hanging transaction", "the coordinators still list some"),
    data_without_marker: ("hanging transaction", "data on disk without a marker"),
    offsets_without_marker: ("hanging transaction", "data on disk without a marker"),
    stable_below_end: ("hanging transaction", "the last stable offset is below the end"),
    stuck: ("stuck last stable offset", "partition 0 stood at 6 for 11.0 s"),
    stuck_under_many_faults: ("stuck last stable offset", "partition 0 stood at 6 for 2"),
    slow_recovery: ("slow recovery", "1 took longer than 30.0 s"),
    no_recovery: ("slow recovery", "1 took longer than 30.0 s"),
    **{
        driver_ended_with(*words): ("needs an operator", "1 drivers ended for good")
        for words in LAST_WORDS
    },
    crashed_long_after_a_fault: ("needs an operator", "1 drivers ended for good"),
    failed_long_after_a_fault: ("needs an operator", "1 drivers ended for good"),
    crashed_after_a_fault_of_no_process: ("needs an operator", "1 drivers ended for good"),
    not_drained: ("not drained", "all read"),
    no_live_rows: ("incomplete history", "a reader on the way"),
    driver_without_an_end: ("incomplete history", "an end of the drivers"),
    last_offsets_too_old: ("incomplete history", "a sample of partition 0 after"),
    partition_never_sampled: ("incomplete history", "a sample of partition 1 after"),
    last_group_too_old: ("incomplete history", "a sample of the group after"),
}
# Those that other checks find too, each for a good reason.
FOUND_BY_OTHERS_TOO = {group_ahead_of_rows, group_behind_at_the_end, no_live_rows}
