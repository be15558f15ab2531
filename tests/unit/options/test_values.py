"""One option string in, one value out, or one error that names the option and what is accepted."""

import pytest

from spark_eos._options.values import (
    boolean,
    client_config,
    lower_case,
    milliseconds,
    number,
    refuse_unknown,
    required,
    text,
)
from tests.unit.options.builders import SERVERS, refusal

INT = 2**31 - 1
LONG = 2**63 - 1


def test_names_lose_their_case_and_values_keep_it():
    assert lower_case({"Topic": "A", "kafka.Client.Id": "B"}) == {
        "topic": "A",
        "kafka.client.id": "B",
    }


@pytest.mark.parametrize("name", ["failondataloss", "queryname", "kafka.anything", "kafka."])
def test_known_name_is_taken(name):
    refuse_unknown({name: "x"}, ["failOnDataLoss"])


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("failondatalos", "did you mean 'failOnDataLoss'? accepted are"),
        ("zzz", "accepted are failOnDataLoss, assign and kafka.*"),
        ("kafkabootstrap", "accepted are"),
        ("bootstrap.servers", "did you mean 'kafka.bootstrap.servers'?"),
        ("transaction.timeout.ms", "did you mean 'kafka.transaction.timeout.ms'?"),
    ],
)
def test_unknown_name_is_refused_with_the_one_that_may_be_meant(name, hint):
    found = refusal(refuse_unknown, {name: "x"}, ["failOnDataLoss", "assign"])
    assert found.startswith(f"unknown option '{name}': {hint}")


def test_client_gets_the_kafka_options_without_those_of_the_source():
    given = SERVERS | {"kafka.client.id": "c", "kafka.group.id": "g", "subscribe": "t"}
    config = client_config(given, {}, own=("kafka.group.id",))
    assert dict(config.pairs) == {"bootstrap.servers": "127.0.0.1:9092", "client.id": "c"}


def test_reserved_client_option_is_refused_with_the_reason():
    given = SERVERS | {"kafka.acks": "1"}
    found = refusal(client_config, given, {"acks": "it is always 'all'"})
    assert found == "option kafka.acks cannot be set: it is always 'all'"


@pytest.mark.parametrize("servers", [{}, {"kafka.bootstrap.servers": " "}])
def test_servers_are_required(servers):
    assert "option kafka.bootstrap.servers is missing" in refusal(client_config, servers, {})


@pytest.mark.parametrize("server", ["host:0", "host:65536", "host:port", "a b:1", "host:1,,", "["])
def test_server_that_is_none_is_refused(server):
    given = {"kafka.bootstrap.servers": server}
    assert refusal(client_config, given, {}).startswith("option kafka.bootstrap.servers: '")


def test_text_is_as_given():
    assert text({"groupidprefix": " a "}, "groupIdPrefix") == " a "
    assert text({}, "groupIdPrefix") is None
    assert required({"groupidprefix": "a"}, "groupIdPrefix", "a name") == "a"


@pytest.mark.parametrize("value", ["", " ", "\t\n"])
def test_blank_text_is_refused(value):
    given = {"groupidprefix": value}
    assert refusal(text, given, "groupIdPrefix") == "option groupIdPrefix is empty"
    assert refusal(required, given, "groupIdPrefix", "a name") == "option groupIdPrefix is empty"


def test_required_text_is_missed_with_what_to_set():
    found = refusal(required, {}, "groupIdPrefix", "a name")
    assert found.startswith("option groupIdPrefix is missing: set a name with .option(")


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        ("1", "offsets", 1),
        ("007", "offsets", 7),
        (str(LONG), "offsets", LONG),
        (str(LONG), "milliseconds since 1970", LONG),
        (str(INT), "partitions", INT),
    ],
)
def test_number(value, unit, expected):
    assert number({"n": value}, "n", unit=unit) == expected


def test_number_that_is_not_given_is_none():
    assert number({}, "n") is None


@pytest.mark.parametrize(
    "value",
    ["", " 1", "1 ", "+1", "1.0", "1e3", "0x1", "1_000", "1,000", "٣", "²", "one", "1\n", "--1"],
)
def test_text_is_no_number(value):
    assert refusal(number, {"n": value}, "N") == f"N '{value}': 1 to {LONG} offsets are accepted"


@pytest.mark.parametrize(
    ("value", "unit", "largest"),
    [
        ("0", "offsets", LONG),
        ("-1", "offsets", LONG),
        (str(LONG + 1), "offsets", LONG),
        ("1" * 20, "offsets", LONG),
        pytest.param("1" * 5000, "offsets", LONG, id="endless"),
        (str(LONG + 1), "milliseconds since 1970", LONG),
        (str(INT + 1), "partitions", INT),
        (str(INT + 1), "milliseconds", INT),
    ],
)
def test_number_out_of_bounds_is_refused_with_the_bounds(value, unit, largest):
    def ask():
        number({"n": value}, "N", unit=unit)

    assert refusal(ask) == f"N '{value}': 1 to {largest} {unit} are accepted"


def test_milliseconds_have_a_default_and_a_least():
    assert milliseconds({}, "ms", 5, least=10) == 5
    assert milliseconds({"ms": "10"}, "ms", 5, least=10) == 10
    found = refusal(lambda: milliseconds({"ms": "9"}, "ms", 5, least=10))
    assert found == f"ms '9': 10 to {INT} milliseconds are accepted"


@pytest.mark.parametrize(
    ("value", "expected"),
    [("true", True), ("TRUE", True), ("false", False), ("False", False)],
)
def test_boolean(value, expected):
    assert boolean({"b": value}, "b", default=not expected) is expected
    assert boolean({}, "b", default=expected) is expected


@pytest.mark.parametrize("value", ["", "yes", "1", "0", " true", "none"])
def test_text_is_no_boolean(value):
    found = refusal(lambda: boolean({"b": value}, "B", default=True))
    assert found == f"B '{value}': true or false is accepted"
