"""Driver. The demo's job, in its own process: orders in, invoices out, exactly once."""

import os
import signal
import sys
import threading

from pyspark.sql import SparkSession


def main(bootstrap_servers: str, checkpoint: str, orders_per_batch: str) -> None:
    """Read all existing orders in micro-batches, and write an invoice for each."""
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("invoices")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    orders = (
        spark.readStream.format("txnkafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", orders_per_batch)
        .load()
    )
    invoices = orders.selectExpr(
        "key",
        "to_json(named_struct('order', get_json_object(string(value), '$.order'),"
        " 'total', round(double(get_json_object(string(value), '$.price')) * 1.2, 2))) AS value",
    )
    query = (
        invoices.writeStream.format("txnkafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("topic", "invoices")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _end_with_the_demo() -> None:
    sys.stdin.read()
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=_end_with_the_demo, daemon=True).start()
    main(*sys.argv[1:])
