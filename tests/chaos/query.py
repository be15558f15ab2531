"""The query under test, as a program of its own: numbered rows from files to Kafka.

Run by `driver.py` with one JSON argument. Reads every file of a folder, a few at a time, and ends
when all are read, so that what must be in the topic is known: each number once.
"""

import json
import os
import signal
import sys
import threading
import time

from pyspark.sql import SparkSession


def end_with_the_test():
    """The test holds the other end of standard input: when it is gone, so is this driver."""
    sys.stdin.read()
    os.killpg(os.getpgid(0), signal.SIGKILL)


def main(settings):
    builder = SparkSession.builder.master(settings.get("master", "local[2,4]"))
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "600m",
        "spark.sql.shuffle.partitions": "4",
        **settings.get("conf", {}),
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    rows = (
        spark.readStream.schema("value string")
        .option("maxFilesPerTrigger", settings.get("files_per_batch", 1))
        .text(settings["input"])
        .selectExpr("value AS key", *settings.get("select", ["value"]))
        .repartition(settings.get("partitions", 4), "key")
    )
    query = (
        rows.writeStream.format("txnkafka")
        .option("kafka.bootstrap.servers", settings["bootstrap_servers"])
        .option("topic", settings["topic"])
        .option("checkpointLocation", settings["checkpoint"])
        .options(**settings.get("options", {}))
        .trigger(**settings.get("trigger", {"availableNow": True}))
        .start()
    )
    if "stop_after" in settings:
        time.sleep(settings["stop_after"])
        query.stop()
    query.awaitTermination()


if __name__ == "__main__":
    threading.Thread(target=end_with_the_test, daemon=True).start()
    main(json.loads(sys.argv[1]))
