"""A job's file: every mistake at once, each with its line, and never a secret."""

from pathlib import Path

import pytest

from spark_eos.job.configuration import ConfigurationError, load
from spark_eos.job.sections import Sink, Source, StreamingJob


class Example(StreamingJob):
    """A file with all kinds of parts."""

    sources: dict[str, Source]
    transform: str
    sink: Sink


GOOD = """\
name: invoices
kafka:
  bootstrap.servers: ${SERVERS:-localhost:9092}
  sasl.password: ${PASSWORD}
sources:
  orders:
    options: {subscribe: orders, maxOffsetsPerTrigger: 100, includeHeaders: true}
transform: SELECT * FROM orders
sink:
  options:
    topic: invoices
    kafka.sasl.password: own
    checkpointLocation: /c
"""


def read(tmp_path: Path, text: str, **environment: str) -> Example:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    return load(path, Example, {"PASSWORD": "hunter2"} | environment).job


def mistakes(tmp_path: Path, text: str, **environment: str) -> list[str]:
    with pytest.raises(ConfigurationError) as raised:
        read(tmp_path, text, **environment)
    return str(raised.value).replace(f"{tmp_path}/job.yaml:", "").splitlines()


def test_sources_and_sinks_share_the_clients_settings(tmp_path: Path) -> None:
    job = read(tmp_path, GOOD)
    assert job.sources["orders"].options == {
        "subscribe": "orders",
        "maxOffsetsPerTrigger": "100",
        "includeHeaders": "true",
        "kafka.bootstrap.servers": "localhost:9092",
        "kafka.sasl.password": "hunter2",
    }
    assert job.sink.options["kafka.sasl.password"] == "own"
    assert job.trigger.arguments() == {"processingTime": "0 seconds"}


def test_environment_comes_before_the_default(tmp_path: Path) -> None:
    job = read(tmp_path, GOOD, SERVERS="broker:1")
    assert job.sink.options["kafka.bootstrap.servers"] == "broker:1"


def test_value_of_a_variable_is_not_looked_into(tmp_path: Path) -> None:
    text = GOOD.replace("/c", "&c ${A}") + "stop_timeout_s: 1\n"
    job = read(tmp_path, text.replace("SELECT * FROM orders", "${A}"), A="${PASSWORD}")
    assert job.transform == job.sink.options["checkpointLocation"] == "${PASSWORD}"


WRITTEN = ["00123", "0123456", "1_000", "12:34:56", "on", "no", "1e3", "0x1F", ".5", "2024-01-01"]


@pytest.mark.parametrize("written", WRITTEN)
def test_value_is_the_text_that_was_written(tmp_path: Path, written: str) -> None:
    """YAML would read numbers, times and words for true and false into them."""
    text = GOOD.replace("${PASSWORD}", written).replace("SELECT * FROM orders", written)
    job = read(tmp_path, text.replace("kafka.sasl.password: own", f"group.id: {written}"))
    assert job.sources["orders"].options["kafka.sasl.password"] == written
    assert job.sink.options["kafka.sasl.password"] == job.sink.options["group.id"] == written
    assert job.transform == written


@pytest.mark.parametrize("written", ["true", "True", "TRUE"])
def test_true_is_true_in_any_case(tmp_path: Path, written: str) -> None:
    text = GOOD.replace("includeHeaders: true", f"includeHeaders: {written}")
    text += f"trigger: {{availableNow: {written}}}\nstop_timeout_s: 5\nrestart: {{limit: 3}}\n"
    job = read(tmp_path, text)
    assert job.sources["orders"].options["includeHeaders"] == "true"
    assert job.trigger.arguments() == {"availableNow": True}
    assert (job.stop_timeout_s, job.restart.limit) == (5.0, 3)


def test_date_for_a_time_is_told_as_it_was_written(tmp_path: Path) -> None:
    text = GOOD.replace("maxOffsetsPerTrigger: 100", "startingTimestamp: 2024-01-01")
    (told,) = mistakes(tmp_path, text)
    assert told.startswith("7: startingTimestamp '2024-01-01': "), told
    assert "milliseconds since 1970" in told


def test_own_setting_of_a_source_counts_before_the_shared_one_in_any_case(tmp_path: Path) -> None:
    job = read(tmp_path, GOOD.replace("kafka.sasl.password: own", "Kafka.SASL.Password: own"))
    passwords = {v for k, v in job.sink.options.items() if k.lower() == "kafka.sasl.password"}
    assert passwords == {"own"}


def test_every_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    text = """\
name: ""
nam: x
kafka:
  acks: all
  sasl.password: ${PASS}
sources:
  orders:
    options:
      subscribe: a b
      maxOffsetsPerTrigger: abc
      startingOffsets: erliest
      subscrib: orders
sink:
  options:
    topic: in voices
    topic: again
    group.id:
trigger: {processingTime: 1 second, availableNow: true}
restart: {limit: -1}
"""
    found = mistakes(tmp_path, text)
    expected = [
        "1: name: String should have at least 1 character",
        "1: transform: is missing",
        "2: nam: is an unknown key",
        "4: option kafka.acks cannot be set: it is always 'all'",
        "5: the environment variable PASS is not set, and no default is given",
        "9: option kafka.bootstrap.servers is missing",
        "9: subscribe 'a b': ",
        "10: maxOffsetsPerTrigger 'abc': ",
        "11: startingOffsets 'erliest': accepted values are",
        "12: unknown option 'subscrib': did you mean 'subscribe'?",
        "15: option checkpointLocation is missing",
        "15: option kafka.bootstrap.servers is missing",
        "16: topic: is given twice",
        "17: group.id: has no value",
        "18: trigger: give one of processingTime and availableNow",
        "19: restart.limit: Input should be greater than or equal to 0",
    ]
    assert len(found) == len(expected), "\n".join(found)
    for line, start in zip(found, expected, strict=True):
        assert line.startswith(start), f"{line}\nis not\n{start}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1: a job's file is a mapping"),
        ("- a\n", "1: a job's file is a mapping"),
        ("name: [\n", "2: not valid YAML: "),
        ("a: b: c\n", "1: not valid YAML: "),
        ("name: a\n---\nname: b\n", "2: not valid YAML: "),
        ("a: &a\n  b: *a\n", "1: a part of the file contains itself"),
        ("name: !!python/object:os.system x\n", "1: not valid YAML: "),
        ("name: x\nsink: 5\n", "2: sink: "),
        ("name: x\nsink:\n  options: 5\n", "3: sink.options: "),
        ("name: x\nsink:\n  options:\n    topic: [a]\n", "4: topic: has no value"),
    ],
)
def test_text_that_is_no_job(tmp_path: Path, text: str, expected: str) -> None:
    found = mistakes(tmp_path, text)
    assert any(line.startswith(expected) for line in found), found


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"1: cannot be read: No such file"):
        load(tmp_path / "absent.yaml", Example, {})
    (tmp_path / "job.yaml").write_bytes(b"name: \xff")
    with pytest.raises(ConfigurationError, match=r"1: cannot be read: it is not UTF-8"):
        load(tmp_path / "job.yaml", Example, {})


def test_no_mistake_shows_a_secret(tmp_path: Path) -> None:
    text = GOOD.replace("maxOffsetsPerTrigger: 100", "kafka.sasl.password: [hunter2]")
    text = text.replace("kafka.sasl.password: own", "kafka.sasl.passwrd: hunter2\n    x: hunter2")
    found = mistakes(tmp_path, text)
    assert len(found) >= 2
    assert "hunter2" not in "\n".join(found)
