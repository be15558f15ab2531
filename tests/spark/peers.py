"""The same batch read through Spark's own connector and through this project."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from chispa import assert_df_equality
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

FORMATS = ["kafka", "txnkafka"]
# For Spark's connector alone: else each consumer waits for half a second when it is closed.
QUICK = {"kafka": {"kafka.fetch.max.wait.ms": "10"}, "txnkafka": {}}


@dataclass(frozen=True)
class Peers:
    """Both formats on one cluster. An option that is no text is given as JSON."""

    spark: SparkSession
    servers: str

    def frame(self, name, isolation="read_committed", **options):
        """A read that has not begun."""
        given = {
            "kafka.bootstrap.servers": self.servers,
            "kafka.isolation.level": isolation,
            "fetchOffset.retryIntervalMs": "10",
            **QUICK[name],
            **{k: v if isinstance(v, str) else json.dumps(v) for k, v in options.items()},
        }
        return self.spark.read.format(name).options(**given).load()

    def same(self, **options):
        """Assert that both give the same frame, and return how many rows that is."""

        def rows(name):
            return self.frame(name, **options).localCheckpoint()  # each is read just once

        with ThreadPoolExecutor(2) as pool:
            peer, ours = pool.map(rows, FORMATS)
        assert_same(ours, peer)
        return number_of_rows(ours)

    def refuse(self, **options):
        """Assert that neither of them reads this."""
        for name in FORMATS:
            with pytest.raises((PySparkException, Py4JJavaError)):
                self.frame(name, **options).collect()

    def tasks(self, **options):
        """In how many tasks each of them reads."""
        return [self.frame(name, **options).rdd.getNumPartitions() for name in FORMATS]


def number_of_rows(frame):
    """In one stage, where count() takes two."""
    return len(frame.select("offset").collect())


def assert_same(ours, peer):
    """Equal columns, types, nullability and rows; the rows in any order."""
    assert ours.schema == peer.schema
    # In one task, sorting needs no shuffle.
    assert_df_equality(
        ours, peer, ignore_row_order=True, transforms=[lambda frame: frame.coalesce(1)]
    )
