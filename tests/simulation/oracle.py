"""The judge. Reads the raw entries of partitions, and knows nothing of the product.

Which records are visible is told by markers alone: the first one of a producer behind its record.
It does not ask the broker's own view, which the product sees.
"""

from collections import Counter, defaultdict

from tests.simulation.broker import COMMIT


def visible_rows(broker):
    """By place, what a read_committed reader gets in the end, in its order; and how many records
    have no marker yet.
    """
    values, still_open = {}, 0
    for place, entries in broker.log.items():
        values[place] = []
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
                values[place].append(entry.value.decode())
    return values, still_open


def visible_values(broker):
    """The same, as the number of times that each value is there."""
    rows, still_open = visible_rows(broker)
    return Counter(value for values in rows.values() for value in values), still_open


def check_no_wrong_row(broker, workload, batches):
    """At any time: no row twice, none that does not exist; of finished batches none missing."""
    seen, _ = visible_values(broker)
    doubled = [value for value, count in seen.items() if count > 1]
    assert not doubled, f"visible twice: {doubled}"
    foreign = set(seen) - set(workload.values(len(workload.batches)))
    assert not foreign, f"visible, and of no batch: {foreign}"
    lost = set(workload.values(batches)) - set(seen)
    assert not lost, f"batch {batches - 1} is finished, and not visible are: {lost}"
    check_order(broker, workload)


def check_order(broker, workload):
    """At any time, in each partition: batch behind batch, and the rows of a task as it had them.

    So the values of a key come as they were sent, also where another task has it in the next batch.
    """
    origin = {
        value: (batch_id, sink_partition, row)
        for batch_id, batch in enumerate(workload.batches)
        for sink_partition, rows in enumerate(batch)
        for row, value in enumerate(rows)
    }
    for place, values in visible_rows(broker)[0].items():
        batches, tasks = [], defaultdict(list)
        for batch_id, sink_partition, row in map(origin.__getitem__, values):
            batches.append(batch_id)
            tasks[batch_id, sink_partition].append(row)
        assert batches == sorted(batches), f"{place}: a batch before an older one: {values}"
        for task, rows in tasks.items():
            assert rows == sorted(rows), f"{place}: rows of {task} in another order: {values}"


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
