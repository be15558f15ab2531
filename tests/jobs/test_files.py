"""The files in conf/ are right, as they are in the repository, and so is what is said of them."""

import re

import pytest

from spark_eos._options import stream_options
from spark_eos.job.configuration import load
from tests.jobs.modules import NAMES, ROOT, program

ENVIRONMENT = {
    "KAFKA_BOOTSTRAP_SERVERS": "localhost:9092",
    "KAFKA_USERNAME": "user",
    "KAFKA_PASSWORD": "hunter2",
    "SHARED": "/shared",
}


def test_every_job_has_a_file():
    assert sorted(path.stem for path in (ROOT / "conf" / "embedded").glob("*.yaml")) == NAMES


@pytest.mark.parametrize("path", sorted((ROOT / "conf").rglob("*.yaml")), ids=lambda p: p.stem)
def test_file_is_right(path):
    _, model = program(path.stem)
    loaded = load(path, model, ENVIRONMENT)
    assert loaded.job.name
    if path.parent.name == "cluster":
        assert loaded.job.sink.options["kafka.sasl.password"] == "hunter2"


@pytest.mark.parametrize("name", NAMES)
def test_every_key_of_a_model_is_in_its_file(name):
    """So that a reader of the file knows all that there is."""
    _, model = program(name)
    text = (ROOT / "conf" / "embedded" / f"{name}.yaml").read_text()
    common = {"restart", "stop_timeout_s", "dead_letter", "trigger"}
    for field in set(model.model_fields) - common:
        assert re.search(rf"^(# )?{field}:", text, re.MULTILINE), field


def test_table_of_invoices_takes_no_copies_of_them():
    _, model = program("kafka_to_delta")
    loaded = load(ROOT / "conf" / "embedded" / "kafka_to_delta.yaml", model, ENVIRONMENT)
    pattern = stream_options(loaded.job.source.options).subscription
    read = {t: pattern.matches(t) for t in ("invoices", "invoices.ch", "invoices.replayed")}
    assert read == {"invoices": True, "invoices.ch": True, "invoices.replayed": False}


def test_docs_name_files_that_are_there():
    text = (ROOT / "docs" / "jobs.md").read_text()
    named = set(re.findall(r"(?<![\w/])(?:jobs|conf)/[\w/]+\.(?:py|yaml|conf)", text))
    assert len(named) >= 8
    for path in named - {"conf/job.yaml"}:
        assert (ROOT / path).is_file(), path
