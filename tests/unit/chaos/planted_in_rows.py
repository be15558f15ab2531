"""What must not happen to rows and transactions, each planted in a clean history."""

from tests.unit.chaos.builders import put_off, rows_of


def lost(events):
    gone = ("a:2", "a:3")
    for reader in ("final", "live"):
        rows = rows_of(events, "seen", reader)
        rows[:] = [row for row in rows if row[3] not in gone]


def duplicate(events):
    rows_of(events, "seen", "final").append([0, 6, "a", "a:3"])
    rows_of(events, "seen", "live").append([0, 6, "a", "a:3"])
    rows_of(events, "transactions").append([0, 6, 6, 100, 1, "commit"])


def poison(events):
    rows_of(events, "seen", "final").append([0, 6, "a", "poison:1"])
    rows_of(events, "seen", "live").append([0, 6, "a", "poison:1"])
    rows_of(events, "transactions").append([0, 6, 6, 100, 1, "commit"])


def poison_at_the_end_only(events):
    rows_of(events, "seen", "final").append([0, 6, "a", "poison:1"])
    rows_of(events, "transactions").append([0, 6, 6, 100, 1, "commit"])


def poison_on_the_way_only(events):
    rows_of(events, "seen", "live").append([0, 6, "a", "poison:1"])
    rows_of(events, "transactions").append([0, 6, 6, 100, 1, "commit"])


def row_taken_back(events):
    """A reader saw it where it is not at the end, though the disk says that it was committed."""
    rows_of(events, "seen", "live").append([0, 6, "a", "a:3"])
    rows_of(events, "transactions").append([0, 6, 6, 100, 1, "commit"])


def row_changed(events):
    """At the end there is another row at the same place."""
    rows_of(events, "seen", "live")[0][3] = "a:3"


def visible_abort(events):
    rows_of(events, "transactions")[3][5] = "abort"


def abort_visible_on_the_way_only(events):
    rows_of(events, "seen", "live").append([0, 6, "a", "a:3"])
    rows_of(events, "transactions").append([0, 6, 6, 100, 9, "abort"])


def abort_visible_at_the_end_only(events):
    rows_of(events, "seen", "final").append([0, 6, "c", "c:0"])
    rows_of(events, "input").append([0, 4, "c", "c:0"])
    rows_of(events, "transactions").append([0, 6, 6, 100, 9, "abort"])


def visible_outside_of_any_transaction(events):
    rows_of(events, "transactions")[3][2] -= 1


def undecided_commit(events):
    rows_of(events, "transactions").append([0, 6, 6, 100, 7, "commit"])


def abort_in_the_log_that_is_committed(events):
    rows_of(events, "transactions").append([0, 6, 6, 100, 7, "commit"])
    rows_of(events, "decisions").append([1, "t-0", 100, 7, "PrepareAbort"])
    rows_of(events, "decisions").append([1, "t-0", 100, 7, "CompleteAbort"])


def undecided_commit_of_the_group(events):
    rows_of(events, "group_transactions").append([4, 6, 7, 102, 7, "commit"])


def torn_batch(events):
    for reader in ("final", "live"):
        rows_of(events, "seen", reader).remove([1, 4, "b", "b:3"])


def decided_and_aborted(events):
    rows_of(events, "transactions").append([0, 6, 6, 300, 0, "abort"])
    rows_of(events, "decisions").append([1, "t-2", 300, 0, "PrepareCommit"])


def decided_and_nowhere(events):
    rows_of(events, "decisions").append([1, "t-2", 300, 0, "PrepareCommit"])


def decided_offsets_nowhere(events):
    rows_of(events, "group_transactions").pop()


def decided_offsets_aborted(events):
    rows_of(events, "group_transactions")[-1][5] = "abort"


def decided_and_another_attempt_aborted(events):
    """That one was never decided, and excuses nothing."""
    decided_and_nowhere(events)
    rows_of(events, "decisions").append([1, "t-2", 300, 1, "CompleteAbort"])
    rows_of(events, "decisions").append([1, "t-2", 301, 0, "CompleteAbort"])


def decided_twice_and_the_first_nowhere(events):
    rows_of(events, "decisions")[3:3] = [[1, "t-0", 100, 5, "PrepareCommit"]]


def lost_and_not_decided_again(events):
    decided_and_aborted(events)
    rows_of(events, "decisions").append([1, "t-2", 300, 0, "CompleteAbort"])


def lost_offsets_not_decided_again(events):
    """A move of the group is never empty, whatever the log says."""
    decided_offsets_aborted(events)
    rows_of(events, "decisions").append([1, "t-offsets", 102, 1, "CompleteAbort"])
    rows_of(events, "decisions").append([1, "t-offsets", 102, 1, "Empty"])


def committed_here_and_aborted_there(events):
    """The transaction of t-0 in batch 1 wrote to another partition too."""
    rows_of(events, "transactions").append([1, 6, 6, 100, 1, "abort"])


def seen_late(events):
    """Batch 1 is complete at 30, and has a bound of 30 s."""
    late = next(e for e in events if e.get("reader") == "live" and e["at"] > 30)
    late["at"] = 61.0
    for event in events:
        if event["kind"] == "end":
            event["at"] = 62.0


def seen_late_in_the_calm(events):
    """Batch 1 is complete when the fault is over for 10 s and longer: 10 s are enough then."""
    put_off(events, 29.5, 3.0)
    late = next(e for e in events if e.get("reader") == "live" and e["at"] > 30)
    late["at"] = 43.1


def never_seen_live(events):
    rows_of(events, "seen", "live").pop()


def reorder(events):
    for reader, one, other in (("final", 2, 3), ("live", 0, 1)):
        rows = rows_of(events, "seen", reader)
        rows[one][3], rows[other][3] = rows[other][3], rows[one][3]


def scattered_key(events):
    for reader in ("final", "live"):
        row = next(row for row in rows_of(events, "seen", reader) if row[3] == "a:3")
        row[0], row[1] = 1, 6
    rows_of(events, "transactions").append([1, 6, 6, 100, 1, "commit"])


# What is planted: the kind of the anomaly, and words of its text.
PLANTED = {
    lost: ("lost", "2 of 8 rows"),
    duplicate: ("duplicated", "more than once"),
    poison: ("aborted read", "no committed input has"),
    poison_at_the_end_only: ("aborted read", "1 rows that no committed input has"),
    poison_on_the_way_only: ("aborted read", "1 rows that no committed input has"),
    row_taken_back: ("aborted read", "are not there at the end"),
    row_changed: ("aborted read", "are not there at the end"),
    visible_abort: ("aborted read", "were never committed"),
    abort_visible_on_the_way_only: ("aborted read", "1 visible rows were never committed"),
    abort_visible_at_the_end_only: ("aborted read", "1 visible rows were never committed"),
    visible_outside_of_any_transaction: ("aborted read", "were never committed"),
    undecided_commit: ("wrong commit", "never decided"),
    abort_in_the_log_that_is_committed: ("wrong commit", "never decided"),
    undecided_commit_of_the_group: ("wrong commit", "never decided"),
    torn_batch: ("torn batch", "batch 1: 3 rows visible, 1 not"),
    decided_and_aborted: ("torn batch", "1 decided transactions"),
    decided_and_nowhere: ("torn batch", "1 decided transactions"),
    decided_offsets_nowhere: ("torn batch", "1 decided transactions"),
    decided_offsets_aborted: ("torn batch", "1 decided transactions"),
    decided_and_another_attempt_aborted: ("torn batch", "1 decided transactions"),
    decided_twice_and_the_first_nowhere: ("torn batch", "1 decided transactions"),
    lost_and_not_decided_again: ("torn batch", "1 were decided, lost"),
    lost_offsets_not_decided_again: ("torn batch", "1 were decided, lost"),
    committed_here_and_aborted_there: ("torn batch", "1 decided transactions"),
    seen_late: ("late", "4 rows"),
    seen_late_in_the_calm: ("late", "4 rows"),
    never_seen_live: ("late", "1 rows"),
    reorder: ("reordered", "after a later row"),
    scattered_key: ("reordered", "more than one partition"),
}
# Those that other checks find too, each for a good reason.
FOUND_BY_OTHERS_TOO = {
    lost,
    poison_at_the_end_only,
    poison_on_the_way_only,
    visible_abort,
    abort_visible_on_the_way_only,
    abort_visible_at_the_end_only,
    torn_batch,
    never_seen_live,
}
