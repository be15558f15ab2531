"""Kafka to a Delta table and back: a batch that runs again changes nothing."""

import json
import shutil
from collections import Counter, defaultdict

import pytest

# The topics that conf/embedded/kafka_to_delta.yaml reads.
PATTERN = r"^invoices(\.ch)?$"

pytestmark = pytest.mark.slow


def rename(file, name):
    """As an operator who gives the job another name, and nothing else."""
    text = file.read_text()
    assert f"name: {name}\n" in text
    file.write_text(text.replace(f"name: {name}\n", "name: renamed\n"))


def forget_last_commit(checkpoint):
    """As a driver that died after its write and before Spark heard of it."""
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


@pytest.fixture
def invoices(jobs, topic):
    found = topic(2)
    jobs.produce(
        found,
        [(str(n % 7), json.dumps({"order": n, "total": 1.5})) for n in range(200)]
        + [("x", b"no json"), ("t", None)],
    )
    return found


def test_kafka_to_delta(jobs, spark, invoices):
    file = jobs.until_drained(jobs.file("kafka_to_delta", **{PATTERN: invoices}))
    jobs.run("kafka_to_delta", file)
    forget_last_commit(jobs.folder / "checkpoints" / "invoice-table")
    rename(file, "invoice-table")
    jobs.produce(invoices, [("0", json.dumps({"order": 200, "total": 2}))])
    jobs.run("kafka_to_delta", file)
    table = spark.read.format("delta").load(str(jobs.folder / "tables" / "invoices"))
    assert Counter(row.order for row in table.collect()) == Counter(range(201))
    dead = spark.read.format("delta").load(str(jobs.folder / "tables" / "invoices_dead"))
    assert [bytes(row.value) for row in dead.collect()] == [b"no json"]


def test_kafka_to_delta_from_a_checkpoint_that_was_restored(jobs, spark, invoices):
    """Delta knows its version, and would leave out what came since: those rows would be lost."""
    checkpoint = jobs.folder / "checkpoints" / "invoice-table"
    backup = jobs.folder / "backup"
    file = jobs.until_drained(jobs.file("kafka_to_delta", **{PATTERN: invoices}))
    jobs.run("kafka_to_delta", file)
    shutil.copytree(checkpoint, backup)
    for order in (200, 201):
        jobs.produce(invoices, [("0", json.dumps({"order": order, "total": 2}))])
        jobs.run("kafka_to_delta", file)
    shutil.rmtree(checkpoint)
    shutil.copytree(backup, checkpoint)
    said = jobs.run("kafka_to_delta", file, expect=4).text()
    assert "has micro-batch 1 of this job already" in said
    table = spark.read.format("delta").load(str(jobs.folder / "tables" / "invoices"))
    assert Counter(row.order for row in table.collect()) == Counter(range(202))


def test_kafka_to_delta_keeps_the_newest_of_a_key(jobs, spark, topic):
    source = topic(1)
    jobs.produce(source, [("k", json.dumps({"order": n % 5, "total": n})) for n in range(100)])
    file = jobs.until_drained(jobs.file("kafka_to_delta", **{PATTERN: source}))
    text = file.read_text().replace("# merge:", "merge:").replace("#   key", "  key")
    file.write_text(text.replace("#   order_by: [timestamp, offset]", "  order_by: [offset]"))
    jobs.run("kafka_to_delta", file)
    forget_last_commit(jobs.folder / "checkpoints" / "invoice-table")
    jobs.run("kafka_to_delta", file)
    table = spark.read.format("delta").load(str(jobs.folder / "tables" / "invoices"))
    assert {row.order: int(row.total) for row in table.collect()} == {n: 95 + n for n in range(5)}
    assert table.count() == 5


def test_outbox_to_kafka(jobs, spark, topic):
    target = topic(3)
    outbox = str(jobs.folder / "tables" / "outbox")
    write_outbox(spark, outbox, target, range(300))
    file = jobs.until_drained(jobs.file("outbox_to_kafka"))
    jobs.run("outbox_to_kafka", file)
    forget_last_commit(jobs.folder / "checkpoints" / "outbox")
    rename(file, "outbox")
    write_outbox(spark, outbox, target, range(300, 400))
    jobs.run("outbox_to_kafka", file)
    found = defaultdict(list)
    for key, value, _ in jobs.records(target):
        found[key.decode()].append(int(value))
    assert found == {str(k): [n for n in range(400) if n % 11 == k] for k in range(11)}


def write_outbox(spark, table, target, numbers):
    """In an order that is not that of the ids."""
    rows = [(n, target, str(n % 11), str(n)) for n in sorted(numbers, key=lambda n: n * 7 % 101)]
    frame = spark.createDataFrame(rows, "id long, topic string, key string, value string")
    frame.repartition(4).write.format("delta").mode("append").save(table)
