"""Unpaid deposits: the status is checked before they expire, and silence is neither paid nor unpaid."""

import pytest

START = 1_000_000
PAID = (START + 9_940, 0)
SANDBOX, MANUAL = 2, 3


@pytest.mark.parametrize(("settings_of_app", "seconds"), [({}, 900), ({"buy_expiry": 30}, 30)], ids=["default", "set"])
@pytest.mark.parametrize("channel", [SANDBOX, MANUAL])
def test_an_unpaid_deposit_expires_after_the_time_to_pay_and_not_before(api, later, order_details, channel, seconds):
    order_no = api.buy(channel=channel).data["order_no"]
    later(seconds - 5)
    assert api.status(order_no) == "pending"
    later(5)
    assert api.status(order_no) == "cancelled"
    last = order_details(order_no)["history"][-1]
    assert (last["who"], last["why"]) == ("service", "Expired")


def test_one_sweep_is_enough_after_a_long_outage(api, later):
    unpaid, silent = (api.buy().data["order_no"] for _ in range(2))
    api.play(silent, "silent")
    later(100_000)
    assert [api.status(order_no) for order_no in (unpaid, silent)] == ["cancelled", "completed"]


@pytest.mark.parametrize("paid_at", [0, 100, 895])
def test_money_without_a_notice_is_found_by_a_status_check(api, ahead, later, order_details, now, paid_at):
    order_no = api.buy().data["order_no"]
    ahead(paid_at)
    api.play(order_no, "silent")
    assert now(order_no) == ("pending", (START, 0), {})
    later(905 - paid_at)
    assert now(order_no) == ("completed", PAID, {})
    assert order_details(order_no)["history"][1]["who"] == "channel"


def test_a_wrong_amount_does_not_expire_before_an_operator_decides(api, later, exceptions):
    order_no = api.buy().data["order_no"]
    api.play(order_no, "wrong_amount")
    later(1_000, times=3)
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "wrong_amount"})


# A channel that refuses a deposit, or does not respond


def test_a_channel_that_refuses_a_deposit_cancels_it(api, flask, flask_json, steps):
    flask("channel", "set", SANDBOX, "--config", "open=refuse")
    refused = api.buy()
    assert (refused.status, refused.code, list(refused.data)) == (502, 50201, ["order_no"])
    assert "Retry-After" not in refused.headers
    [row] = flask_json("order", "list")
    assert row["status"] == "cancelled"
    assert steps(row["order_no"])[-1] == ("channel", "pending", "cancelled")


@pytest.fixture
def unanswered(api, flask):
    """The number of a deposit that was opened without a response of its channel."""
    flask("channel", "set", SANDBOX, "--config", "open=timeout")
    placed = api.buy()
    assert (placed.code, placed.data["status"]) == (1, "pending")
    return placed.data["order_no"]


def test_a_deposit_opened_without_a_response_is_opened_again_and_its_channels_silence_visible_each_time(
    unanswered, api, flask, exceptions, due, later
):
    assert exceptions() == {unanswered: "unknown_outcome"}
    due.orders()
    assert (api.status(unanswered), exceptions()) == ("pending", {unanswered: "unknown_outcome"})
    flask("channel", "set", SANDBOX, "--config", "open=accept")
    later(60)
    assert (api.status(unanswered), exceptions()) == ("pending", {})
    api.play(unanswered, "timeout")
    later(300)
    assert exceptions() == {unanswered: "unknown_outcome"}


def test_a_deposit_opened_without_a_response_can_still_be_paid(unanswered, api, now):
    api.play(unanswered, "success")
    assert now(unanswered) == ("completed", PAID, {})


def test_a_deposit_opened_without_a_response_expires_by_the_channels_report(unanswered, api, later):
    later(450, times=2)
    assert api.status(unanswered) == "cancelled"


@pytest.mark.parametrize("asked_at", [60, 900], ids=["at the first check", "at its expiry"])
def test_an_unknown_outcome_is_visible_and_checked_until_the_channel_resolves_it(
    api, flask, ahead, later, order_details, now, asked_at
):
    order_no = api.buy().data["order_no"]
    ahead(asked_at - 10)
    api.play(order_no, "timeout")
    later(10)
    silent, told = now(order_no), order_details(order_no)
    assert silent == ("pending", (START, 0), {order_no: "unknown_outcome"})
    for how in ("--credit", "--refund"):
        flask("order", "settle", order_no, how, fails=True)
    later(300)
    assert order_details(order_no)["history"] == told["history"], "silence is in the history once"
    assert now(order_no) == silent
    later(300)
    assert now(order_no) == ("completed", PAID, {})
    assert order_details(order_no)["exceptions"][0]["resolution"] == "answered"
