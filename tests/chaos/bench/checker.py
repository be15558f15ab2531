"""The judge: history in, anomalies out. Pure, and it knows nothing of the product.

What readers saw is compared with what the input topic holds; what became of each transaction is
taken from the brokers' disks, not from a client; what was decided is taken from the log table. Each
check is a function from a `Run` to anomalies, and each has a planted history that makes it speak
(tests/unit/chaos/test_checker.py).
"""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tests.chaos.bench.run import Run, sort_out
from tests.chaos.bench.timing import longest_standstill

COMMITTED, ABORTED, OPEN = "commit", "abort", "open"
# The times of batches come from files, those of samples from this process.
CLOCK_S = 0.05
# The input of the bench can always be read again, the same: none of these may end a driver.
NEVER = re.compile(
    r"\b(OptionError|OperatorError|NonDeterministicReplayError|DataLossError|GroupInUseError"
    r"|OutcomeUnknownError|ForeignTableError|LogVersionError|CorruptLogError)\b"
)


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One thing that must not happen, and the rows that show it."""

    kind: str
    text: str
    rows: list = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Verdict:
    run: Run
    anomalies: list


def judge(events):
    """All anomalies of a history."""
    run = sort_out(events)
    return Verdict(run, [anomaly for check in CHECKS for anomaly in check(run)])


def incomplete(run):
    """A history that lacks what the checks need proves nothing."""
    missing = [
        name
        for name, there in (
            ("rows of the input", run.inputs),
            ("a final read", run.final),
            ("a completed batch", run.batches),
            ("samples of the last stable offset", run.stable),
            ("samples of the group", run.groups),
            ("the transactions on disk", run.transactions),
            ("the decisions", run.decisions),
            ("the list of open transactions", run.open is not None),
            ("an end", run.end),
        )
        if not there
    ]
    if missing:
        yield Anomaly("incomplete history", f"it has not: {', '.join(missing)}")
    if run.end and not run.end["drained"]:
        yield Anomaly("not drained", f"the query did not reach the input's end: {run.end['why']}")


def lost(run):
    """1: a row of the input that no reader sees."""
    seen = {row[3] for row in run.final}
    rows = [[*run.inputs[value], value] for value in run.sent if value not in seen]
    if rows:
        yield Anomaly("lost", f"{len(rows)} of {len(run.sent)} rows are not visible", rows)


def duplicated(run):
    """2: a row that is visible more often than it was sent."""
    seen = Counter(row[3] for row in run.final)
    doubled = {value for value, n in seen.items() if value in run.sent and n > run.sent[value]}
    rows = [row for row in run.final if row[3] in doubled]
    if rows:
        yield Anomaly("duplicated", f"{len(doubled)} rows are visible more than once", rows)


def aborted_read(run):
    """3, G1a: a value that only an aborted transaction of the input had, or a row taken back."""
    foreign = [row for row in run.final + run.live if row[3] not in run.inputs]
    if foreign:
        yield Anomaly("aborted read", f"{len(foreign)} rows that no committed input has", foreign)
    kept = {(row[0], row[1]): row[3] for row in run.final}
    gone = [row for row in run.live if kept.get((row[0], row[1])) != row[3]]
    if gone:
        yield Anomaly(
            "aborted read", f"{len(gone)} rows that a reader saw are not there at the end", gone
        )


def aborted_on_disk(run):
    """3 again: a visible offset inside of a transaction whose marker does not say commit."""
    outcomes = defaultdict(list)
    for partition, first, last, *_, outcome in run.transactions or []:
        outcomes[partition].append((first, last, outcome))
    for written in outcomes.values():
        written.sort()
    rows = []
    for row in run.final + run.live:
        written = outcomes[row[0]]
        place = bisect_right(written, (row[1], float("inf"))) - 1
        if place < 0 or row[1] > written[place][1] or written[place][2] != COMMITTED:
            rows.append(row)
    if rows and run.transactions is not None:
        yield Anomaly("aborted read", f"{len(rows)} visible rows were never committed", rows)


def undecided_commit(run):
    """5: a transaction with a commit marker that no decision names."""
    decided = {(d[2], d[3]) for d in run.decisions or [] if d[4] == "PrepareCommit"}
    rows = [
        row
        for row in run.transactions or []
        if row[5] == COMMITTED and (row[3], row[4]) not in decided
    ]
    if rows:
        yield Anomaly("wrong commit", f"{len(rows)} transactions committed, never decided", rows)


def torn(run):
    """4: a batch of which a part is visible when all is over."""
    seen = {row[3] for row in run.final}
    parts = defaultdict(lambda: ([], []))
    ranges = _batch_ranges(run)
    for value, (partition, offset, _) in run.inputs.items():
        ids, ends = ranges.get(partition, ([], []))
        place = bisect_right(ends, offset)  # the first batch that ends behind this offset
        if place < len(ids):
            parts[ids[place]][value in seen].append(value)
    for batch, (missing, visible) in sorted(parts.items()):
        if missing and visible:
            yield Anomaly(
                "torn batch",
                f"batch {batch}: {len(visible)} rows visible, {len(missing)} not",
                [[*run.inputs[value], value] for value in missing],
            )


def torn_decision(run):
    """4 again: a completed batch whose decided transactions did not all commit."""
    fate = {(row[3], row[4]): row[5] for row in run.transactions or []}
    final = {}
    for batch, name, producer_id, epoch, status in run.decisions or []:
        if status == "PrepareCommit":
            final[batch, name] = (producer_id, epoch)
        elif status == "CompleteAbort":  # recovery found it lost; it counts when decided again
            final.pop((batch, name), None)
    rows = [
        [batch, name, *identity, fate[identity]]
        for (batch, name), identity in sorted(final.items())
        if fate.get(identity, COMMITTED) != COMMITTED
    ]
    if rows:
        yield Anomaly("torn batch", f"{len(rows)} decided transactions did not commit", rows)


def reordered(run):
    """8: within a partition, the rows of a key with falling numbers."""
    last, rows = {}, []
    for partition, offset, key, value in run.final:
        number = _number(value)
        before = last.get((partition, key), (-1, None))
        if number is None or value not in run.inputs:
            continue
        if number < before[0]:
            rows.append([partition, offset, key, value, before[1]])
        else:
            last[partition, key] = (number, value)
    if rows:
        yield Anomaly("reordered", f"{len(rows)} rows come after a later row of their key", rows)


def scattered(run):
    """8 again: a key that is in two partitions has no order at all."""
    places = defaultdict(set)
    for partition, _, key, value in run.final:
        if value in run.inputs:
            places[key].add(partition)
    rows = [[key, sorted(found)] for key, found in sorted(places.items()) if len(found) > 1]
    if rows:
        yield Anomaly("reordered", f"{len(rows)} keys are in more than one partition", rows)


def group_against_rows(run):
    """7: at the end the group stands where the visible rows end."""
    if not run.groups:
        return
    group = run.groups[-1][2]
    seen = {row[3] for row in run.final}
    ahead = [
        [p, o, k, v] for v, (p, o, k) in run.inputs.items() if o < group.get(p, 0) and v not in seen
    ]
    behind = [
        [p, o, k, v] for v, (p, o, k) in run.inputs.items() if o >= group.get(p, 0) and v in seen
    ]
    if ahead:
        yield Anomaly("group offset", f"it is ahead of {len(ahead)} rows not visible", ahead)
    if behind:
        yield Anomaly("group offset", f"it is behind {len(behind)} visible rows", behind)


def group_over_time(run):
    """7 on the way: never back, never far behind what is complete, never ahead of what began."""
    rows, highest = [], {}
    patience = run.bounds["group_s"]
    for asked, answered, group in run.groups:
        # A coordinator that was frozen answers once from the past; a real step back stays.
        calm = all(f.start > answered or f.end + patience < asked for f in run.faults)
        done = [number for number, _, end in run.batches if end <= asked - patience]
        begun = [number for number, start in run.starts.items() if start <= answered + CLOCK_S]
        least = run.ends[max(done)] if done and calm else {}
        most = run.ends[max(begun)] if begun else {}
        for partition, offset in group.items():
            if calm and offset < highest.get(partition, 0):
                rows.append([asked, partition, offset, "fell from", highest[partition]])
            if offset < least.get(partition, 0):
                rows.append([asked, partition, offset, "behind the complete", least[partition]])
            if offset > most.get(partition, 0):
                rows.append([asked, partition, offset, "ahead of the begun", most.get(partition)])
            highest[partition] = max(offset, highest.get(partition, 0))
    if rows:
        yield Anomaly("group offset", f"{len(rows)} samples are out of step", rows)


def hanging(run):
    """13: a transaction that is open when no driver runs any more."""
    if run.open:
        yield Anomaly("hanging transaction", "the coordinators still list some", run.open)
    rows = [row for row in run.transactions or [] if row[5] == OPEN]
    if rows:
        yield Anomaly("hanging transaction", "data on disk without a marker", rows)
    rows = [
        [partition, samples[-1][1], samples[-1][2]]
        for partition, samples in sorted(run.stable.items())
        if samples[-1][1] != samples[-1][2]
    ]
    if rows:
        yield Anomaly("hanging transaction", "the last stable offset is below the end", rows)


def held_back(run):
    """13 on the way: readers wait though nothing is broken."""
    bound = run.bounds["stable_s"]
    for partition, samples in sorted(run.stable.items()):
        seconds, at, offset = longest_standstill(samples, run.faults)
        if seconds > bound:
            yield Anomaly(
                "stuck last stable offset",
                f"partition {partition} stood at {offset} for {seconds:.1f} s, bound {bound} s",
                [[partition, offset, at]],
            )


def slow_recovery(run):
    """No batch completed in time after a fault was over."""
    bound = run.bounds["recovery_s"]
    rows = [
        [recovery.name, recovery.start, recovery.seconds]
        for recovery in run.recoveries
        if recovery.seconds is None or recovery.seconds > bound
    ]
    if rows:
        yield Anomaly("slow recovery", f"{len(rows)} took longer than {bound} s", rows)


def needs_an_operator(run):
    """A driver that gave up for good, though the input can be read again as it was."""
    rows = [
        [driver["number"], driver["text"][:600]]
        for driver in run.drivers
        if driver["phase"] == "end" and NEVER.search(driver.get("text") or "")
    ]
    if rows:
        yield Anomaly("needs an operator", f"{len(rows)} drivers ended for good", rows)


CHECKS = (
    incomplete,
    lost,
    duplicated,
    aborted_read,
    aborted_on_disk,
    undecided_commit,
    torn,
    torn_decision,
    reordered,
    scattered,
    group_against_rows,
    group_over_time,
    hanging,
    held_back,
    slow_recovery,
    needs_an_operator,
)


def _batch_ranges(run):
    """For each input partition: the batches' ids, and the offsets at which they end."""
    ids = sorted(run.ends)
    partitions = {partition for ends in run.ends.values() for partition in ends}
    return {p: (ids, [run.ends[number].get(p, 0) for number in ids]) for p in partitions}


def _number(value):
    found = re.fullmatch(r"[^:]+:(\d+)", value or "")
    return int(found[1]) if found else None
