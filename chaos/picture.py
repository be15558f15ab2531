"""The picture of a run: rows that became visible each second, recoveries, and the faults below."""

import io

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

VISIBLE, SENT, FAULT, RECOVERY = "#3182bd", "#9ecae1", "#d62728", "#2ca02c"


def draw(run, events):
    """The picture as a PNG."""
    start = events[0]["at"]
    length = int(events[-1]["at"] - start) + 1
    visible = [0] * length
    for event in events:
        if event["kind"] == "seen" and event["reader"] == "live":
            visible[int(event["at"] - start)] += len(event["rows"])
    names = sorted({fault.name for fault in run.faults})
    figure, (above, below) = plt.subplots(
        *(2, 1),
        figsize=(12, 4 + 0.25 * len(names)),
        layout="constrained",
        sharex=True,
        height_ratios=[3, max(1, 0.25 * len(names))],
    )
    above.bar(range(length), visible, width=1.0, color=VISIBLE, label="rows that became visible")
    for number, recovery in enumerate(run.recoveries):
        if recovery.end is not None:
            label = "fault over, until the next batch completed" if number == 0 else None
            span = (recovery.start - start, recovery.end - start)
            above.axvspan(*span, color=RECOVERY, alpha=0.3, label=label)
    above.set(ylabel="rows a second")
    above.legend(loc="upper right")
    for fault in run.faults:
        seconds = max(length / 250, fault.end - fault.start)  # else a kill cannot be seen
        below.barh(names.index(fault.name), seconds, left=fault.start - start, color=FAULT)
    below.set(xlabel="seconds since the start", yticks=range(len(names)), yticklabels=names)
    below.invert_yaxis()
    below.tick_params(axis="y", labelsize=8)
    below.grid(axis="x", alpha=0.3)
    target = io.BytesIO()
    figure.savefig(target, dpi=110, format="png")
    plt.close(figure)
    return target.getvalue()
