"""The picture of the demo: every micro-batch over time, drawn from the transaction log."""

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
    """When the transactions of a batch began, when it was decided, how many rows it has."""

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
        rows = sum(part["records"] for part in row["transaction_partitions"])
        number = row["batch_id"]
        before = found.get(number)
        began = row["start_timestamp"] or row["entry_timestamp"]
        found[number] = Batch(
            number=number,
            began=began if before is None else min(began, before.began),
            decided=row["entry_timestamp"],
            rows=rows if before is None else rows + before.rows,
        )
    return [found[number] for number in sorted(found)]


def draw(batches: list[Batch], killed: datetime, recovered: datetime, target: Path) -> None:
    """Write the picture to `target`."""
    start = min(batch.began for batch in batches)

    def seconds(at: datetime) -> float:
        return (at - start).total_seconds()

    figure, axes = plt.subplots(figsize=(10, 4.5), layout="constrained")
    for batch in batches:
        interrupted = batch.decided < killed < recovered and batch.number == max(
            b.number for b in batches if b.decided < killed
        )
        end = recovered if interrupted else batch.decided
        axes.barh(
            batch.number,
            max(0.08, seconds(batch.decided) - seconds(batch.began)),
            left=seconds(batch.began),
            color=DECIDED,
            height=0.7,
        )
        if interrupted:
            axes.barh(
                batch.number,
                seconds(end) - seconds(batch.decided),
                left=seconds(batch.decided),
                color=OPEN,
                height=0.7,
                hatch="//",
                edgecolor="white",
            )
            axes.annotate(
                "decided, not yet complete",
                (seconds(batch.decided), batch.number),
                xytext=(6, 12),
                textcoords="offset points",
                fontsize=8,
            )
    axes.axvline(seconds(killed), color=KILL, linewidth=2, label="driver killed (SIGKILL)")
    axes.axvline(
        seconds(recovered), color=RECOVERY, linewidth=2, label="recovered: the batch completed"
    )
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
