"""The judge: history in, anomalies out. Pure, and it knows nothing of the product.

What readers saw is compared with what the input topic holds; what became of each transaction is
taken from the brokers' disks, not from a client; what was decided is taken from the log table. Each
check is a function from a `Run` to anomalies, its docstring is what the report says of it, and each
has a planted history that makes it speak (tests/unit/chaos/test_checker.py).
"""

from dataclasses import dataclass

from chaos import progress_checks as progress
from chaos import rows_checks as rows
from chaos.run import Anomaly, Run, sort_out


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found, and by what: (name of the check, what it looks for, how often it spoke)."""

    run: Run
    anomalies: list
    checks: list


def judge(events):
    """All anomalies of a history."""
    run = sort_out(events)
    found = [(check, list(check(run))) for check in CHECKS]
    return Verdict(
        run,
        [anomaly for _, anomalies in found for anomaly in anomalies],
        [(c.__name__.replace("_", " "), c.__doc__, len(anomalies)) for c, anomalies in found],
    )


def incomplete(run):
    """A history that lacks what the checks need, or a query that did not reach the input's end."""
    over = run.drivers_over
    partitions = {row[0] for row in run.final} | run.stable.keys()
    missing = [
        name
        for name, there in (
            ("rows of the input", run.inputs),
            ("a final read", run.final),
            ("a reader on the way that got to the end", run.live_at.keys() >= _places(run.final)),
            ("a completed batch", run.batches),
            ("a fault, though some were asked for", run.faults or not run.nemeses),
            ("an end of the drivers", over < float("inf")),
            ("samples of the last stable offset", run.stable),
            *(
                (f"a sample of partition {p} after the drivers' end", _last(run.stable, p) > over)
                for p in sorted(partitions)
            ),
            (
                "a sample of the group after the drivers' end",
                run.groups and run.groups[-1][0] > over,
            ),
            ("the transactions on disk", run.transactions),
            ("those of the group's offsets", run.group_transactions),
            # A history that was written before these were is judged without them.
            ("the group's moves on disk", run.group_moves is None or run.group_moves),
            ("the decisions", run.decisions),
            ("the list of open transactions", run.open is not None),
            ("an end", run.end),
        )
        if not there
    ]
    if missing:
        yield Anomaly("incomplete history", f"it has not: {', '.join(missing)}")
    if run.end and not run.end["drained"]:
        yield Anomaly("not drained", f"the query did not reach the input's end: {run.end['why']}")


def _last(samples, partition):
    return samples[partition][-1][0] if partition in samples else float("-inf")


def _places(rows):
    return {(row[0], row[1]) for row in rows}


CHECKS = (
    incomplete,
    rows.lost,
    rows.duplicated,
    rows.aborted_read,
    rows.aborted_on_disk,
    rows.undecided_commit,
    rows.torn,
    rows.late,
    rows.torn_decision,
    rows.reordered,
    rows.scattered,
    progress.group_against_rows,
    progress.group_over_time,
    progress.group_on_disk,
    progress.hanging,
    progress.left_by_a_stop,
    progress.held_back,
    progress.open_below_complete,
    progress.slow_recovery,
    progress.needs_an_operator,
    progress.went_on,
)
