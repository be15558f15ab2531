"""A dry run sees what would go wrong, and leaves no trace."""

import os
import signal
import sys

import pytest
from confluent_kafka.admin import AdminClient

from tests.jobs.modules import ROOT, program

TOPICS = ("orders", "invoices", "invoices.ch", "orders.dead", "order-counts", "invoices.replayed")

PARSED = "  parse: {schema: n INT}\n"  # and no place for what does not parse


@pytest.fixture
def job(spark, kafka, topic, tmp_path, monkeypatch, capsys):
    """Runs a job's program in this process, on the session of the tests."""
    names = {name: topic(1) for name in TOPICS}
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap_servers)
    monkeypatch.setenv("DATA", str(tmp_path / "data"))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def run(name, change=lambda text: text):
        module, model = program(name)
        text = (ROOT / "conf" / "embedded" / f"{name}.yaml").read_text()
        for old in sorted(names, key=len, reverse=True):
            text = text.replace(f"topic: {old}\n", f"topic: {names[old]}\n")
            text = text.replace(f"subscribe: {old}\n", f"subscribe: {names[old]}\n")
        text = text.replace("invoices,invoices.ch", names["invoices"])
        file = tmp_path / "job.yaml"
        file.write_text(change(text))
        monkeypatch.setattr(sys, "argv", [name, "--dry-run", str(file)])
        from spark_eos.job.command import run_batch, run_query

        if name == "replay":
            code = run_batch("", model, module.steps)
        else:
            code = run_query("", model, module.query)
        shown = capsys.readouterr()
        return int(code), shown.out + shown.err

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


def topics(kafka):
    return set(AdminClient({"bootstrap.servers": kafka.bootstrap_servers}).list_topics().topics)


@pytest.mark.parametrize("name", ["consume_transform_produce", "windowed_counts", "kafka_to_delta"])
def test_good_file_is_told_and_nothing_is_touched(job, kafka, tmp_path, name):
    before = topics(kafka)
    code, shown = job(name)
    assert (code, "nothing was touched" in shown) == (0, True), shown
    assert not (tmp_path / "data").exists()
    assert topics(kafka) == before


LATE = "    watermark: {{column: {}, delay: {}}}\n    parse:\n"
TRIGGER = "${TRIGGER:-0 seconds}"


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        (
            "consume_transform_produce",
            "    parse:\n",
            LATE.format("nothing", "1 minute"),
            ":23: sources.orders.watermark: ",
        ),
        (
            "consume_transform_produce",
            "    parse:\n",
            LATE.format("timestamp", "soon"),
            ":23: sources.orders.watermark: ",
        ),
        ("consume_transform_produce", TRIGGER, "now and then", ":49: trigger.processingTime: "),
        ("kafka_to_delta", TRIGGER, "now and then", "trigger.processingTime: "),
        ("consume_transform_produce", "data.country", "data.nothing", ":29: transform: "),
        ("consume_transform_produce", "AS value", "AS valu", "column 'value' is missing"),
        ("consume_transform_produce", "price DECIMAL(10, 2)", "price DECIMALL", "parse.schema: "),
        ("consume_transform_produce", "data.price >= 0", "data.x >= 0", "parse.valid_when: "),
        ("consume_transform_produce", "topic: ", "topic: no.such.", "'no.such."),
        ("windowed_counts", "key: string(key)", "key: string(kye)", "key: "),
        ("windowed_counts", "event_time: timestamp", "event_time: value", "event_time"),
        ("windowed_counts", "event_time: ", PARSED + "event_time: ", "belong together"),
        ("kafka_to_delta", "data.total", "data.totl", "transform: "),
        ("outbox_to_kafka", "name: outbox", "name: outbox", "table: "),
        ("replay", "name: ", "name: ", "is no Delta table"),
        ("replay", "SELECT key, value", "SELECT key", "column 'value' is missing"),
    ],
)
def test_mistake_is_told_before_anything_runs(job, tmp_path, name, old, new, expected):
    def change(text):
        assert old in text
        return text.replace(old, new)

    code, shown = job(name, change)
    assert code == 2, shown
    assert expected in shown
    assert "Traceback" not in shown
    assert not (tmp_path / "data").exists()


def test_brokers_that_do_not_answer_are_told(job, monkeypatch):
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")

    def change(text):
        return text.replace("    options:\n", "    options:\n      apiTimeoutMs: 2000\n", 1)

    code, shown = job("consume_transform_produce", change)
    assert (code, "127.0.0.1:1" in shown) == (1, True), shown
    assert os.environ["KAFKA_BOOTSTRAP_SERVERS"] == "127.0.0.1:1"
