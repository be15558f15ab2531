"""Ids are built and parsed without loss, and another query's id is never one's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_eos._protocol.transactions.transactional_id import (
    TransactionalId,
    is_prefix,
    parse_transactional_id,
)

QUERY = "0f9b7a52-64b5-4f0c-9d1e-2a5d0e6f7a81"

prefixes = st.text("abcXYZ019._-", min_size=1, max_size=40)
query_ids = st.uuids().map(str)
partitions = st.none() | st.integers(0, 100_000)


@given(prefixes, query_ids, partitions)
def test_parse_returns_the_fields_it_was_built_from(prefix, query_id, partition):
    built = TransactionalId(prefix=prefix, query_id=query_id, partition=partition)
    assert parse_transactional_id(str(built)) == built


def test_prefix_that_looks_like_an_id_keeps_its_query_apart():
    other = "11111111-2222-3333-4444-555555555555"
    built = TransactionalId(prefix=f"orders-{other}-3", query_id=QUERY, partition=7)
    parsed = parse_transactional_id(str(built))
    assert parsed is not None
    assert (parsed.query_id, parsed.partition) == (QUERY, 7)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "orders",
        f"{QUERY}-1",  # no prefix
        f"orders-{QUERY}",  # no partition
        f"orders-{QUERY}-",
        f"orders-{QUERY}--1",
        f"orders-{QUERY}-01",  # not as this project writes it
        f"orders-{QUERY}-1x",
        f"orders-{QUERY.upper()}-1",
        f"orders-{QUERY[:-1]}-1",
        f"or ders-{QUERY}-1",
        f"orders-{QUERY}-1\n",
    ],
)
def test_foreign_id_is_not_parsed(text):
    assert parse_transactional_id(text) is None


@pytest.mark.parametrize("prefix", ["", "a b", "ä", "x" * 129, "a/b", "a\n"])
def test_bad_prefix_is_refused(prefix):
    assert not is_prefix(prefix)
    with pytest.raises(ValueError, match="cannot start"):
        TransactionalId(prefix=prefix, query_id=QUERY, partition=0)


def test_bad_query_id_and_partition_are_refused():
    with pytest.raises(ValueError, match="not a query id"):
        TransactionalId(prefix="p", query_id="1", partition=0)
    with pytest.raises(ValueError, match="not a partition"):
        TransactionalId(prefix="p", query_id=QUERY, partition=-1)
