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
    servers = {"kafka.bootstrap.servers": bootstrap_servers}
    source = {"subscribe": "orders", "startingOffsets": "earliest"}
    sink = {"topic": "invoices", "checkpointLocation": checkpoint}
    reader = spark.readStream.format("txnkafka").options(**servers, **source)
    orders = reader.option("maxOffsetsPerTrigger", orders_per_batch).load()
    invoices = orders.selectExpr(
        "key",
        "to_json(named_struct('order', get_json_object(string(value), '$.order'),"
        " 'total', round(double(get_json_object(string(value), '$.price')) * 1.2, 2))) AS value",
    )
    writer = invoices.writeStream.format("txnkafka").options(**servers, **sink)
    writer.trigger(availableNow=True).start().awaitTermination()


def _end_with_the_demo() -> None:
    sys.stdin.read()
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=_end_with_the_demo, daemon=True).start()
    main(*sys.argv[1:])
