"""Records against replays are dropped once a replay is impossible, and not before."""

import secrets

import pytest

from services.security import replay


@pytest.fixture
def kept(rows):
    """`kept()`: the number of nonces and of keys."""
    return lambda: (len(rows()["Nonce"]), len(rows()["IdempotencyKey"]))


def test_nonces_of_orders_are_dropped_when_no_timestamp_allows_a_replay(api, clock, kept):
    for _ in range(3):
        api.buy()
    clock(601)  # a nonce dated 300 seconds ahead was valid until now
    replay.purge()
    assert kept() == (3, 0)
    clock(661)  # a second more, because the clock that runs evenly has fractions
    api.buy()
    replay.purge()
    assert kept() == (1, 0)


def test_keys_are_dropped_after_a_day(api, clock, kept):
    for key in "abc":
        api.buy(headers={"Idempotency-Key": key})
    clock(86_399)
    replay.purge()
    assert kept() == (0, 3)
    clock(86_401)
    api.buy(headers={"Idempotency-Key": "d"})
    replay.purge()
    assert kept() == (1, 1)


def test_a_purge_continues_from_the_last_one_and_then_from_the_start(api, other, clock, kept, monkeypatch):
    monkeypatch.setattr(replay, "PURGE_STEP", 4)
    monkeypatch.setattr(replay, "PURGE_STEPS", 2)
    for _ in range(10):
        api.buy(headers={"Idempotency-Key": secrets.token_hex(8)})
        other.buy(headers={"Idempotency-Key": secrets.token_hex(8)})
    clock(86_401)
    left = []
    for _ in range(3):
        replay.purge()
        left.append(kept())
    assert left == [(12, 12), (4, 4), (0, 0)]
    api.buy()
    clock(90_000)
    replay.purge()
    assert kept() == (0, 0)
