"""What a run showed, as Markdown and as one HTML file that needs nothing else."""

import statistics
from collections import Counter
from pathlib import Path

from chaos.endings import GONE, explaining
from chaos.picture import draw
from chaos.proxy import ACTIONS
from chaos.render import PICTURE, markdown, page

ROWS_SHOWN = 20
TEXT_SHOWN = 600
WHAT_A_RECOVERY_IS = (
    "From the moment when a fault is over to the end of the first micro-batch that completes after"
    " it. Faults of which the next came before that, and within the bound, are one recovery. Most"
    " of a long one is the start of a driver."
)
WHAT_EXPLAINS = (
    "Each was started again, as a service manager does. An error that no fault explains is an"
    " anomaly."
)
WHAT_REQUESTS_ARE = (
    "Requests is how many a fault of single requests met: one that met none broke nothing."
)


def figures(verdict, events):
    """The run in numbers."""
    run = verdict.run
    times = sorted(r.seconds for r in run.recoveries if r.seconds is not None)
    seconds = events[-1]["at"] - events[0]["at"]
    committed = {(row[3], row[4]) for row in run.transactions or [] if row[5] == "commit"}
    aborted = {(row[3], row[4]) for row in run.transactions or [] if row[5] == "abort"}
    ended = [d for d in run.drivers if d["phase"] == "end"]
    lengths = sorted(end - start for _, start, end in run.batches)
    return {
        "minutes": round(seconds / 60, 1),
        "rows sent": len(run.sent),
        "rows visible": len(run.final),
        "batches": len(run.batches),
        "median seconds of a batch": round(statistics.median(lengths), 2) if lengths else None,
        "transactions committed": len(committed),
        "transactions aborted": len(aborted),
        "decided transactions lost and written again": len(_lost_and_decided_again(run)),
        "faults": len(run.faults),
        "requests interfered with": sum(event["kind"] == "frame" for event in events),
        "requests overtaken by a later one": sum(bool(e.get("overtaken")) for e in events),
        "drivers": sum(d["phase"] == "start" for d in run.drivers),
        "drivers that were killed": sum(d["outcome"] == "killed" for d in ended),
        "drivers that were stopped": sum(d["outcome"] == "ended" for d in ended),
        "drivers that failed with an error": sum(d["outcome"] == "failed" for d in ended),
        "recoveries": len(run.recoveries),
        "recovery, median s": round(statistics.median(times), 1) if times else None,
        "recovery, p95 s": round(_p95(times), 1) if times else None,
        "recovery, max s": round(times[-1], 1) if times else None,
        "recovery, bound s": run.bounds["recovery_s"],
        "last stable offset, bound s": run.bounds["stable_s"],
        "group and readers, where no fault is near, bound s": run.bounds["group_s"],
        "anomalies": len(verdict.anomalies),
    }


def write(verdict, events, folder):
    """`report.md` with `report.png`, and `report.html`, in a folder; returns the path of the last.

    The HTML file has the picture inside of it.
    """
    blocks = list(_blocks(verdict, events))
    folder.mkdir(parents=True, exist_ok=True)
    picture = draw(verdict.run, events)
    (folder / PICTURE).write_bytes(picture)
    (folder / "report.md").write_text("\n\n".join(map(markdown, blocks)) + "\n", encoding="utf-8")
    target = folder / "report.html"
    target.write_text(page(blocks, picture), encoding="utf-8")
    return target


def _blocks(verdict, events):
    run = verdict.run
    about = next((event for event in events if event["kind"] == "run"), {})
    yield "h1", "A run of the chaos bench"
    found = Counter(anomaly.kind for anomaly in verdict.anomalies)
    good = "No anomaly found." if not found else f"ANOMALIES: {dict(found)}"
    yield "p", f"{good} Seed {about.get('seed')}, {about.get('wall_text')}."
    yield "table", ["figure", "value"], list(figures(verdict, events).items())
    yield "picture", "the run over time"
    yield "h2", "What ran"
    yield "table", ["part", "what"], list(about.get("setting", {}).items())
    yield "h2", "What was looked for"
    yield "table", ["check", "an anomaly is", "found"], verdict.checks
    for anomaly in verdict.anomalies:
        shown = "\n".join(str(row) for row in anomaly.rows[:ROWS_SHOWN])
        more = len(anomaly.rows) - ROWS_SHOWN
        yield "p", f"{anomaly.kind}: {anomaly.text}"
        yield "pre", shown + (f"\n... and {more} more" if more > 0 else "")
    yield from _fault_blocks(run, events, about.get("nemeses", {}))
    yield "h2", "Drivers that failed"
    yield "p", WHAT_EXPLAINS
    yield "table", ["at, s", "driver", "what it said", "explained by"], _failed(run, events)
    yield "h2", "Again"
    yield "p", "The same choice of faults; the moments depend on the machine:"
    yield "pre", about.get("command", "")
    yield "p", "To judge the history of this run once more:"
    yield "pre", f".venv/bin/python -m chaos --judge {about.get('path')}"


def _fault_blocks(run, events, texts):
    yield "h2", "Faults"
    head = ["fault", "what", "given", "requests", "recovery, median s", "max s"]
    yield "table", head, _by_kind(run, events, texts)
    yield "p", WHAT_REQUESTS_ARE
    skipped = {e["name"]: e["detail"] for e in events if e.get("phase") == "skipped"}
    given = {fault.name for fault in run.faults}
    never = {name: why for name, why in skipped.items() if name not in given}
    if never:
        yield "h2", "Faults that were not given"
        yield "table", ["fault", "why"], list(never.items())
    yield "h2", "Recoveries"
    yield "p", WHAT_A_RECOVERY_IS
    start = events[0]["at"]
    yield (
        *("table", ["at, s", "faults", "to whom", "took, s", "batch"]),
        [
            [
                *(f"{r.start - start:.1f}", r.name, "; ".join(f.target for f in r.faults)),
                *("never" if r.seconds is None else f"{r.seconds:.1f}", r.batch),
            ]
            for r in run.recoveries
        ],
    )


def _by_kind(run, events, texts):
    times, requests = {}, _requests(run, events)
    for recovery in run.recoveries:
        if len(recovery.faults) == 1 and recovery.seconds is not None:
            times.setdefault(recovery.name, []).append(recovery.seconds)
    rows = []
    for name, count in sorted(Counter(fault.name for fault in run.faults).items()):
        own = times.get(name, [])
        row = [f"{statistics.median(own):.1f}", f"{max(own):.1f}"] if own else ["", ""]
        rows.append([name, texts.get(name, ""), count, requests.get(name, ""), *row])
    return rows


def _requests(run, events):
    """For each kind of fault that is for single requests, how many it met."""
    hits = [event["at"] for event in events if event["kind"] == "frame"]
    kinds = {f"net-{action}" for action in ACTIONS}
    found = {fault.name: 0 for fault in run.faults if fault.name in kinds}
    for fault in run.faults:
        if fault.name in kinds:
            found[fault.name] += sum(fault.start <= at <= fault.end for at in hits)
    return found


def _lost_and_decided_again(run):
    """Decided, and then found aborted: its time-out was faster."""
    decided, lost = set(), set()
    for *transaction, status in run.decisions or []:
        if status == "PrepareCommit":
            decided.add(tuple(transaction))
        elif status == "CompleteAbort":
            lost.add(tuple(transaction))
    return decided & lost


def _failed(run, events):
    start = events[0]["at"]
    rows = []
    for driver in run.drivers:
        if driver["phase"] == "end" and driver["outcome"] == "failed":
            fault = explaining(driver, run)
            told = "nothing" if fault is None else f"{fault.name} at {fault.start - start:.1f} s"
            at = f"{driver['at'] - start:.1f}"
            rows.append([at, driver["number"], _error(driver["text"]), told])
    return rows


def _error(text):
    """The line of an error that names it, with paths as they are seen from here.

    Where that is Spark's, also what tells which process was gone: it may stand far below.
    """
    told = (text or "").replace(f"{Path.cwd()}/", "").strip()
    lines = [line.strip() for line in told.splitlines() if "spark_eos.errors." in line]
    first = lines[-1] if lines else told.split("\n")[0]
    gone = None if lines else GONE.search(told)
    where = gone[0].split("\n")[-1].strip() if gone else first
    return (first if where in first else f"{first} ({where})")[:TEXT_SHOWN]


def _p95(times):
    return times[min(len(times) - 1, round(0.95 * (len(times) - 1)))]
