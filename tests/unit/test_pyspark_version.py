"""A PySpark that is missing, or too old, in one line."""

import subprocess
import sys

import pyspark
import pytest

from spark_eos._datasource import TxnKafkaDataSource
from spark_eos._pyspark_version import NEEDED
from spark_eos.errors import OptionError

WITHOUT_PYSPARK = "import sys; sys.modules['pyspark'] = None; import pyspark_txnkafka"


def test_import_without_pyspark_says_what_to_install():
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYSPARK], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == f"ImportError: {NEEDED}"


@pytest.mark.parametrize("version", ["4.0.1", "3.5.7"])
def test_pyspark_that_is_too_old_is_refused_where_the_format_is_used(version, monkeypatch):
    monkeypatch.setattr(pyspark, "__version__", version)
    with pytest.raises(OptionError, match=f"this is PySpark {version}. spark_eos needs"):
        TxnKafkaDataSource({})


@pytest.mark.parametrize("version", ["4.2.0", "4.10.0.dev1"])
def test_newer_pyspark_is_taken(version, monkeypatch):
    monkeypatch.setattr(pyspark, "__version__", version)
    assert TxnKafkaDataSource({}).schema().names[:2] == ["key", "value"]


def test_pyspark_that_can_only_write_is_refused_where_it_reads(monkeypatch):
    monkeypatch.setattr(pyspark, "__version__", "4.1.4")
    source = TxnKafkaDataSource({})
    with pytest.raises(OptionError, match=r"needs PySpark 4\.2; its writes also run with 4\.1"):
        source.schema()
