"""Recoveries and drivers as they must not end, and histories that lack something: each planted in a
clean history.
"""

from tests.unit.chaos.builders import batch, driver, fault, group, offsets, put_off, rows_of

# --- recoveries and drivers ---


def slow_recovery(events):
    for event in events:
        if event["kind"] == "batch" and event["id"] == 1:
            event["end"] = 51.5


def no_recovery(events):
    events += [fault(2, "broker-kill", "start", 40.0), fault(2, "broker-kill", "end", 41.0)]


def hung_until_it_was_killed(events):
    """From 32 on, with a bound of 30 s: the kill that freed it is not what it recovered from."""
    put_off(events, 31.5, 90.0)
    events += [fault(2, "net-drop", "start", 31.0), fault(2, "net-drop", "end", 32.0)]
    events += [fault(3, "driver-kill", "start", 100.0), fault(3, "driver-kill", "end", 100.0)]
    events.append(batch(2, 31.0, 108.0, 4))


def driver_ended_with(outcome, text):
    def plant(events):
        events.append(driver(3, "end", 49.0, outcome=outcome, text=text))

    plant.__name__ = f"{outcome} {text[:40]}"
    return plant


CRASHED = "Python worker exited unexpectedly (crashed)"
FENCED = "spark_eos.errors.FencedError: another driver"
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


def another_fault(events, name):
    """Instead of the one that is over at 21."""
    for event in events:
        if event["kind"] == "fault":
            event["name"] = name


def crashed_long_after_a_fault(events):
    another_fault(events, "worker-kill")
    events.append(driver(3, "end", 51.5, outcome="failed", text=CRASHED))


def failed_long_after_a_fault(events):
    put_off(events, 45.0, 60.0)
    events.append(driver(3, "end", 91.5, outcome="failed", text=FENCED))


def fenced_among_faults_that_leave_one_driver(events):
    """The only one that leaves two was over at 21, a minute and more before."""
    put_off(events, 45.0, 60.0)
    starts = {80.0: "log-failure", 84.0: "worker-kill", 88.0: "broker-kill"}
    for number, (at, name) in enumerate(starts.items(), 2):
        events += [fault(number, name, "start", at), fault(number, name, "end", at + 1.0)]
    events.append(batch(2, 81.0, 90.0, 4))
    events.append(driver(3, "end", 91.5, outcome="failed", text=FENCED))


def crashed_after_a_fault_of_no_process(events):
    another_fault(events, "broker-kill")
    events.append(driver(3, "end", 49.0, outcome="failed", text=CRASHED))


STALE = "spark_eos.errors.StaleLogError: the transaction log at x ends with batch 1"


def people(events, name, outcome, text):
    """A fault of people around the one that is there, and how the driver ended that it names."""
    for phase, at in (("start", 22.2), ("end", 44.0)):
        events.append(fault(2, name, phase, at) | {"target": "driver 3, 2 batches back"})
    events += [driver(3, "start", 23.0), driver(3, "end", 43.0, outcome=outcome, text=text)]
    put_off(events, 44.5, 20.0)
    events.append(batch(2, 45.0, 46.0, 4))


def backup_that_was_used(events):
    people(events, "restored-backup", "killed", "exit status -9")


def backup_that_failed_by_something_else(events):
    people(events, "restored-backup", "failed", FENCED)


def copy_that_went_on(events):
    people(events, "copied-checkpoint", "ended", "")


def stale_log_that_nobody_put_back(events):
    events.append(driver(3, "end", 49.0, outcome="failed", text=STALE))


# --- what the history lacks ---


def not_drained(events):
    events[-1]["drained"] = False


def no_live_rows(events):
    events[:] = [event for event in events if event.get("reader") != "live"]


def no_fault_given(events):
    """All that were asked for were skipped."""
    for event in events:
        if event["kind"] == "fault":
            event["phase"] = "skipped"


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


def no_moves_on_disk(events):
    rows_of(events, "group_moves").clear()


def last_group_too_old(events):
    events.remove(group(52.6, 4))


# What is planted: the kind of the anomaly, and words of its text.
PLANTED = {
    slow_recovery: ("slow recovery", "1 took longer than 30.0 s"),
    hung_until_it_was_killed: ("slow recovery", "1 took longer than 30.0 s"),
    no_recovery: ("slow recovery", "1 took longer than 30.0 s"),
    **{
        driver_ended_with(*words): ("needs an operator", "1 drivers ended for good")
        for words in LAST_WORDS
    },
    crashed_long_after_a_fault: ("needs an operator", "1 drivers ended for good"),
    failed_long_after_a_fault: ("needs an operator", "1 drivers ended for good"),
    fenced_among_faults_that_leave_one_driver: ("needs an operator", "1 drivers ended for good"),
    crashed_after_a_fault_of_no_process: ("needs an operator", "1 drivers ended for good"),
    backup_that_was_used: ("went on", "1 drivers on a state that was not theirs"),
    backup_that_failed_by_something_else: ("went on", "1 drivers on a state that was not theirs"),
    copy_that_went_on: ("went on", "1 drivers on a state that was not theirs"),
    stale_log_that_nobody_put_back: ("needs an operator", "1 drivers ended for good"),
    not_drained: ("not drained", "all read"),
    no_live_rows: ("incomplete history", "a reader on the way"),
    no_fault_given: ("incomplete history", "a fault, though some were asked for"),
    driver_without_an_end: ("incomplete history", "an end of the drivers"),
    last_offsets_too_old: ("incomplete history", "a sample of partition 0 after"),
    partition_never_sampled: ("incomplete history", "a sample of partition 1 after"),
    no_moves_on_disk: ("incomplete history", "the group's moves on disk"),
    last_group_too_old: ("incomplete history", "a sample of the group after"),
}
# Those that other checks find too, each for a good reason.
FOUND_BY_OTHERS_TOO = {no_live_rows}
