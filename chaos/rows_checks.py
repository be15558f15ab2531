"""Checks of the judge on what is there for good: rows, transactions on disk, decisions. Pure."""

import re
from bisect import bisect_right
from collections import Counter, defaultdict

from chaos.run import Anomaly

COMMITTED = "commit"


def lost(run):
    """A row of the input that is not visible at the end."""
    seen = {row[3] for row in run.final}
    rows = [[*run.inputs[value], value] for value in run.sent if value not in seen]
    if rows:
        yield Anomaly("lost", f"{len(rows)} of {len(run.sent)} rows are not visible", rows)


def duplicated(run):
    """A row that is visible more often than it was sent."""
    seen = Counter(row[3] for row in run.final)
    doubled = {value for value, n in seen.items() if value in run.sent and n > run.sent[value]}
    rows = [row for row in run.final if row[3] in doubled]
    if rows:
        yield Anomaly("duplicated", f"{len(doubled)} rows are visible more than once", rows)


def aborted_read(run):
    """A value that only an aborted transaction of the input had, or a row taken back (G1a)."""
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
    """A visible offset inside of a transaction whose marker on disk does not say commit (G1a)."""
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
    """A transaction with a commit marker on disk that no decision in the log names."""
    decided = {(d[2], d[3]) for d in run.decisions or [] if d[4] == "PrepareCommit"}
    rows = [
        row
        for row in run.all_transactions
        if row[5] == COMMITTED and (row[3], row[4]) not in decided
    ]
    if rows:
        yield Anomaly("wrong commit", f"{len(rows)} transactions committed, never decided", rows)


def torn(run):
    """A micro-batch of which only a part is visible when all is over."""
    seen = {row[3] for row in run.final}
    parts = defaultdict(lambda: ([], []))
    ranges = _batch_ranges(run)
    for value, (partition, offset, _) in run.inputs.items():
        batch = _batch_of(ranges, partition, offset)
        if batch is not None:
            parts[batch][value in seen].append(value)
    for batch, (missing, visible) in sorted(parts.items()):
        if missing and visible:
            yield Anomaly(
                "torn batch",
                f"batch {batch}: {len(visible)} rows visible, {len(missing)} not",
                [[*run.inputs[value], value] for value in missing],
            )


def late(run):
    """A row of a complete micro-batch that a reader saw only when its bound was over, or never."""
    bound, patience = run.bounds["recovery_s"], run.bounds["group_s"]
    # Where there is no fault, what commit() returned from is visible.
    within = {
        number: (end, patience if run.is_calm(end, end + patience) else bound)
        for number, _, end in run.batches
    }
    places = {row[3]: (row[0], row[1]) for row in run.final}
    ranges = _batch_ranges(run)
    rows = []
    for value, (partition, offset, key) in run.inputs.items():
        batch = _batch_of(ranges, partition, offset)
        if batch in within and value in places:
            (end, most), seen = within[batch], run.live_at.get(places[value])
            if seen is None or seen - end > most:
                rows.append([partition, offset, key, value, batch, seen])
    if rows:
        text = f"{len(rows)} rows were not seen within {patience} s, near a fault {bound} s"
        yield Anomaly("late", text, rows)


def torn_decision(run):
    """A decided transaction that is not committed on disk, wherever it wrote, when all is over."""
    fates = defaultdict(set)
    for row in run.all_transactions:
        fates[row[3], row[4]].add(row[5])
    said, decided = defaultdict(set), defaultdict(set)
    for batch, name, producer_id, epoch, status in run.decisions or []:
        said[status].add((batch, name, producer_id, epoch))
        if status == "PrepareCommit":
            decided[batch, name].add((producer_id, epoch))
    rows, gone = [], []
    for (batch, name), identities in sorted(decided.items()):
        # Recovery may have found this very one lost. Then it is to be decided once more.
        kept = {i for i in identities if (batch, name, *i) not in said["CompleteAbort"]}
        rows += [
            [batch, name, *identity, sorted(fates[identity])]
            for identity in sorted(kept)
            if fates[identity] != {COMMITTED}
        ]
        # Unless it has no rows any more. A move of the group always has something to move.
        empty = any((batch, name, *identity) in said["Empty"] for identity in identities)
        if not kept and (name.endswith("offsets") or not empty):
            gone.append([batch, name, sorted(identities)])
    if rows:
        yield Anomaly("torn batch", f"{len(rows)} decided transactions did not commit", rows)
    if gone:
        yield Anomaly("torn batch", f"{len(gone)} were decided, lost, and not decided again", gone)


def reordered(run):
    """Within a partition, rows of a key in another order than they were sent in."""
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
    """A key whose rows are in two partitions, and so have no order at all."""
    places = defaultdict(set)
    for partition, _, key, value in run.final:
        if value in run.inputs:
            places[key].add(partition)
    rows = [[key, sorted(found)] for key, found in sorted(places.items()) if len(found) > 1]
    if rows:
        yield Anomaly("reordered", f"{len(rows)} keys are in more than one partition", rows)


def _batch_ranges(run):
    """For each input partition: the batches' ids, and the offsets at which they end."""
    ids = sorted(run.ends)
    partitions = {partition for ends in run.ends.values() for partition in ends}
    return {p: (ids, [run.ends[number].get(p, 0) for number in ids]) for p in partitions}


def _batch_of(ranges, partition, offset):
    """The first batch that ends behind this offset."""
    ids, ends = ranges.get(partition, ([], []))
    place = bisect_right(ends, offset)
    return ids[place] if place < len(ids) else None


def _number(value):
    found = re.fullmatch(r"[^:]+:(\d+)", value or "")
    return int(found[1]) if found else None
