"""What the checks of the judge work on: a history, sorted into what they ask for. Pure."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from chaos.timing import faults_of, recoveries_of

DEFAULT_BOUNDS = {"recovery_s": 120.0, "stable_s": 120.0, "group_s": 10.0}


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One thing that must not happen, and the rows that show it."""

    kind: str
    text: str
    rows: list = field(default_factory=list)


@dataclass(slots=True)
class Run:
    """A history, sorted into what the checks ask for."""

    bounds: dict
    nemeses: dict  # the faults that were asked for: name -> text
    inputs: dict  # value -> (partition, offset, key), and how often it was sent
    sent: Counter
    final: list  # [partition, offset, key, value], in offset order
    live: list
    live_at: dict  # (partition, offset) -> when a reader saw it first
    batches: list  # those that completed: (id, start, end) by end
    starts: dict  # batch id -> when its range was planned
    ends: dict  # batch id -> {input partition: end offset}
    stable: dict  # output partition -> [(answered, last stable offset, end offset, asked)]
    groups: list  # (asked, answered, {input partition: offset})
    transactions: list | None
    group_transactions: list | None
    group_moves: list | None  # on disk, in order: [partition, offset, input partition, moved to]
    decisions: list | None
    open: list | None
    stopped: list  # (when, driver, whether tasks ran, what was open)
    drivers: list
    faults: list
    recoveries: list
    end: dict | None

    @property
    def all_transactions(self):
        """Those of the rows, and those of the group's offsets."""
        return [*(self.transactions or ()), *(self.group_transactions or ())]

    def is_calm(self, since, until, but=""):
        """Whether no fault, but those of a name, was given in this time, nor shortly before it."""
        patience = self.bounds["group_s"]
        others = (f for f in self.faults if f.name != but)
        return all(f.start > until or f.end + patience < since for f in others)

    @property
    def drivers_over(self):
        """When the last driver ended; never where one has not."""
        ended = {d["number"]: d["at"] for d in self.drivers if d["phase"] == "end"}
        if {d["number"] for d in self.drivers} - ended.keys():
            return float("inf")
        return max(ended.values(), default=float("inf"))


def sort_out(events):
    """The events of a history as a `Run`."""
    of = defaultdict(list)
    for event in events:
        of[event["kind"]].append(event)
    bounds, nemeses = dict(DEFAULT_BOUNDS), {}
    for event in of["run"]:
        bounds |= event.get("bounds", {})
        nemeses |= event.get("nemeses", {})
    sent_rows = [row for event in of["input"] for row in event["rows"]]
    ended = [event for event in of["batch"] if event["end"] is not None]
    batches = sorted(((e["id"], e["start"], e["end"]) for e in ended), key=lambda batch: batch[2])
    faults = faults_of(events)
    stable = defaultdict(list)
    for event in of["offsets"]:
        for partition, (last_stable, end) in event["partitions"].items():
            asked = event.get("asked", event["at"])
            stable[int(partition)].append((event["at"], last_stable, end, asked))

    def seen(reader):
        chosen = (event["rows"] for event in of["seen"] if event["reader"] == reader)
        return sorted((row for rows in chosen for row in rows), key=lambda row: (row[0], row[1]))

    def last(kind):
        return of[kind][-1]["rows"] if of[kind] else None

    return Run(
        bounds=bounds,
        nemeses=nemeses,
        inputs={value: (partition, offset, key) for partition, offset, key, value in sent_rows},
        sent=Counter(row[3] for row in sent_rows),
        final=seen("final"),
        live=seen("live"),
        live_at={
            (row[0], row[1]): event["at"]
            for event in reversed(of["seen"])
            if event["reader"] == "live"
            for row in event["rows"]
        },
        batches=batches,
        starts={e["id"]: e["start"] for e in of["batch"]},
        ends={e["id"]: {int(p): o for p, o in e["ends"].items()} for e in of["batch"]},
        stable=dict(stable),
        groups=[
            (e["asked"], e["at"], {int(p): o for p, o in e["partitions"].items()})
            for e in of["group"]
        ],
        transactions=last("transactions"),
        group_transactions=last("group_transactions"),
        group_moves=last("group_moves"),
        decisions=last("decisions"),
        open=last("open"),
        stopped=[(e["at"], e["driver"], e["in_tasks"], e["rows"]) for e in of["stopped"]],
        drivers=of["driver"],
        faults=faults,
        recoveries=recoveries_of(
            faults, batches, bounds["recovery_s"], batches[0][2] if batches else float("-inf")
        ),
        end=of["end"][-1] if of["end"] else None,
    )
