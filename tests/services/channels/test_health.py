"""After too many failures a channel is off for a minute, then 5, then 30; one order at a time tries it."""

import threading

import pytest

from models.tables.channel import Channel
from runtime.state import current
from services.channels import health
from services.merchants import cache
from tests.plans import Heard
from tests.support import NOON

CHANNEL = 2
REFUSED = "the merchant is limited"


@pytest.fixture(autouse=True)
def _at_noon(app, clock, monkeypatch):
    monkeypatch.setattr(cache, "FRESH", -1)  # check the database for changes each time


def record(results, method="wxpay"):
    """Store results: x is a failure, and . a success."""
    for each in results:
        health.record(CHANNEL, method, REFUSED if each == "x" else "")


def is_off(method="wxpay"):
    return health.is_off(CHANNEL, method)


def state():
    return health.states()[0]


def test_five_failures_of_the_last_ten_turn_a_method_off(app):
    record("xxxx.....")
    assert not is_off()
    record("x")
    assert is_off()
    assert not is_off("alipay")
    assert health.shown(CHANNEL) == "wxpay off until 20:01, 5 of the last 10 failed"


def test_older_failures_do_not_count(app, clock):
    record("xxxx" + "." * 7 + "x")
    assert not is_off()
    clock(901)
    record("xxxx")
    assert not is_off()
    record("x")
    assert is_off()


def test_pauses_become_longer_with_each_failed_trial(app, clock):
    record("xxxxx")
    at = 0
    for pause in (60, 300, 1_800, 1_800):
        clock(at + pause - 1)
        assert is_off()
        clock(at := at + pause)
        assert not is_off()
        record("x")
        assert is_off()
    assert (state().level, state().since) == (3, NOON)
    clock(at + 1_800)
    record(".")
    assert health.states() == []
    record("xxxx")
    assert not is_off()
    record("x")
    assert state().off_until == NOON + at + 1_860


def test_one_order_tries_the_channel(app, clock):
    record("xxxxx")
    clock(60)
    assert health.begin_trial(CHANNEL, "wxpay")
    assert is_off()
    assert not health.begin_trial(CHANNEL, "wxpay")
    clock(121)  # its result is missing
    assert not is_off()
    assert health.begin_trial(CHANNEL, "wxpay")
    record(".")
    assert not is_off()
    assert health.begin_trial(CHANNEL, "wxpay")


def test_of_two_orders_that_know_the_same_one_begins_the_trial(app, clock, monkeypatch):
    record("xxxxx")
    clock(60)
    known = cache.health_of(CHANNEL, "wxpay")
    monkeypatch.setattr(cache, "health_of", lambda channel, method: known)
    assert [health.begin_trial(CHANNEL, "wxpay") for _ in range(2)] == [True, False]
    record(".")
    assert health.begin_trial(CHANNEL, "wxpay")


def test_a_success_during_a_pause_does_not_end_it(app, clock):
    record("xxxxx")
    clock(10)
    record("..x")
    assert is_off()
    assert (state().failures, state().count, state().level) == (6, 7, 1)
    clock(60)
    assert not is_off()


def test_results_of_a_pause_are_kept_once_a_second(app, clock):
    record("xxxxx" * 3)
    assert (state().failures, state().count) == (5, 5)
    clock(1)
    record("xx")
    assert (state().failures, state().count) == (6, 6)


def test_a_success_without_a_recent_failure_does_not_use_the_database(app, clock, monkeypatch):
    monkeypatch.setattr(cache, "FRESH", 10**9)
    record(".")  # reads the cache
    with Heard() as heard:
        record("....")
    assert not heard.statements
    record("x")
    cache.forget()
    record(".")
    clock(901)
    with Heard() as heard:
        record("....")
    assert not heard.statements


def test_a_trial_is_due_at_once_after_a_change(app):
    record("xxxxx")
    health.try_again(Channel.get_by_id(CHANNEL))
    assert not is_off()
    assert health.begin_trial(CHANNEL, "wxpay")
    assert state().level == 1


def test_a_clock_that_is_set_back_ends_a_pause(app, clock):
    record("xxxxx")
    clock(60)
    record("x")
    clock(-3_600)
    assert not is_off()
    assert health.begin_trial(CHANNEL, "wxpay")
    assert not health.begin_trial(CHANNEL, "wxpay")


def test_reasons_are_short_and_printable(app):
    health.record(CHANNEL, "wxpay", "a\nb" + "c" * 999)
    assert state().reason == "a b" + "c" * 197
    assert health.shown(CHANNEL) == ""


def test_disabled_channels_are_left_out(app):
    record("xxxxx")
    Channel.update(enabled=False).execute()
    assert health.states() == []


def test_no_result_of_simultaneous_orders_is_lost(app):
    begin = threading.Barrier(4)

    def fail():
        begin.wait()
        record("x")

    threads = [threading.Thread(target=current().bound(fail)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (state().failures, state().count) == (4, 4)
