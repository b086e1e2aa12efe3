"""Sliding windows: never more than the limit, earlier hits count by their share, and callers are soon forgotten."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st

from services.platform.rate_limits import Rate
from tests.support import NOON

SECONDS, MOST = 10, 10


@pytest.fixture
def rate(clock):
    return Rate(MOST, SECONDS)


def taken(rate, tries=100, who="a"):
    """The number of accepted hits."""
    return sum(rate.hit(who) for _ in range(tries))


def test_hits_up_to_the_limit_are_accepted_for_each_caller(rate):
    assert [rate.hit("a") for _ in range(MOST + 3)] == [True] * MOST + [False] * 3
    assert (rate.is_reached("a"), rate.is_reached("b")) == (True, False)
    assert taken(rate, who="b") == MOST


def test_checking_the_limit_counts_nothing(rate):
    assert not any(rate.is_reached("a") for _ in range(100))
    assert taken(rate) == MOST


@pytest.mark.parametrize(("part", "more"), [(0, 0), (0.05, 0), (0.15, 1), (0.55, 5), (0.95, 9)])
def test_the_previous_window_counts_by_its_remaining_share(rate, clock, part, more):
    taken(rate)
    clock(SECONDS * (1 + part))
    assert taken(rate) == more


def test_half_a_window_leaves_room_for_half_of_the_next(rate, clock):
    assert taken(rate, MOST // 2) == MOST // 2
    clock(SECONDS)
    assert taken(rate) == MOST - MOST // 2


@pytest.mark.parametrize("windows", [2, 1000])
def test_hits_two_windows_old_no_longer_count(rate, clock, windows):
    taken(rate)
    clock(SECONDS * windows)
    assert taken(rate) == MOST


def test_refused_hits_do_not_count(rate, clock):
    taken(rate)
    for second in range(1, 10):
        clock(second)
        assert taken(rate) == 0
    clock(SECONDS * 1.55)
    assert taken(rate) == 5


def test_a_clock_that_is_set_back_locks_no_caller_out(rate, clock):
    taken(rate)
    clock(-3600)
    assert 0 < taken(rate) <= MOST


@given(steps=st.lists(st.tuples(st.floats(0, 15), st.integers(1, 15)), max_size=30))
def test_no_window_accepts_more_than_the_limit(steps):
    with time_machine.travel(NOON, tick=False) as clock:
        rate, at, by_window = Rate(MOST, SECONDS), 0.0, Counter()
        for pause, tries in steps:
            at += pause
            clock.move_to(NOON + at, tick=False)
            by_window[int(at // SECONDS)] += taken(rate, tries)
    assert all(count <= MOST for count in by_window.values())


def test_simultaneous_hits_are_counted_correctly(rate):
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda _: taken(rate, 50), range(8))) == MOST


def test_old_callers_are_forgotten(rate, clock):
    for window in range(5):
        clock(SECONDS * window)
        for number in range(1000):
            rate.hit(f"{window}-{number}")
        assert len(rate._now) + len(rate._before) <= 2000
    clock(SECONDS * 7)
    rate.is_reached("a")
    assert (rate._now, rate._before) == ({}, {})


@pytest.mark.parametrize("second", [0, 17.2, 59.99])
@pytest.mark.parametrize(
    ("settings_of_app", "caller", "code"),
    [({"requests_per_second": 3}, {}, 1), ({"refused_per_minute": 3}, {"api_key": "nobody"}, 40101)],
    ids=["a merchant", "an address"],
)
def test_a_caller_that_waits_for_retry_after_succeeds(clock, api, second, caller, code):
    clock(second)
    assert [api.listed(**caller).code for _ in range(3)] == [code] * 3
    refused = api.listed()
    assert refused.code == 42900
    clock(second + int(refused.headers["Retry-After"]))
    assert api.listed().code == 1
