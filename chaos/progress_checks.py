"""Checks of the judge on how the run went: the group, readers that wait, recoveries. Pure."""

import re
from bisect import bisect_right

from chaos.endings import ended_well
from chaos.run import Anomaly
from chaos.segments import OPEN
from chaos.timing import longest_standstill

# The times of batches come from files, those of samples from this process.
CLOCK_S = 0.05
# What a driver says that must not go on, by the faults that people bring about. A copy of an older
# state cannot be told from a backup; of two drivers with the same state either may see the other.
STALE = re.compile(r"\.StaleLogError\b")
# Or its deadline was over when it was let go, and it could not move the epoch any more.
OVERTAKEN = re.compile(
    r"\.(StaleLogError|FencedError|TransactionLostError)\b"
    r"|\.BrokerUnreachableError: .* did not take over '\S+-driver' \(InitProducerId\)"
)
MUST_STOP = {"restored-backup": STALE, "copied-checkpoint": OVERTAKEN}
DRIVER = re.compile(r"driver (\d+)")


def group_against_rows(run):
    """At the end, a consumer group that does not stand exactly where the visible rows end."""
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
    """On the way, a group that goes back, or is behind what is complete or ahead of what began."""
    rows, highest, low_since = [], {}, {}
    patience = run.bounds["group_s"]
    for asked, answered, group in run.groups:
        # Near a fault, a coordinator that was frozen may answer from the past, for a moment: what
        # is wrong for longer is wrong. Where there is no fault, one answer is enough.
        calm = run.is_calm(asked, answered)
        done = [
            number
            for number, _, end in run.batches
            if end <= asked - (patience if calm else run.bounds["recovery_s"])
        ]
        begun = [number for number, start in run.starts.items() if start <= answered + CLOCK_S]
        least = run.ends[max(done)] if done else {}
        most = run.ends[max(begun)] if begun else {}
        for partition, offset in group.items():
            if offset >= highest.get(partition, 0):
                low_since.pop(partition, None)
            elif calm or asked - low_since.setdefault(partition, asked) > patience:
                rows.append([asked, partition, offset, "fell from", highest[partition]])
            if offset < least.get(partition, 0):
                rows.append([asked, partition, offset, "behind the complete", least[partition]])
            if offset > most.get(partition, 0):
                rows.append([asked, partition, offset, "ahead of the begun", most.get(partition)])
            highest[partition] = max(offset, highest.get(partition, 0))
    for what in sorted({row[3] for row in rows}):
        found = [row for row in rows if row[3] == what]
        yield Anomaly("group offset", f"{len(found)} samples: {what}", found)


def group_on_disk(run):
    """On the brokers' disks, a committed move of the group that goes back, near a fault or not."""
    # What a coordinator tells near a fault may be old; what it has written down is not.
    rows, reached = [], {}
    for _, offset, partition, moved_to in run.group_moves or []:
        before = reached.get(partition, moved_to)
        if moved_to < before:
            rows.append([offset, partition, moved_to, "fell from", before])
        reached[partition] = moved_to
    if rows:
        yield Anomaly("group offset", f"{len(rows)} moves on disk go back", rows)


def hanging(run):
    """A transaction that is open when no driver runs any more."""
    if run.open:
        yield Anomaly("hanging transaction", "the coordinators still list some", run.open)
    rows = [row for row in run.all_transactions if row[5] == OPEN]
    if rows:
        yield Anomaly("hanging transaction", "data on disk without a marker", rows)
    rows = [
        [partition, samples[-1][1], samples[-1][2]]
        for partition, samples in sorted(run.stable.items())
        if samples[-1][1] != samples[-1][2]
    ]
    if rows:
        yield Anomaly("hanging transaction", "the last stable offset is below the end", rows)


def left_by_a_stop(run):
    """A transaction that a query left open when it was stopped while its tasks ran."""
    rows = [
        [at, driver, *left]
        for at, driver, in_tasks, found in run.stopped
        # In the commit a stop is a death. And a broker that is away cannot be asked to abort.
        if in_tasks and run.is_calm(at - run.bounds["group_s"], at, but="driver-stop")
        for left in found
    ]
    if rows:
        yield Anomaly("hanging transaction", f"{len(rows)} were left by a stop in order", rows)


def held_back(run):
    """On the way, a last stable offset that holds readers back for longer than its bound."""
    bound = run.bounds["stable_s"]
    for partition, samples in sorted(run.stable.items()):
        seconds, at, offset = longest_standstill(samples, run.faults)
        if seconds > bound:
            yield Anomaly(
                "stuck last stable offset",
                f"partition {partition} stood at {offset} for {seconds:.1f} s, bound {bound} s",
                [[partition, offset, at]],
            )


def open_below_complete(run):
    """On the way, a transaction left open below what there was when a micro-batch was complete."""
    patience, bound = run.bounds["group_s"], run.bounds["recovery_s"]
    for partition, samples in sorted(run.stable.items()):
        written = _written_when_complete(run.batches, samples)
        rows = []
        for at, stable, _, asked in samples:
            wait = patience if run.is_calm(asked, at) else bound
            # What a later batch has open begins behind all of this.
            due = max((end for complete, end in written if complete <= asked - wait), default=0)
            if stable < due:
                rows.append([at, partition, stable, "below the complete", due])
        if rows:
            text = f"partition {partition}, {len(rows)} samples: below a complete micro-batch"
            yield Anomaly("stuck last stable offset", text, rows)


def _written_when_complete(batches, samples):
    """(when a batch was complete, the end offset that was seen last before that)."""
    answered = [sample[0] for sample in samples]
    found = []
    for _, _, complete in batches:
        place = bisect_right(answered, complete - CLOCK_S) - 1
        if place >= 0:
            found.append((complete, samples[place][2]))
    return found


def slow_recovery(run):
    """After a fault was over, no micro-batch that completed within the bound of a recovery."""
    bound = run.bounds["recovery_s"]
    rows = [
        [recovery.name, recovery.start, recovery.seconds]
        for recovery in run.recoveries
        if recovery.seconds is None or recovery.seconds > bound
    ]
    if rows:
        yield Anomaly("slow recovery", f"{len(rows)} took longer than {bound} s", rows)


def needs_an_operator(run):
    """A driver that ended in a way that no fault explains: gave up for good, or simply ended."""
    rows = [
        [driver["number"], driver["at"], driver["outcome"], driver["text"][:600]]
        for driver in run.drivers
        if driver["phase"] == "end" and not ended_well(driver, run)
    ]
    if rows:
        yield Anomaly("needs an operator", f"{len(rows)} drivers ended for good", rows)


def went_on(run):
    """A driver on a state that a person has put back or copied, which did not stop and say so."""
    ends = {d["number"]: d for d in run.drivers if d["phase"] == "end"}
    rows = []
    for fault in (fault for fault in run.faults if fault.name in MUST_STOP):
        number = int(DRIVER.search(fault.target)[1])
        end = ends.get(number, {"outcome": "runs", "text": ""})
        if end["outcome"] != "failed" or not MUST_STOP[fault.name].search(end["text"]):
            rows.append([fault.start, fault.name, fault.target, end["outcome"], end["text"][:600]])
    if rows:
        yield Anomaly("went on", f"{len(rows)} drivers on a state that was not theirs", rows)
