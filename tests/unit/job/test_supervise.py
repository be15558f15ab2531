"""Which failures are tried again, how often, and which end a job for good."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from spark_eos import errors
from spark_eos.job._stop import Stop
from spark_eos.job._supervise import Exit, RunResult, reason, supervise, verdict
from spark_eos.job.sections import Restart

# What Spark 4.2 hands to the driver, with other paths.
TEXTS = Path(__file__).parents[2] / "data" / "worker_errors"
RESTART = Restart(limit=3, first_pause_s=1.0, longest_pause_s=3.0)


class Pauses(Stop):
    """Counts instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, seconds: float) -> bool:
        self.seconds.append(seconds)
        return self.is_requested


def run(attempts: Iterable[RunResult], stop: Stop) -> Exit:
    left: Iterator[RunResult] = iter(attempts)
    return supervise(lambda: next(left), RESTART, stop)


def failed(text: str = "broken", *, progressed: bool = False) -> RunResult:
    return RunResult(RuntimeError(text), progressed=progressed)


def test_good_end_is_the_end() -> None:
    assert run([RunResult(None, progressed=True)], Pauses()) is Exit.DONE


def test_pauses_grow_up_to_the_longest() -> None:
    pauses = Pauses()
    assert run([failed()] * 4, pauses) is Exit.GAVE_UP
    assert pauses.seconds == [1.0, 2.0, 3.0]


def test_a_batch_between_two_failures_starts_the_count_again() -> None:
    pauses = Pauses()
    attempts = [failed(), failed(), failed(progressed=True), *[failed()] * 3]
    assert run(attempts, pauses) is Exit.GAVE_UP
    assert pauses.seconds == [1.0, 2.0, 1.0, 2.0, 3.0]


def test_stop_ends_a_pause_and_hides_the_failure_of_a_query_that_was_stopped() -> None:
    pauses = Pauses()
    pauses.request()
    assert run([failed()], pauses) is Exit.DONE
    assert pauses.seconds == []


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (errors.FencedError, Exit.NEEDS_A_PERSON),
        (errors.NonDeterministicReplayError, Exit.NEEDS_A_PERSON),
        (errors.OutcomeUnknownError, Exit.NEEDS_A_PERSON),
        (errors.DataLossError, Exit.NEEDS_A_PERSON),
        (errors.GroupInUseError, Exit.NEEDS_A_PERSON),
        (errors.CorruptLogError, Exit.NEEDS_A_PERSON),
        (errors.OptionError, Exit.WRONG_CONFIGURATION),
        (errors.BrokerUnreachableError, None),
        (errors.TransactionLostError, None),
        (errors.DeliveryError, None),
        (errors.RetriableError, None),
        (ValueError, None),
    ],
)
def test_each_error_has_a_verdict_also_as_the_text_of_a_worker(
    kind: type[Exception], expected: Exit | None
) -> None:
    assert verdict(kind("text")) is expected
    told = RuntimeError(
        "[STREAM_FAILED] Query [id = 1] terminated with exception: Traceback (most recent call"
        f' last):\n  File "x.py", line 1\n{kind.__module__}.{kind.__name__}: what happened\n'
    )
    assert verdict(told) is expected
    if expected is not None:
        pauses = Pauses()
        assert run([RunResult(told, progressed=False)], pauses) is expected
        assert pauses.seconds == []


@pytest.mark.parametrize(
    ("name", "expected", "told"),
    [
        ("planner", Exit.WRONG_CONFIGURATION, "OptionError: topic 'nowhere' does not exist on"),
        ("task", Exit.WRONG_CONFIGURATION, "OptionError: topic 'nowhere' does not exist, or"),
        ("commit_worker", Exit.WRONG_CONFIGURATION, "OptionError: group.id 'g' can be moved"),
        ("source_runner", Exit.WRONG_CONFIGURATION, "OptionError: topic 'nowhere' does not"),
        ("planner_of_a_batch", Exit.WRONG_CONFIGURATION, "OptionError: topic 'nowhere' does not"),
        ("task_of_a_batch", Exit.WRONG_CONFIGURATION, "OptionError: topic 'nowhere' does not"),
        ("foreach_batch", Exit.NEEDS_A_PERSON, "FencedError: own error in foreachBatch"),
        ("chained", Exit.NEEDS_A_PERSON, "DataLossError: orders-0: gone"),
        ("another_library", None, "RuntimeError: [STREAM_FAILED]"),
        ("quoted", None, "RuntimeError: [STREAM_FAILED]"),
    ],
)
def test_verdict_and_reason_of_the_texts_that_spark_hands_over(
    name: str, expected: Exit | None, told: str
) -> None:
    error = RuntimeError((TEXTS / f"{name}.txt").read_text())
    assert verdict(error) is expected
    assert reason(error).startswith(told)


class OptionError(Exception):
    """A name that other libraries have too."""


def test_error_of_another_library_is_tried_again_whatever_its_name() -> None:
    assert verdict(OptionError("no such option")) is None
    assert verdict(RuntimeError("click.exceptions.OptionError: no such option")) is None


def test_cause_of_an_error_counts_as_in_the_text_of_a_worker() -> None:
    wrapped = RuntimeError("it failed")
    wrapped.__cause__ = errors.DataLossError("gone")
    assert verdict(wrapped) is Exit.NEEDS_A_PERSON


def test_error_without_a_text_counts() -> None:
    assert verdict(RuntimeError("Traceback\nspark_eos.errors.FencedError\n SQLSTATE")) is (
        Exit.NEEDS_A_PERSON
    )


def test_reason_is_the_line_that_says_what_happened() -> None:
    text = "[STREAM_FAILED] Query ended\n File x\nspark_eos.errors.FencedError: another\nSQLSTATE"
    assert reason(RuntimeError(text)) == "FencedError: another"
    assert reason(RuntimeError("\nfirst\nsecond")) == "RuntimeError: first"


def test_reason_names_every_mistake_of_an_error_with_several() -> None:
    told = (
        "[PYTHON_DATA_SOURCE_ERROR] Traceback (most recent call last):\n"
        '  File "/x/spark_eos/_options/option.py", line 1, in raise_mistakes\n'
        "spark_eos.errors.OptionError: 2 mistakes in the options:\n"
        "  topic 'a b': a topic's name has 1 to 249 letters\n"
        "  option kafka.acks cannot be set: it is always 'all'\n"
        "\n"
        "  SQLSTATE: 38000"
    )
    assert reason(RuntimeError(told)).splitlines() == [
        "OptionError: 2 mistakes in the options:",
        "  topic 'a b': a topic's name has 1 to 249 letters",
        "  option kafka.acks cannot be set: it is always 'all'",
    ]
