"""The demo's picture: every micro-batch over time, drawn from the transaction log."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from spark_eos._log import TransactionLog
from spark_eos._protocol.transactions.state import TransactionState

OPEN, DECIDED, KILL, RECOVERY = "#9ecae1", "#3182bd", "#d62728", "#2ca02c"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """When a batch began and was decided, and how many rows it has."""

    number: int
    began: datetime
    decided: datetime
    rows: int


def read_batches(log_location: Path) -> list[Batch]:
    """The decided batches, in order."""
    found: dict[int, Batch] = {}
    for row in TransactionLog.existing(str(log_location)).records().to_pylist():
        if row["transaction_status"] != TransactionState.PREPARE_COMMIT.wire_name:
            continue
        number, decided = row["batch_id"], row["entry_timestamp"]
        began = row["start_timestamp"] or decided
        rows = sum(part["records"] for part in row["transaction_partitions"])
        if (before := found.get(number)) is not None:
            began, rows = min(began, before.began), rows + before.rows
        found[number] = Batch(number=number, began=began, decided=decided, rows=rows)
    return [found[number] for number in sorted(found)]


def draw(batches: list[Batch], killed: datetime, recovered: datetime, target: Path) -> None:
    """Write the picture to `target`."""
    start = min(batch.began for batch in batches)
    interrupted = max((b.number for b in batches if b.decided < killed), default=None)

    def seconds(at: datetime) -> float:
        return (at - start).total_seconds()

    figure, axes = plt.subplots(figsize=(10, 4.5), layout="constrained")
    for batch in batches:
        row, began, decided = batch.number, seconds(batch.began), seconds(batch.decided)
        axes.barh(row, max(0.08, decided - began), left=began, color=DECIDED, height=0.7)
        if row == interrupted:
            waiting = {"color": OPEN, "height": 0.7, "hatch": "//", "edgecolor": "white"}
            axes.barh(row, seconds(recovered) - decided, left=decided, **waiting)
            text = {"xytext": (6, 12), "textcoords": "offset points", "fontsize": 8}
            axes.annotate("decided, not yet complete", (decided, row), **text)
    done = "recovered: the batch completed"
    axes.axvline(seconds(killed), color=KILL, linewidth=2, label="driver killed (SIGKILL)")
    axes.axvline(seconds(recovered), color=RECOVERY, linewidth=2, label=done)
    axes.set(
        xlabel="seconds since the first transaction",
        ylabel="micro-batch",
        title=f"{sum(b.rows for b in batches)} rows in {len(batches)} micro-batches,"
        " each row visible exactly once",
    )
    axes.set_yticks([batch.number for batch in batches])
    axes.invert_yaxis()
    axes.legend(loc="lower left")
    figure.savefig(target, dpi=120)
    plt.close(figure)
