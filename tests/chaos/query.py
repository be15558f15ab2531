"""The queries under test, in a process of their own: numbered rows from files to Kafka.

Run by `driver.py`, which writes one JSON line a query to standard input and reads the outcome
from a file. A query reads every file of a folder, a few at a time, and ends when all are read, so
that what must be in the topic is known: each number once.
"""

import json
import os
import queue
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "600m",
    # Half of a start is the compiler at work.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "4",
}


def read(spark, settings):
    """Files, a few at a time, or a topic."""
    if settings["read_topic"] is None:
        files = spark.readStream.schema("value string")
        files = files.option("maxFilesPerTrigger", settings["files_per_batch"])
        return files.text(settings["input"])
    return (
        spark.readStream.format("txnkafka")
        .option("kafka.bootstrap.servers", settings["bootstrap_servers"])
        .option("subscribe", settings["read_topic"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", settings["offsets_per_batch"])
        .load()
        .selectExpr("string(value) AS value")
    )


def run(spark, settings):
    if settings["write"] is not None:
        write(spark, settings)
        return
    rows = read(spark, settings).selectExpr("value AS key", *settings["select"])
    if settings["partitions"] is not None:
        rows = rows.repartition(settings["partitions"], "key")
    query = (
        rows.writeStream.format("txnkafka")
        .option("kafka.bootstrap.servers", settings["bootstrap_servers"])
        .option("topic", settings["topic"])
        .option("checkpointLocation", settings["checkpoint"])
        .options(**settings["options"])
        .trigger(availableNow=True)
        .start()
    )
    if settings["stop_when"] is not None:
        reached = Path(settings["stop_when"])
        while not reached.exists():
            time.sleep(0.02)
        stop(query, reached.with_name("stop.reached"))
    query.awaitTermination()


def stop(query, told):
    """Stop it, and tell when that has begun: `stop` itself returns when the query has ended."""
    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(query.stop)
        while query.isActive and not stopping.done():
            time.sleep(0.01)
        told.with_suffix(".part").write_text(str(os.getpid()))
        told.with_suffix(".part").rename(told)
        stopping.result()


def write(spark, settings):
    """A batch write of `write` numbers."""
    (
        spark.range(settings["write"], numPartitions=settings["partitions"])
        .selectExpr("string(id) AS value")
        .write.format("txnkafka")
        .mode("append")
        .option("kafka.bootstrap.servers", settings["bootstrap_servers"])
        .option("topic", settings["topic"])
        .options(**settings["options"])
        .save()
    )


def listen(lines):
    """Hand over what the test writes; when the test is gone, this driver goes too."""
    for line in sys.stdin:
        lines.put(line)
    os.killpg(os.getpgid(0), signal.SIGKILL)


def answer(spark, settings):
    try:
        run(spark, settings)
        outcome = {"ok": True, "text": ""}
    except Exception as error:
        outcome = {"ok": False, "text": str(error)}
    result = Path(settings["result"])
    result.with_suffix(".part").write_text(json.dumps(outcome))
    result.with_suffix(".part").rename(result)


if __name__ == "__main__":
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    lines = queue.SimpleQueue()
    threading.Thread(target=listen, args=(lines,), daemon=True).start()
    while True:
        answer(session, json.loads(lines.get()))
