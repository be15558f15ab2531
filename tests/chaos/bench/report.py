"""What a run showed, as Markdown and as one HTML file that needs nothing else."""

import base64
import html
import statistics
from collections import Counter
from pathlib import Path

from tests.chaos.bench.picture import draw

ROWS_SHOWN = 20
TEXT_SHOWN = 600
PICTURE = "report.png"
WHAT_A_RECOVERY_IS = (
    "From the moment when a fault is over to the end of the first micro-batch that completes after"
    " it. Faults of which the next came before that are one recovery. Most of a long one is the"
    " start of a driver."
)
STYLE = """body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}
table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2em .6em;text-align:left}
pre{background:#f6f6f6;padding:.6em;overflow-x:auto}img{max-width:100%}
.bad{color:#d62728}.good{color:#2ca02c}"""


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
        "faults": len(run.faults),
        "requests interfered with": sum(event["kind"] == "frame" for event in events),
        "drivers": sum(d["phase"] == "start" for d in run.drivers),
        "drivers that failed with an error": sum(d["outcome"] == "failed" for d in ended),
        "recoveries": len(run.recoveries),
        "recovery, median s": round(statistics.median(times), 1) if times else None,
        "recovery, p95 s": round(_p95(times), 1) if times else None,
        "recovery, max s": round(times[-1], 1) if times else None,
        "recovery, bound s": run.bounds["recovery_s"],
        "last stable offset, bound s": run.bounds["stable_s"],
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
    (folder / "report.md").write_text("\n\n".join(map(_markdown, blocks)) + "\n", encoding="utf-8")
    page = f"<!doctype html><meta charset=utf-8><title>chaos bench</title><style>{STYLE}</style>"
    body = "\n".join(_html(block, picture) for block in blocks)
    target = folder / "report.html"
    target.write_text(f"{page}\n{body}\n", encoding="utf-8")
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
    yield "h2", "Drivers that ended"
    yield "table", ["drivers", "how", "what they said"], _drivers(run)
    yield "h2", "Again"
    yield "p", "The same choice of faults; the moments depend on the machine:"
    yield "pre", about.get("command", "")
    yield "p", "To judge the history of this run once more:"
    yield "pre", f".venv/bin/python -m tests.chaos.bench --judge {about.get('path')}"


def _fault_blocks(run, events, texts):
    yield "h2", "Faults"
    yield "table", ["fault", "what", "given", "recovery, median s", "max s"], _by_kind(run, texts)
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


def _by_kind(run, texts):
    times = {}
    for recovery in run.recoveries:
        if len(recovery.faults) == 1 and recovery.seconds is not None:
            times.setdefault(recovery.name, []).append(recovery.seconds)
    rows = []
    for name, count in sorted(Counter(fault.name for fault in run.faults).items()):
        own = times.get(name, [])
        row = [f"{statistics.median(own):.1f}", f"{max(own):.1f}"] if own else ["", ""]
        rows.append([name, texts.get(name, ""), count, *row])
    return rows


def _drivers(run):
    ended = Counter()
    for driver in run.drivers:
        if driver["phase"] == "end":
            ended[driver["outcome"], _error(driver["text"])] += 1
    return [[count, outcome, text] for (outcome, text), count in ended.most_common()]


def _error(text):
    """The line of an error that names it, with paths as they are seen from here."""
    told = (text or "").replace(f"{Path.cwd()}/", "").strip()
    lines = [line.strip() for line in told.splitlines() if "spark_eos.errors." in line]
    return (lines[-1] if lines else told.split("\n")[0])[:TEXT_SHOWN]


def _p95(times):
    return times[min(len(times) - 1, round(0.95 * (len(times) - 1)))]


def _markdown(block):
    kind, *rest = block
    if kind == "table":
        head, rows = rest
        lines = [head, ["---"] * len(head), *rows]
        return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)
    if kind == "pre":
        return f"```\n{rest[0]}\n```"
    if kind == "picture":
        return f"![{rest[0]}]({PICTURE})"
    return {"h1": "# ", "h2": "## ", "p": ""}[kind] + rest[0]


def _cell(value):
    return str(value).replace("|", "\\|").replace("\n", " ")


def _html(block, picture):
    kind, *rest = block
    if kind == "picture":
        data = base64.b64encode(picture).decode()
        return f'<img alt="{html.escape(rest[0])}" src="data:image/png;base64,{data}">'
    if kind != "table":
        return f"<{kind}>{html.escape(rest[0])}</{kind}>"
    head, rows = rest

    def line(cells, tag):
        inner = "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells)
        return f"<tr>{inner}</tr>"

    return f"<table>{line(head, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"
