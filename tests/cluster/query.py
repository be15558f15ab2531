"""What is submitted: tells where its tasks run, then runs the queries of the tests of chaos.

Says nothing of a master and registers nothing: the command line has the first, and Spark finds
the format by itself.
"""

import json
import queue
import sys
import threading
from pathlib import Path

from pyspark.sql import SparkSession

from tests.chaos.query import answer, listen


def where(number):
    """What a task's interpreter and its packages are."""
    import confluent_kafka

    import spark_eos

    return [sys.executable, spark_eos.__file__, confluent_kafka.__file__]


if __name__ == "__main__":
    orders, tasks = map(Path, sys.argv[1:])
    sys.stdin = orders.open()
    session = SparkSession.builder.appName("tests of spark-eos").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    found = session.sparkContext.parallelize(range(2), 2).map(where).collect()
    tasks.write_text(json.dumps(found))
    lines = queue.SimpleQueue()
    threading.Thread(target=listen, args=(lines,), daemon=True).start()
    while True:
        answer(session, json.loads(lines.get()))
