"""The query under test, as a program: reads the input topic, shuffles, writes the output topic.

Run by `supervisor.py` with its settings as JSON. It runs until the file `stop` is there, and ends
with the outcome in the file `result`. When the bench is gone it goes too.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession


def session(settings):
    builder = SparkSession.builder.master(settings["master"]).appName("chaos bench")
    small = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "600m",
        "spark.driver.extraJavaOptions": small,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": small,
        "spark.sql.shuffle.partitions": str(settings["partitions"]),
        # A frozen executor is given up soon enough for the bench to see it wake up as a zombie.
        "spark.executor.heartbeatInterval": "2s",
        "spark.network.timeout": "10s",
        "spark.network.timeoutInterval": "2s",
        **settings["conf"],
    }.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    return found


def start(spark, settings):
    rows = (
        spark.readStream.format("txnkafka")
        .option("kafka.bootstrap.servers", settings["servers"])
        .option("subscribe", settings["input"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", settings["offsets_per_batch"])
        .load()
        .selectExpr("string(key) AS key", "string(value) AS value")
        .repartition(settings["partitions"], "key")
    )
    return (
        rows.writeStream.format("txnkafka")
        .option("kafka.bootstrap.servers", settings["servers"])
        .option("topic", settings["output"])
        .option("checkpointLocation", settings["checkpoint"])
        .options(**settings["options"])
        .trigger(processingTime="1 second")
        .start()
    )


def run(settings):
    query = start(session(settings), settings)
    stop = Path(settings["stop"])
    while query.isActive and not stop.exists():
        time.sleep(0.1)
    if query.isActive:
        query.stop()
    if (error := query.exception()) is not None:
        raise error


def told(error):
    """Where Spark was, and what it said: for some workers that were lost it has no words."""
    stack = getattr(getattr(error, "_cause", None) or error, "_stackTrace", "")
    return f"{stack}\n{type(error).__name__}: {error}".strip()


def answer(settings):
    import spark_eos

    try:
        run(settings)
        outcome = {"ok": True, "text": ""}
    except Exception as error:
        outcome = {"ok": False, "text": told(error)}
    result = Path(settings["result"])
    part = result.with_suffix(".part")
    part.write_text(json.dumps(outcome | {"product": spark_eos.__file__}))
    part.rename(result)


def end_with_the_bench():
    sys.stdin.read()
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=end_with_the_bench, daemon=True).start()
    answer(json.loads(sys.argv[1]))
    # What Spark would still tidy up is not under test; the executors find out by themselves.
    os._exit(0)
