"""The options of a write in `foreachBatch`, with and without a query to ask."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

import spark_eos
from spark_eos.errors import OptionError

QUERY_ID = "0f9b7a52-64b5-4f0c-9d1e-2a5d0e6f7a81"


def batch(**properties):
    """A frame in a thread that has these local properties."""
    found = {name.replace("_", "."): value for name, value in properties.items()}
    context = SimpleNamespace(getLocalProperty=found.get)
    return SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=context))


class ConnectSession:
    """As pyspark's own: the attribute is there, and raises."""

    @property
    def sparkContext(self):  # noqa: N802 - Spark's name
        raise AttributeError("[JVM_ATTRIBUTE_NOT_SUPPORTED]")


def test_application_has_the_id_of_the_query_that_runs():
    running = batch(sql_streaming_queryId=QUERY_ID)
    found = spark_eos.txn_options(running, 7, name="invoices")
    assert found == {"txnAppId": f"invoices:{QUERY_ID}", "txnVersion": "7"}


def test_outside_of_foreach_batch_it_is_an_error():
    with pytest.raises(OptionError, match="inside of the function that foreachBatch is given"):
        spark_eos.txn_options(batch(), 7, name="invoices")


def test_spark_connect_needs_the_id_of_the_checkpoint():
    connected = SimpleNamespace(sparkSession=ConnectSession())
    with pytest.raises(OptionError, match=r"Spark Connect .* Pass query_id.*/metadata"):
        spark_eos.txn_options(connected, 7, name="invoices")
    found = spark_eos.txn_options(connected, 7, name="invoices", query_id=QUERY_ID)
    assert found["txnAppId"] == f"invoices:{QUERY_ID}"


def test_name_must_not_be_empty():
    with pytest.raises(OptionError, match="name is empty"):
        spark_eos.txn_options(batch(sql_streaming_queryId=QUERY_ID), 7, name="")


def test_import_of_the_package_loads_no_pyspark():
    look = "import sys, spark_eos; spark_eos.txn_options; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], check=False).returncode == 0
