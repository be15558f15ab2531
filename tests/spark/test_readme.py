"""The README is true: its examples run, its table of options is the product's, its version too."""

import re
from pathlib import Path

import pytest
from confluent_kafka import Producer

import spark_eos
from tests.chaos.oracle import assert_exactly_once

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
SOURCE = (ROOT / "docs" / "source.md").read_text()
GUARANTEES = (ROOT / "docs" / "guarantees.md").read_text()


def examples(page, **places):
    """The examples of a page, with places of this run in them."""
    found = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for name, place in places.items():
        found = [example.replace(f'"{name}"', f'"{place}"') for example in found]
    return found


def test_examples_run(kafka, spark, topic, tmp_path):
    orders, invoices = topic(1), topic(1)
    write(kafka, orders, "a", "b")
    places = {"broker:9092": kafka.bootstrap_servers, "orders": orders, "invoices": invoices}
    page = README.replace("/data/checkpoints", str(tmp_path))
    job, look, batch, for_each_batch = examples(page, **places)
    names = {"spark": spark}
    exec(job, names)
    names["query"].processAllAvailable()
    names["query"].stop()
    assert_exactly_once(kafka.bootstrap_servers, invoices, ["A", "B"])
    found = eval(look.replace("batch_id = 42", "batch_id = 0"), names)
    assert [row.transaction_status for row in found.collect()] == ["PrepareCommit"] * 2
    for _ in range(2):
        exec(batch, names)
    written = ["A", "B", *(str(number) for number in range(100))]
    assert_exactly_once(kafka.bootstrap_servers, invoices, written)
    exec(for_each_batch, names)
    names["query"].processAllAvailable()
    names["query"].stop()
    assert_exactly_once(kafka.bootstrap_servers, invoices, [*written, "a", "b"])


def test_examples_of_the_source_run(kafka, spark, topic):
    orders = topic(1)
    write(kafka, orders, "a", time_ms=1_700_000_000_000)
    stream, batch, third, listen = examples(
        SOURCE, **{"broker:9092": kafka.bootstrap_servers, "orders": orders}
    )
    names = {"spark": spark}
    exec(stream, names)
    assert names["orders"].isStreaming
    exec(batch, names)
    assert [row.value for row in names["yesterday"].collect()] == [b"a"]
    assert "startingBatch" in third  # it runs in test_snapshot.py
    exec(f"{listen}\nspark.streams.removeListener(LagListener())", names)


def write(kafka, topic, *values, time_ms=0):
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for value in values:
        producer.produce(topic, value, timestamp=time_ms)
    assert producer.flush(30) == 0


@pytest.mark.parametrize(
    ("page", "heading", "rows"),
    [(SOURCE, "| what | shown by |", 20), (GUARANTEES, "| anomaly | looked for by |", 16)],
    ids=["source", "guarantees"],
)
def test_each_row_of_a_table_names_a_test_that_is_there(page, heading, rows):
    table = page.partition(heading)[2].partition("\n\n")[0]
    shown = re.findall(r"`([a-z_/]+\.py)::(test_\w+)`", table)
    lines = table.splitlines()[2:]
    assert len(lines) >= rows
    assert all("::test_" in line for line in lines)
    for file, test in shown:
        assert f"def {test}(" in (ROOT / "tests" / file).read_text(), f"{file}::{test}"


def test_what_people_do_is_shown_by_tests_that_are_there():
    """Only what nobody can tell needs no test."""
    section = GUARANTEES.partition("## What people do\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1:4] for row in section.splitlines() if row.count("|") == 4]
    rows = [row for row in rows if not set(row[0]) <= set("-") and "shown by" not in row[2]]
    assert len(rows) > 70
    for _, what, shown in rows:
        is_told = "**Works**" in what or "**Stops**" in what or "**stops**" in what
        assert not is_told or "::test_" in shown, what
        for file, test in re.findall(r"`([a-z_/]+\.py)::(test_\w+)`", shown):
            assert f"def {test}(" in (ROOT / "tests" / file).read_text(), f"{file}::{test}"


def test_changelog_begins_with_this_version():
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] == spark_eos.__version__
