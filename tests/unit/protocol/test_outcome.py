"""The outcome of every code that the three requests can answer, written out by hand."""

import pytest

from spark_eos._protocol.transactions.outcome import (
    ASK_AGAIN,
    REFUSED,
    Api,
    ErrorCode,
    Outcome,
    error_name,
    outcome_of,
)

D, R, U = Outcome.DONE, Outcome.REFUSED, Outcome.UNKNOWN
# code: EndTxn, InitProducerId, DescribeTransactions
TABLE = {
    -1: (U, U, U),
    0: (D, D, D),
    3: (U, U, U),
    5: (U, U, U),
    7: (U, U, U),
    13: (U, U, U),
    14: (U, U, U),
    15: (U, U, U),
    16: (U, U, U),
    29: (U, U, U),
    31: (R, R, R),
    35: (R, R, R),
    42: (R, R, R),
    47: (R, R, U),
    48: (R, U, U),
    49: (R, R, U),
    50: (U, R, U),
    51: (U, U, U),
    53: (R, R, R),
    90: (R, R, U),
    105: (R, U, R),
    120: (R, R, U),
}
APIS = (Api.END_TXN, Api.INIT_PRODUCER_ID, Api.DESCRIBE_TRANSACTIONS)


@pytest.mark.parametrize("code", sorted(TABLE))
def test_each_code_has_its_outcome(code):
    assert tuple(outcome_of(api, code) for api in APIS) == TABLE[code]


def test_table_names_every_code():
    assert set(TABLE) == {int(code) for code in ErrorCode}


@pytest.mark.parametrize("code", [1, 99, 32_000, -2])
def test_code_that_nobody_knows_is_unknown_and_never_done(code):
    assert {outcome_of(api, code) for api in APIS} == {Outcome.UNKNOWN}
    assert str(code) in error_name(code)


@pytest.mark.parametrize("api", APIS)
def test_what_is_asked_again_is_never_a_refusal(api):
    assert not ASK_AGAIN & REFUSED[api]


def test_error_name_is_kafkas():
    assert error_name(51) == "CONCURRENT_TRANSACTIONS"
