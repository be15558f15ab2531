"""The README is true: its examples run, its table of options is the product's, its version too."""

import re
from pathlib import Path

import pytest

import spark_eos
from spark_eos.options import SINK_OPTIONS, sink_options
from tests.chaos.oracle import assert_exactly_once

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def frame(sink, spark):
    sink.add([("a",), ("b",)], "value string")
    return spark.readStream.schema("value string").parquet(str(sink.checkpoint.parent / "input"))


def test_examples_run(sink, spark, frame, topic):
    name = topic(1)
    write, read = (
        example.replace("broker:9092", sink.bootstrap_servers)
        .replace("/data/checkpoints/invoices", str(sink.checkpoint))
        .replace('"invoices"', f'"{name}"')
        for example in EXAMPLES
    )
    query = eval(write, {"df": frame})
    query.processAllAvailable()
    query.stop()
    assert_exactly_once(sink.bootstrap_servers, name, ["a", "b"])
    found = eval(read.replace("batch_id = 42", "batch_id = 0"), {"spark": spark})
    assert [row.transaction_status for row in found.collect()] == ["PrepareCommit"]


def test_options_are_those_of_the_product():
    table = re.findall(r"^\| `([A-Za-z.*]+)` \| ?([^|]*)\|", README, re.MULTILINE)
    names = {name for name, _ in table}
    assert names == {*SINK_OPTIONS, *(n for n in names if n.startswith("kafka."))}
    options = sink_options({"kafka.bootstrap.servers": "b:1", "checkpointLocation": "/c"})
    defaults = {name: default.strip("` ") for name, default in table}
    assert defaults["transactionalIdPrefix"] == options.transactional_id_prefix
    assert int(defaults["kafka.transaction.timeout.ms"]) == options.transaction_timeout_ms
    assert int(defaults["apiTimeoutMs"]) == options.api_timeout_ms


def test_changelog_begins_with_this_version():
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] == spark_eos.__version__
