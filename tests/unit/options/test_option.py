"""A table of options: what is given is parsed, and every mistake is collected."""

import pytest

from spark_eos._options.option import SERVERS, Given, Option, Where
from spark_eos._options.types import boolean, not_blank, whole
from spark_eos.errors import OptionError

FAIL = Option(name="failOnDataLoss", parse=boolean, default=True, doc="")
GROUP = Option(name="group.id", alias="kafka.group.id", parse=not_blank, default=None, doc="")
LIMIT = Option(name="limit", parse=whole("rows"), default=None, doc="", where=Where.STREAM)
IGNORED = Option(
    name="ignored",
    parse=whole("rows"),
    default=None,
    doc="",
    where=Where.STREAM,
    is_ignored_elsewhere=True,
)
TIMEOUT = Option(name="kafka.timeout.ms", parse=whole("ms"), default=5, doc="")
TABLE = (SERVERS, FAIL, GROUP, LIMIT, IGNORED, TIMEOUT)
BROKER = {"kafka.bootstrap.servers": "b:1"}


def given(where=Where.STREAM, **options):
    return Given({n.replace("__", "."): v for n, v in options.items()}, TABLE, where, "reads")


def texts(found):
    return [mistake.text for mistake in found.mistakes]


def test_value_is_parsed_and_a_default_stands_for_what_is_not_given():
    found = given(failondataloss="FALSE", LIMIT="7")
    assert (found[FAIL], found[LIMIT], found[GROUP]) == (False, 7, None)
    assert LIMIT in found
    assert GROUP not in found
    found.raise_mistakes()


@pytest.mark.parametrize("name", ["queryname", "kafka__anything", "kafka__"])
def test_name_that_somebody_else_reads_is_taken(name):
    given(**{name: "x"}).raise_mistakes()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        (
            "failondatalos",
            "did you mean 'failOnDataLoss'? accepted options are failOnDataLoss, group.id",
        ),
        ("zzz", "accepted options are failOnDataLoss, group.id, limit, ignored and kafka.*"),
        ("bootstrap__servers", "did you mean 'kafka.bootstrap.servers'?"),
        ("timeout__ms", "did you mean 'kafka.timeout.ms'?"),
    ],
)
def test_unknown_name_is_refused_with_the_one_that_may_be_meant(name, hint):
    (text,) = texts(given(**{name: "x"}))
    assert text.startswith(f"unknown option '{name.replace('__', '.')}': {hint}")


def test_option_of_another_kind_of_query_is_refused():
    assert texts(given(Where.BATCH, limit="7")) == ["option limit is for streaming reads only"]


def test_option_that_is_ignored_elsewhere_is_checked_and_warned_of(caplog):
    (text,) = texts(given(Where.BATCH, ignored="x"))
    assert text == "ignored 'x': 1 to 2147483647 rows are accepted"
    told = [record.getMessage() for record in caplog.records]
    assert told == ["option ignored has no effect on batch reads"]


def test_two_names_of_an_option_may_say_the_same_and_nothing_else():
    assert given(group__id="g", kafka__group__id="g")[GROUP] == "g"
    assert given(kafka__group__id="g")[GROUP] == "g"
    (text,) = texts(given(group__id="g", kafka__group__id="h"))
    assert text == "group.id and kafka.group.id have different values: give one of them"


def test_every_mistake_is_told_and_the_error_names_the_first_option():
    found = given(failOnDataLoss="maybe", limit="0", group__id=" ", other="x")
    assert not found.are_right(FAIL)
    assert found.are_right(TIMEOUT)
    with pytest.raises(OptionError) as raised:
        found.raise_mistakes()
    error = raised.value
    assert [m.option for m in error.mistakes] == ["failOnDataLoss", "group.id", "limit", "other"]
    assert error.option == "failOnDataLoss"
    first, *others = str(error).splitlines()
    assert first == "4 mistakes in the options:"
    assert others[1] == "  option group.id is empty"


def test_client_gets_the_kafka_options_that_no_table_has():
    found = Given(
        BROKER | {"kafka.Client.Id": "C", "kafka.group.id": "g", "limit": "7"},
        TABLE,
        Where.STREAM,
        "reads",
    )
    config = found.client({})
    assert dict(config.pairs) == {"bootstrap.servers": "b:1", "client.id": "C"}


def test_reserved_and_refused_and_missing_client_options_are_told_together():
    found = given(kafka__acks="1", kafka__key__serializer="x")
    found.client({"acks": "it is always 'all'"})
    acks, servers, serializer = found.mistakes
    assert acks.text == "option kafka.acks cannot be set: it is always 'all'"
    assert servers.text.startswith("option kafka.bootstrap.servers is missing")
    assert serializer.option == "kafka.key.serializer"


@pytest.mark.parametrize("server", ["host:0", "host:65536", "host:port", "a b:1", "host:1,,", "["])
def test_server_that_is_none_is_refused(server):
    found = given(kafka__bootstrap__servers=server)
    found.client({})
    assert all(t.startswith("option kafka.bootstrap.servers: '") for t in texts(found))
    assert found.mistakes
