"""Pure arithmetic on times: faults, recoveries, standstill of the last stable offset."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault as it was given. A fault that was never ended lasts until the run's end."""

    id: int
    name: str
    target: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Recovery:
    """Faults, the last one's end, and the first batch that completed after it (None: none did)."""

    faults: tuple[Fault, ...]
    start: float
    end: float | None
    batch: int | None

    @property
    def seconds(self):
        return None if self.end is None else self.end - self.start

    @property
    def name(self):
        return " + ".join(fault.name for fault in self.faults)


def faults_of(events):
    """Every fault of a history, in the order of their starts."""
    last = events[-1]["at"] if events else 0.0
    started = {e["id"]: e for e in events if e["kind"] == "fault" and e["phase"] == "start"}
    ended = {e["id"]: e for e in events if e["kind"] == "fault" and e["phase"] == "end"}
    found = []
    for number, e in sorted(started.items(), key=lambda item: item[1]["at"]):
        end = ended.get(number, {"at": last, "target": e["target"]})
        found.append(Fault(number, e["name"], end["target"], e["at"], end["at"]))
    return found


def recoveries_of(faults, batches, bound_s, began=float("-inf")):
    """How long each fault took to get over. `batches` are (id, start, end), sorted by end.

    A fault that is given before the one before was recovered from belongs to the same recovery:
    its time runs from the moment at which the last of them was over. Not where `bound_s` was over
    by then: a query that hung until it was killed did not recover fast. `began` is the end of the
    first batch: what is broken before a query has ever run is not recovered from.
    """
    chains = []
    for fault in (fault for fault in faults if fault.end >= began):
        members, over = chains[-1] if chains else ([], float("-inf"))
        recovered = any(over < end <= fault.start for _, _, end in batches)
        if fault.start <= over + bound_s and not recovered:
            chains[-1] = ([*members, fault], max(over, fault.end))
        else:
            chains.append(([fault], fault.end))
    found = []
    for members, over in chains:
        batch = next(((number, end) for number, _, end in batches if end > over), (None, None))
        found.append(Recovery(tuple(members), over, batch[1], batch[0]))
    return found


def longest_standstill(samples, faults):
    """The longest time that an open transaction held readers back with nobody to blame.

    `samples` are (at, last stable offset, end offset, ...) of one partition. Time under a fault
    does not count, and no more than that. Returns (seconds, at, offset).
    """
    longest, since = (0.0, 0.0, -1), None
    for at, stable, end, *_ in samples:
        if stable >= end or since is None or since[1] != stable:
            since = (at, stable) if stable < end else None
            continue
        seconds = at - since[0] - _under_faults(since[0], at, faults)
        if seconds > longest[0]:
            longest = (seconds, at, stable)
    return longest


def _under_faults(start, end, faults):
    """How much of a time lies under one fault or several."""
    covered, reached = 0.0, start
    for fault in sorted(faults, key=lambda fault: fault.start):
        begin, over = max(fault.start, reached), min(fault.end, end)
        if over > begin:
            covered += over - begin
            reached = over
    return covered
