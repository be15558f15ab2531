"""Decks: every variant once before one comes again, the same for the same seed."""

import pytest

from chaos.cluster_faults import FRAME_FAULTS
from chaos.deck import APIS, CLASSIC, FIRST, LATER, Draw
from chaos.proxy import ACTIONS, API

STEPS = ("a", "b", "c", "d", "e")
SEEDS = range(40)


def dealt(seed, turns, name="some", variants=STEPS):
    return [Draw(seed, name, turn).deal(variants) for turn in turns]


def apis(seed, turns):
    """Every (action, api) of some turns, in which each action comes once."""
    return [
        (action, Draw(seed, f"net-{action}", turn).deal_api(action, ACTIONS))
        for turn in turns
        for action in ACTIONS
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_variant_comes_once_before_one_comes_again(seed):
    for times in range(3):
        turns = range(times * len(STEPS), (times + 1) * len(STEPS))
        assert sorted(dealt(seed, turns)) == sorted(STEPS)


def test_deck_is_shuffled_by_seed_fault_and_time():
    first = dealt(1, range(5))
    assert first == dealt(1, range(5))
    for others in (
        [dealt(seed, range(5)) for seed in SEEDS],
        [dealt(1, range(5), f"fault {number}") for number in SEEDS],
        [dealt(1, range(5 * times, 5 * times + 5)) for times in range(1, 40)],
    ):
        assert any(other != first for other in others)


def test_two_decks_of_a_fault_are_independent():
    pairs = {(Draw(1, "x", turn).deal("ab"), Draw(1, "x", turn).deal("cd")) for turn in range(40)}
    assert len(pairs) == 4


def test_numbers_differ_from_turn_to_turn():
    assert Draw(1, "x", 0).random() == Draw(1, "x", 0).random() != Draw(1, "x", 1).random()


@pytest.mark.parametrize("seed", SEEDS)
def test_no_pair_of_action_and_api_comes_again_before_all_have_come(seed):
    pairs = apis(seed, range(len(APIS)))
    assert len(set(pairs)) == len(pairs) == len(ACTIONS) * len(APIS)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_main_requests_come_before_others(seed):
    first = apis(seed, range(1 + len(FIRST)))
    assert {api for _, api in first} == {CLASSIC, *FIRST}
    assert {api for _, api in apis(seed, range(4, 6))} == set(LATER)


@pytest.mark.parametrize("seed", SEEDS)
def test_three_turns_disturb_every_main_request_and_end_every_transaction_badly(seed):
    assert {api for _, api in apis(seed, [0])} == {CLASSIC, *FIRST}
    assert {(action, CLASSIC) for action in ACTIONS} < set(apis(seed, range(3)))


def test_proxy_knows_every_api():
    assert set(APIS) <= set(API.values())
    assert len(FRAME_FAULTS) == len(ACTIONS)
