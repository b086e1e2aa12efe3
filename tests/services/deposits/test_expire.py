"""Unpaid deposits: the status is checked before they expire, and silence is neither paid nor unpaid."""

import pytest

START = 1_000_000
PAID = (START + 9_940, 0)
SANDBOX, MANUAL = 2, 3
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize("channel", [SANDBOX, MANUAL])
def test_an_unpaid_deposit_expires_after_15_minutes_and_not_before(api, later, order_details, channel):
    order_no = api.buy(channel=channel).data["order_no"]
    later(895)
    assert api.status(order_no) == "pending"
    later(5)
    assert api.status(order_no) == "cancelled"
    last = order_details(order_no)["history"][-1]
    assert (last["who"], last["why"]) == ("service", "Expired")


@pytest.mark.parametrize("settings_of_app", [{"buy_expiry": 30}])
@pytest.mark.parametrize("channel", [SANDBOX, MANUAL])
def test_the_time_to_pay_is_a_setting(api, later, channel):
    order_no = api.buy(channel=channel).data["order_no"]
    later(25)
    assert api.status(order_no) == "pending"
    later(5)
    assert api.status(order_no) == "cancelled"


def test_one_sweep_is_enough_after_a_long_outage(api, later):
    unpaid, silent = (api.buy().data["order_no"] for _ in range(2))
    api.play(silent, "silent")
    later(100_000)
    assert [api.status(order_no) for order_no in (unpaid, silent)] == ["cancelled", "completed"]


def test_a_withdrawal_does_not_expire(api, later):
    order_no = api.sell().data["order_no"]
    later(100_000)
    assert api.status(order_no) == "pending"


@pytest.mark.parametrize("paid_at", [0, 100, 895])
def test_money_without_a_notice_is_found_by_a_status_check(api, ahead, later, balances, order_details, paid_at):
    order_no = api.buy().data["order_no"]
    ahead(paid_at)
    api.play(order_no, "silent")
    assert (api.status(order_no), balances()) == ("pending", (START, 0))
    later(905 - paid_at)
    assert (api.status(order_no), balances()) == ("completed", PAID)
    assert order_details(order_no)["history"][1]["who"] == "channel"


def test_a_payment_is_found_long_before_the_order_would_expire(api, later):
    order_no = api.buy().data["order_no"]
    api.play(order_no, "silent")
    later(60)
    assert api.status(order_no) == "completed"


def test_a_wrong_amount_does_not_expire_before_an_operator_decides(api, later, exceptions):
    order_no = api.buy().data["order_no"]
    api.play(order_no, "wrong_amount")
    later(1_000, times=3)
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "wrong_amount"})


def test_a_claimed_payment_does_not_expire(api, http, later):
    order_no = api.buy(channel=MANUAL).data["order_no"]
    http("POST", "/addons/paychannel/pay/paid", f"order_no={order_no}".encode(), FORM)
    later(1_000, times=3)
    assert api.status(order_no) == "paid"


def test_a_channel_that_refuses_a_deposit_cancels_it(api, flask, flask_json, steps):
    flask("channel", "set", SANDBOX, "--config", "open=refuse")
    refused = api.buy()
    assert (refused.status, refused.code, list(refused.data)) == (502, 50201, ["order_no"])
    assert "Retry-After" not in refused.headers
    [row] = flask_json("order", "list")
    assert row["status"] == "cancelled"
    assert steps(row["order_no"])[-1] == ("channel", "pending", "cancelled")


def test_a_channel_that_does_not_respond_leaves_the_deposit_unchanged(api, flask, exceptions, due, later):
    flask("channel", "set", SANDBOX, "--config", "open=timeout")
    placed = api.buy()
    order_no = placed.data["order_no"]
    assert (placed.code, placed.data["status"]) == (1, "pending")
    assert exceptions() == {order_no: "unknown_outcome"}
    due.orders()
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "unknown_outcome"})
    flask("channel", "set", SANDBOX, "--config", "open=accept")
    later(60)
    assert (api.status(order_no), exceptions()) == ("pending", {})


def test_a_deposit_opened_without_a_response_can_still_be_paid(api, flask, balances, exceptions):
    flask("channel", "set", SANDBOX, "--config", "open=timeout")
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    assert (api.status(order_no), balances(), exceptions()) == ("completed", PAID, {})


def test_a_deposit_opened_without_a_response_expires_by_the_channels_report(api, flask, later):
    flask("channel", "set", SANDBOX, "--config", "open=timeout")
    order_no = api.buy().data["order_no"]
    later(450, times=2)
    assert api.status(order_no) == "cancelled"


def test_an_unknown_outcome_is_visible_and_checked_until_it_is_known(api, later, exceptions, order_details, balances):
    order_no = api.buy().data["order_no"]
    api.play(order_no, "timeout")
    later(60)
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "unknown_outcome"})
    assert order_details(order_no)["exceptions"][0]["resolution"] is None
    later(300, times=2)
    assert (api.status(order_no), balances(), exceptions()) == ("completed", PAID, {})
    assert order_details(order_no)["exceptions"][0]["resolution"] == "answered"


def test_an_order_does_not_expire_while_its_outcome_is_unknown(api, ahead, later, exceptions):
    order_no = api.buy().data["order_no"]
    ahead(890)
    api.play(order_no, "timeout")
    later(10)
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "unknown_outcome"})
    later(300, times=2)
    assert api.status(order_no) == "completed"


def test_silence_is_in_the_history_once_however_often_the_status_is_checked(api, later, order_details):
    order_no = api.buy().data["order_no"]
    api.play(order_no, "timeout")
    later(60)
    said = order_details(order_no)["history"]
    later(300)
    assert order_details(order_no)["history"] == said


def test_a_channel_that_falls_silent_again_is_visible_again(api, flask, due, later, exceptions):
    flask("channel", "set", SANDBOX, "--config", "open=timeout")
    order_no = api.buy().data["order_no"]
    flask("channel", "set", SANDBOX, "--config", "open=accept")
    due.orders()
    assert exceptions() == {}
    api.play(order_no, "timeout")
    later(300)
    assert exceptions() == {order_no: "unknown_outcome"}


@pytest.mark.parametrize("how", ["credit", "refund"])
def test_an_unknown_outcome_is_resolved_by_the_channel_and_not_by_an_operator(api, later, flask, balances, how):
    order_no = api.buy().data["order_no"]
    api.play(order_no, "timeout")
    later(60)
    flask("order", "settle", order_no, f"--{how}", fails=True)
    assert (api.status(order_no), balances()) == ("pending", (START, 0))
