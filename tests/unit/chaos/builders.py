"""A clean history, and ways to plant one thing in it."""

FAULT_AT, FAULT_OVER = 20.0, 21.0
KEYS = ("a", "b")


def clean():
    """Two batches of two input partitions; a fault between them; everything as it should be.

    Key a is in input partition 0 and output partition 0, key b in 1. Each batch has two rows of
    each, written by one transaction a partition and ended by a marker; one more transaction moves
    the group, in partition 4 of the topic for that.
    """
    inputs = [[p, o, key, f"{key}:{o}"] for p, key in enumerate(KEYS) for o in range(4)]
    # Offsets of the output: two rows, a marker, two rows, a marker.
    places = (0, 1, 3, 4)
    outputs = [[p, places[o], key, f"{key}:{o}"] for p, key in enumerate(KEYS) for o in range(4)]
    transactions = [
        [p, 3 * batch, 3 * batch + 1, 100 + p, batch, "commit"] for batch in (0, 1) for p in (0, 1)
    ]
    group_transactions = [[4, 3 * batch, 3 * batch + 1, 102, batch, "commit"] for batch in (0, 1)]
    moves = [[4, 3 * batch + p, p, 2 * batch + 2] for batch in (0, 1) for p in (0, 1)]
    decisions = [
        [batch, name, producer_id, batch, "PrepareCommit"]
        for batch in (0, 1)
        for name, producer_id in (("t-0", 100), ("t-1", 101), ("t-offsets", 102))
    ]
    return [
        {
            "kind": "run",
            "at": 0.0,
            "bounds": {"recovery_s": 30.0, "stable_s": 10.0},
            "nemeses": {"driver-kill": "SIGKILL to the driver."},
            "setting": {"machine": "some"},
        },
        {"kind": "input", "at": 1.0, "rows": inputs},
        driver(1, "start", 5.0),
        batch(0, 10.0, 12.0, 2),
        offsets(12.5, {0: (3, 3), 1: (3, 3)}),
        group(12.6, 2),
        seen(13.0, "live", [row for row in outputs if row[1] < 3]),
        fault(1, "driver-kill", "start", FAULT_AT),
        fault(1, "driver-kill", "end", FAULT_OVER),
        driver(1, "end", 21.0, outcome="killed", text="exit status -9"),
        offsets(22.0, {0: (3, 5), 1: (3, 5)}),
        driver(2, "start", 22.0),
        batch(1, 19.0, 30.0, 4),
        seen(30.5, "live", [row for row in outputs if row[1] >= 3]),
        offsets(31.0, {0: (6, 6), 1: (6, 6)}),
        group(45.0, 4),
        driver(2, "end", 50.0, outcome="ended", text=""),
        seen(51.0, "final", outputs),
        {"kind": "transactions", "at": 52.0, "rows": transactions},
        {"kind": "group_transactions", "at": 52.0, "rows": group_transactions},
        {"kind": "group_moves", "at": 52.0, "rows": moves},
        {"kind": "decisions", "at": 52.0, "rows": decisions},
        {"kind": "open", "at": 52.0, "rows": []},
        offsets(52.5, {0: (6, 6), 1: (6, 6)}),
        group(52.6, 4),
        {"kind": "end", "at": 53.0, "drained": True, "why": "all read"},
    ]


def batch(number, start, end, offset):
    ends = {"0": offset, "1": offset}
    return {"kind": "batch", "at": end, "id": number, "start": start, "end": end, "ends": ends}


def offsets(at, partitions):
    found = {str(partition): list(pair) for partition, pair in partitions.items()}
    return {"kind": "offsets", "at": at, "partitions": found}


def group(at, offset):
    found = {"0": offset, "1": offset}
    return {"kind": "group", "asked": at - 0.1, "at": at, "partitions": found}


def fault(number, name, phase, at):
    return {"kind": "fault", "id": number, "name": name, "phase": phase, "target": "x", "at": at}


def driver(number, phase, at, **more):
    return {"kind": "driver", "number": number, "phase": phase, "at": at, "pid": 1, **more}


def stopped(at, *, in_tasks):
    rows = [["t-0", "Ongoing"]]
    return {"kind": "stopped", "at": at, "driver": 2, "in_tasks": in_tasks, "rows": rows}


def seen(at, reader, rows):
    return {"kind": "seen", "at": at, "reader": reader, "rows": [list(row) for row in rows]}


def rows_of(events, kind, reader=None):
    """The rows of the last event of this kind, to be changed in place."""
    found = [e for e in events if e["kind"] == kind and e.get("reader") == reader]
    return found[-1]["rows"]


def put_off(events, since, seconds):
    """Everything that happens from a moment on happens later."""
    for event in events:
        for name in ("at", "asked", "start", "end"):
            if event.get(name, 0.0) >= since:
                event[name] += seconds


def without(events, kind, reader=None):
    return [e for e in events if (e["kind"], e.get("reader")) != (kind, reader)]


def sorted_by_time(events):
    return sorted(events, key=lambda event: event["at"])
