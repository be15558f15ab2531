"""The report says what the judge said, and stands alone."""

import json

import pytest

from chaos.__main__ import main
from chaos.checker import CHECKS, judge
from chaos.report import figures, write
from chaos.setting import command
from tests.unit.chaos.builders import clean, fault, rows_of, sorted_by_time


def test_clean_run(tmp_path):
    events = clean()
    verdict = judge(events)
    target = write(verdict, events, tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "No anomaly found." in text
    assert "| driver-kill | SIGKILL to the driver. | 1 |  | 9.0 | 9.0 |" in text
    assert "| machine | some |" in text
    for check in CHECKS:
        assert f"| {check.__doc__} | 0 |" in text
    assert "![the run over time](report.png)" in text
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
    page = target.read_text()
    assert "data:image/png;base64," in page
    assert 'src="http' not in page
    found = figures(verdict, events)
    assert found["recovery, median s"] == 9.0
    assert (found["batches"], found["rows sent"], found["rows visible"]) == (2, 8, 8)


def test_anomalies_are_shown_with_their_rows(tmp_path):
    events = clean()
    rows_of(events, "seen", "final").remove([1, 4, "b", "b:3"])
    target = write(judge(events), events, tmp_path)
    for path in (target, tmp_path / "report.md"):
        text = path.read_text()
        assert "ANOMALIES" in text
        assert "b:3" in text
    assert "| A row of the input that is not visible at the end. | 1 |" in text


def test_faults_of_requests_tell_how_many_they_met(tmp_path):
    """Those outside of its time are not its own; one that met none says so."""
    events = clean()
    for number, (name, start) in enumerate((("net-cut-after", 23.0), ("net-drop", 26.0)), 2):
        events += [fault(number, name, "start", start), fault(number, name, "end", start + 1)]
    for at in (19.0, 23.2, 23.8, 25.0):
        hit = {"kind": "frame", "at": at, "node": 1, "api": "EndTxn", "action": "cut-after"}
        events.append(hit)
    events = sorted_by_time(events)
    write(judge(events), events, tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "| net-cut-after |  | 1 | 2 |" in text
    assert "| net-drop |  | 1 | 0 |" in text
    assert "| driver-kill | SIGKILL to the driver. | 1 |  |" in text


def test_decided_transactions_that_were_lost_are_counted():
    events = clean()
    name = "decided transactions lost and written again"
    assert figures(judge(events), events)[name] == 0
    decisions = rows_of(events, "decisions")
    decisions.append([1, "t-0", 100, 9, "CompleteAbort"])  # of an attempt that was never decided
    assert figures(judge(events), events)[name] == 0
    decisions[3:3] = [[1, "t-0", 100, 5, "PrepareCommit"], [1, "t-0", 100, 5, "CompleteAbort"]]
    assert figures(judge(events), events)[name] == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "java.io.EOFException\n\tat java.io.In\n\tat o.a.s.PythonStreamingSourceRunner.init\n",
            "java.io.EOFException (at o.a.s.PythonStreamingSourceRunner)",
        ),
        (
            "Py4JJavaError: An error\n: Spark: Python worker exited unexpectedly (crashed)",
            "Py4JJavaError: An error (Python worker exited unexpectedly)",
        ),
        (
            "Python worker exited unexpectedly\nspark_eos.errors.FencedError: another driver",
            "spark_eos.errors.FencedError: another driver",
        ),
        ("SparkException: [OTHER]\n\tat o.a.s.Other", "SparkException: [OTHER]"),
    ],
)
def test_what_drivers_said_names_the_process_that_was_gone(tmp_path, text, shown):
    events = clean()
    events.append({"kind": "driver", "at": 21.0, "phase": "end", "number": 2, "pid": 9})
    events[-1] |= {"outcome": "failed", "text": text}
    events = sorted_by_time(events)
    write(judge(events), events, tmp_path)
    explained = "driver-kill at 20.0 s" if "Fenced" in text else "nothing"
    assert f"| 2 | {shown} | {explained} |" in (tmp_path / "report.md").read_text()


def test_command_of_a_report_repeats_the_run():
    """What was left to the seed is left out. The faults are named: later there may be more."""
    given = {"--rate": None, "--transaction-timeout-ms": 5000}
    assert command(7, 30, ["driver-kill", "net-drop"], given) == (
        ".venv/bin/python -m chaos --seed 7 --minutes 30"
        " --nemeses driver-kill,net-drop --transaction-timeout-ms 5000"
    )


@pytest.mark.parametrize("anomalies", [0, 1])
def test_stored_history_is_judged_with_an_exit_status(tmp_path, capsys, anomalies):
    events = clean()
    if anomalies:
        rows_of(events, "group_transactions").pop()
    path = tmp_path / "history.jsonl"
    path.write_text("".join(f"{json.dumps(event)}\n" for event in sorted_by_time(events)))
    assert main(["--judge", str(path), "--build", str(tmp_path / "build")]) == anomalies
    assert ("ANOMALY torn batch" in capsys.readouterr().out) == bool(anomalies)
    assert (tmp_path / "build" / "report.html").exists()
