"""The judge. Reads the raw entries of partitions, and knows nothing of the product.

Which records are visible is told by markers alone: the first one of a producer behind its record.
It does not ask the broker's own view, which the product sees.
"""

from collections import Counter

from tests.simulation.broker import COMMIT


def visible_values(broker):
    """What a read_committed reader gets in the end, and how many records have no marker yet."""
    values, still_open = Counter(), 0
    for entries in broker.log.values():
        for offset, entry in enumerate(entries):
            if entry.marker is not None:
                continue
            end = next(
                (
                    later.marker
                    for later in entries[offset:]
                    if later.marker is not None and later.producer_id == entry.producer_id
                ),
                None,
            )
            if end is None:
                still_open += 1
            elif end == COMMIT:
                values[entry.value.decode()] += 1
    return values, still_open


def check_no_wrong_row(broker, workload, batches):
    """At any time: no row twice, none that does not exist; of finished batches none missing."""
    seen, _ = visible_values(broker)
    doubled = [value for value, count in seen.items() if count > 1]
    assert not doubled, f"visible twice: {doubled}"
    foreign = set(seen) - set(workload.values(len(workload.batches)))
    assert not foreign, f"visible, and of no batch: {foreign}"
    lost = set(workload.values(batches)) - set(seen)
    assert not lost, f"batch {batches - 1} is finished, and not visible are: {lost}"


def check_decided(broker, workload, storage):
    """No row is visible and no group has moved without a decision in the log."""
    decided = {
        r.batch_id
        for commit in storage.commits
        for r in commit.records
        if r.state.wire_name == "PrepareCommit"
    }
    seen, _ = visible_values(broker)
    for batch_id, batch in enumerate(workload.batches):
        if batch_id not in decided:
            early = [value for rows in batch for value in rows if value in seen]
            assert not early, f"batch {batch_id} is not decided, and visible are: {early}"
            moved = broker.groups.get(workload.group) == workload.offsets(batch_id)
            assert not moved, f"batch {batch_id} is not decided, and the group has moved"


def check_nothing_open(broker):
    """No transaction holds back a reader."""
    assert not broker.ongoing(), f"open: {broker.ongoing()}"
    held = {p: broker.last_stable_offset(p) for p in broker.log} != {
        p: len(entries) for p, entries in broker.log.items()
    }
    _, still_open = visible_values(broker)
    assert not held, "a last stable offset is before the end"
    assert still_open == 0, f"{still_open} records have no marker"


def check_exactly_once(broker, workload):
    """When the query has finished: every row once, the group behind them, nothing open."""
    check_no_wrong_row(broker, workload, len(workload.batches))
    check_nothing_open(broker)
    if workload.group:
        expected = workload.offsets(len(workload.batches) - 1)
        assert broker.groups[workload.group] == expected, "the group is not where the rows are"
