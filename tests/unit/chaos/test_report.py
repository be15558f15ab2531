"""The report says what the judge said, and stands alone."""

from tests.chaos.bench.checker import CHECKS, judge
from tests.chaos.bench.report import figures, write
from tests.chaos.bench.setting import command
from tests.unit.chaos.builders import clean, rows_of


def test_clean_run(tmp_path):
    events = clean()
    verdict = judge(events)
    target = write(verdict, events, tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "No anomaly found." in text
    assert "| driver-kill | SIGKILL to the driver. | 1 | 9.0 | 9.0 |" in text
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


def test_command_of_a_report_repeats_the_run():
    """What was left to the seed is left out, what was given is not."""
    given = {"--nemeses": None, "--transaction-timeout-ms": 5000}
    assert command(7, 30, given) == (
        ".venv/bin/python -m tests.chaos.bench --seed 7 --minutes 30 --transaction-timeout-ms 5000"
    )
