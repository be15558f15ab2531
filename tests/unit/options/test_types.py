"""One option's text in, one value out, or what is accepted instead."""

import pytest

from spark_eos._options.types import INT, LONG, boolean, choice, duration_ms, not_blank, whole


def refusal(parse, value):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is what is tested
        parse(value)
    return str(caught.value)


def test_text_is_as_given():
    assert not_blank(" a ") == " a "


@pytest.mark.parametrize("value", ["", " ", "\t\n"])
def test_blank_text_is_refused(value):
    assert refusal(not_blank, value) == ""


@pytest.mark.parametrize(("value", "expected"), [("1", 1), ("007", 7), (str(LONG), LONG)])
def test_number(value, expected):
    assert whole("offsets", most=LONG)(value) == expected


@pytest.mark.parametrize(
    "value",
    ["", " 1", "1 ", "+1", "1.0", "1e3", "0x1", "1_000", "1,000", "٣", "²", "one", "1\n", "--1"],
)
def test_text_is_no_number(value):
    assert refusal(whole("offsets", most=LONG), value) == f"1 to {LONG} offsets are accepted"


@pytest.mark.parametrize(
    ("value", "most"),
    [
        ("0", LONG),
        ("-1", LONG),
        (str(LONG + 1), LONG),
        ("1" * 20, LONG),
        pytest.param("1" * 5000, LONG, id="endless"),
        (str(INT + 1), INT),
    ],
)
def test_number_out_of_bounds_is_refused_with_the_bounds(value, most):
    assert refusal(whole("rows", most=most), value) == f"1 to {most} rows are accepted"


def test_number_may_have_another_least():
    assert whole("ms", least=0)("0") == 0
    assert refusal(whole("ms", least=10), "9") == f"10 to {INT} ms are accepted"


@pytest.mark.parametrize(
    ("value", "expected"),
    [("true", True), ("TRUE", True), ("false", False), ("False", False)],
)
def test_boolean(value, expected):
    assert boolean(value) is expected


@pytest.mark.parametrize("value", ["", "yes", "1", "0", " true", "none"])
def test_text_is_no_boolean(value):
    assert refusal(boolean, value) == "true or false is accepted"


def test_choice_has_no_case():
    assert choice("error", "latest")(" LATEST ") == "latest"
    assert refusal(choice("error", "latest"), "never") == "accepted values are error, latest"


@pytest.mark.parametrize(
    ("value", "expected"),
    [("15m", 900_000), ("30 s", 30_000), ("500ms", 500), ("7", 7), ("1H", 3_600_000)],
)
def test_duration(value, expected):
    assert duration_ms(value) == expected


@pytest.mark.parametrize("value", ["", "m", "-1s", "1.5m", "1 week"])
def test_text_is_no_duration(value):
    assert refusal(duration_ms, value) == "give a time such as 15m, 30s or 500ms"
