"""epay, version 2: payouts, against the loopback platform; no independent code has checked them."""

import time
from urllib.parse import parse_qsl

import pytest
from werkzeug import Response

from gateways.base import State
from models.tables.order import Order
from services.jobs import sweep
from services.withdrawals import send
from tests.upstreams.epay import EpayPlatform

START = 1_000_000
HELD, SPENT, BACK = (START - 10_030, 10_030), (START - 10_030, 0), (START, 0)
FAULTS = ("slow", "unheard", "lost", "half", "garbage", "broken")


@pytest.fixture
def platform(web_server):
    return EpayPlatform(web_server)


@pytest.fixture
def channel(platform, add_channel):
    return add_channel("epay", platform.config("2"), "--auto-accept-max", "1000")


@pytest.fixture
def placed(api, channel):
    """`placed()`: the number of a new, auto-approved withdrawal of 100 yuan."""
    return lambda: api.sell(channel=channel, paychannel_paymethod="alipay").data["order_no"]


def test_a_payout_is_sent_checked_and_done(placed, api, platform, later, balances, order_details):
    order_no = placed()
    later(1, times=2)
    [(number, payout)] = platform.payouts.items()
    assert (payout["money"], payout["account"], payout["name"]) == ("100.00", "6222020000000000017", "张三")
    assert (len(number), number[:8]) == (19, order_no[:8])
    assert balances() == HELD
    later(1, times=3)
    assert (api.status(order_no), balances()) == ("completed", SPENT)
    assert order_details(order_no)["channel_reference"] == payout["biz_no"]


def test_an_older_platforms_responses_without_a_number_are_accepted(placed, api, platform, later, balances):
    platform.is_old = True
    order_no = placed()
    later(1, times=4)
    assert (api.status(order_no), balances()) == ("completed", SPENT)


@pytest.mark.parametrize("named", [{"biz_no": "BZ1"}, {"out_biz_no": "2026050112000000001"}])
def test_a_not_found_of_the_platforms_bank_does_not_mean_an_absent_payout(
    named, placed, api, platform, later, balances, monkeypatch
):
    order_no = placed()
    later(1, times=2)
    monkeypatch.setattr(platform, "_ask_transfer", lambda fields: {"code": -1, "msg": "转账订单不存在"} | named)
    later(1_000, times=3)
    assert (api.status(order_no), balances(), len(platform.payouts)) == ("confirmed", HELD, 1)
    assert platform.calls[-1].path.endswith("transfer/query")


def test_over_plain_http_nothing_is_paid_out(api, platform, add_channel):
    channel = add_channel("epay", platform.config("2", base_url="http://platform.invalid"))
    assert api.sell(channel=channel).code == 42200


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.usefixtures("impatient")
def test_whatever_fails_while_it_is_sent_it_is_paid_once(fault, placed, api, platform, later, balances):
    order_no = placed()
    later(1)
    platform.fails(fault)
    later(1, times=4)
    later(301, times=4)  # if the platform does not show it, it is sent again after ten minutes
    assert (api.status(order_no), balances(), len(platform.payouts)) == ("completed", SPENT, 1)


def test_a_payout_that_the_platform_may_not_show_yet_is_not_sent_again(placed, api, platform, later, balances):
    order_no = placed()
    later(1)
    platform.fails("unheard")
    later(1, times=9)  # it may be in progress
    later(301)
    handed_over = [call.path for call in platform.calls].count("/epay/api/transfer/submit")
    assert (api.status(order_no), balances(), handed_over) == ("confirmed", HELD, 1)


def test_an_overtaken_worker_sends_nothing(placed, platform, later, flask, monkeypatch):
    order_no = placed()
    later(1)
    order = Order.get(Order.order_no == order_no)
    order.claim(int(time.time()) + sweep.LEASE)
    # Another worker has claimed it by now.
    Order.update(due_at=int(time.time()) - 1).where(Order.id == order.id).execute()
    assert send.hand_over(order)[0].state is State.OPEN
    assert platform.payouts == {}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.usefixtures("impatient")
def test_whatever_fails_in_a_status_check_the_reserve_stays_until_a_response(
    fault, placed, api, platform, later, balances
):
    order_no = placed()
    later(1, times=2)
    platform.fails(fault)
    later(1)
    assert (api.status(order_no), balances()) == ("confirmed", HELD)
    later(4, times=3)
    assert (api.status(order_no), balances(), len(platform.payouts)) == ("completed", SPENT, 1)


def test_only_an_explicit_failure_returns_the_reserve(placed, api, platform, later, balances, order_details):
    platform.transfers_end = "2"
    order_no = placed()
    later(1, times=4)
    assert (api.status(order_no), balances()) == ("cancelled", BACK)
    assert "收款方账户异常" in order_details(order_no)["history"][-1]["why"]


@pytest.mark.parametrize("status", ["0", "3"])
def test_a_payout_that_waits_at_the_platform_stays_reserved(status, placed, api, platform, later, balances):
    platform.transfers_end = status
    order_no = placed()
    later(30, times=5)
    assert (api.status(order_no), balances()) == ("confirmed", HELD)


def test_too_little_money_at_the_platform_is_visible_and_paid_after_a_top_up(
    placed, api, platform, later, balances, exceptions, order_details
):
    platform.balance -= platform.balance
    order_no = placed()
    later(1, times=4)
    assert (api.status(order_no), balances(), exceptions()) == ("confirmed", HELD, {order_no: "unknown_outcome"})
    assert "需支付金额大于可转账余额" in order_details(order_no)["exceptions"][0]["detail"]
    platform.balance += 1_000
    later(301, times=3)
    assert (api.status(order_no), balances(), exceptions()) == ("completed", SPENT, {})


def test_a_response_about_another_payout_is_ignored(placed, api, platform, later, balances, monkeypatch):
    order_no = placed()
    later(1, times=2)
    wrong = {"code": 0, "status": 1, "out_biz_no": "2026050112000000001", "biz_no": "BZ1", "amount": "100.00"}
    monkeypatch.setattr(platform, "_ask_transfer", lambda fields: wrong)
    later(30)
    assert (api.status(order_no), balances()) == ("confirmed", HELD)


def test_an_amount_other_than_the_orders_is_an_exception(placed, api, platform, later, balances, exceptions):
    order_no = placed()
    later(1, times=2)
    next(iter(platform.payouts.values()))["money"] = "99.00"
    later(30)
    assert (api.status(order_no), balances(), exceptions()) == ("confirmed", HELD, {order_no: "payout_conflict"})


def test_an_operator_need_not_wait_for_the_next_status_check(placed, api, platform, later, flask, balances):
    platform.transfers_end = "0"
    order_no = placed()
    later(100, times=9)
    platform.transfers_end = "1"
    assert "status at the channel: paid 100.00" in flask("order", "ask", order_no).output
    assert (api.status(order_no), balances()) == ("completed", SPENT)


# --- the platform's reports on a payout that it has


@pytest.fixture
def noted(order_details):
    """`noted(order_no)`: the history's lines on the payout at the channel."""
    return lambda order_no: [
        line["why"] for line in order_details(order_no)["history"] if line["code"] == "payout_shown"
    ]


def test_a_payout_that_the_platform_knows_by_its_own_number_is_found(placed, api, platform, later, balances):
    platform.knows_by = ("biz_no",)
    order_no = placed()
    later(1, times=4)
    later(601, times=2)
    assert (api.status(order_no), balances(), len(platform.payouts)) == ("completed", SPENT, 1)


def test_a_payout_is_absent_only_if_the_platform_knows_it_by_neither_number(
    placed, api, platform, later, balances, monkeypatch
):
    order_no = placed()
    later(1)
    platform.fails("unheard")
    later(1)
    unknown = {"out_biz_no": "转账交易号不存在", "biz_no": "系统繁忙"}
    answers = lambda fields: {"code": -1, "msg": next(unknown[name] for name in unknown if name in fields)}  # noqa: E731
    monkeypatch.setattr(platform, "_ask_transfer", answers)
    later(601, times=3)
    assert (platform.payouts, api.status(order_no), balances()) == ({}, "confirmed", HELD)


def test_a_response_with_only_the_banks_number_stores_it(placed, platform, later, noted):
    platform.is_old = True
    platform.transfers_end = "0"
    order_no = placed()
    later(1, times=2)
    [number] = platform.payouts
    assert noted(order_no) == [f"The channel has the payout: BANK{number}"]


def test_the_required_approval_of_the_platforms_staff_is_noted_once(placed, platform, later, noted):
    platform.transfers_end = "3"
    order_no = placed()
    later(60, times=6)
    assert [line for line in noted(order_no) if "waits for the platform's staff" in line] == noted(order_no)[1:]
    assert len(noted(order_no)) == 2


@pytest.mark.parametrize(
    ("address", "is_shown"),
    [("https://pay.example.com/paypage/wxtrans.php?type=transfer&id=7", True), ("javascript:alert(1)", False)],
)
def test_the_address_at_which_the_receiver_confirms_is_shown_to_the_operator(
    address, is_shown, placed, platform, later, noted
):
    platform.jump_url, platform.transfers_end = address, "0"
    order_no = placed()
    later(60, times=3)
    assert (address in " ".join(noted(order_no))) is is_shown


@pytest.fixture
def handed_over_unheard(placed, platform, later):
    """A withdrawal whose payout the platform has, although its response was lost; and an error naming the payout."""
    order_no = placed()
    later(1)
    platform.fails("lost")
    later(1)
    [number] = platform.payouts
    return order_no, {"code": -1, "msg": "支付通道不存在", "biz_no": f"BZ{number}", "out_biz_no": number}


def test_an_error_that_names_the_payout_shows_that_the_platform_has_it(
    handed_over_unheard, api, platform, later, balances, exceptions, monkeypatch
):
    order_no, named = handed_over_unheard
    with monkeypatch.context() as staff_has_it:
        staff_has_it.setattr(platform, "_ask_transfer", lambda fields: named)
        later(300)
        assert exceptions() == {order_no: "unknown_outcome"}
    platform.payouts.clear()
    later(601, times=3)
    assert (platform.payouts, api.status(order_no), balances()) == ({}, "confirmed", HELD)
    assert exceptions() == {order_no: "payout_missing"}


@pytest.mark.parametrize("status", ["4", "9", ""])
def test_an_unknown_status_keeps_the_reserve_and_shows_that_the_payout_exists(
    status, placed, api, platform, later, balances, exceptions, noted, monkeypatch
):
    monkeypatch.setattr(platform, "_transfer", lambda fields: {"code": 0, "status": status})
    order_no = placed()
    later(1, times=2)
    assert len(noted(order_no)) == 1
    assert (api.status(order_no), balances(), exceptions()) == ("confirmed", HELD, {order_no: "unknown_outcome"})
    later(601)
    assert exceptions() == {order_no: "payout_missing"}
    assert [call.path for call in platform.calls].count("/epay/api/transfer/submit") == 1


# --- an operator ends a payout that the platform does not have


def _stuck(placed, platform, later):
    platform.balance -= platform.balance
    order_no = placed()
    later(100, times=10)  # until the pauses are long
    return order_no


def _rejected(order_no, refuses, flask, later):
    """At first it was sent too recently; ten minutes later the platform would show it."""
    assert "recently" in refuses("order", "reject", order_no, "--reason", "no money at the platform")
    later(600)
    return flask("order", "reject", order_no, "--reason", "no money at the platform")


def test_a_payout_that_the_platform_does_not_have_can_be_rejected(
    placed, api, platform, later, flask, refuses, balances, exceptions
):
    order_no = _stuck(placed, platform, later)
    assert (balances(), exceptions()) == (HELD, {order_no: "unknown_outcome"})
    _rejected(order_no, refuses, flask, later)
    assert (api.status(order_no), balances(), exceptions()) == ("cancelled", BACK, {})
    platform.balance += 1_000
    later(600, times=3)
    assert platform.payouts == {}


def test_a_rejected_payout_that_is_still_paid_is_visible(
    placed, api, platform, later, flask, refuses, balances, exceptions
):
    order_no = _stuck(placed, platform, later)
    _rejected(order_no, refuses, flask, later)
    [submitted] = [call for call in platform.calls if call.path.endswith("transfer/submit")][-1:]
    number = dict(parse_qsl(submitted.get_data().decode()))["out_biz_no"]
    platform.payouts[number] = {"money": "100.00", "biz_no": f"BZ{number}", "status": "0"}
    later(601)
    assert (api.status(order_no), exceptions()) == ("cancelled", {order_no: "payout_conflict"})
    flask("order", "settle", order_no, "--complete")
    assert (api.status(order_no), balances(), exceptions()) == ("cancelled", SPENT, {})


def test_a_rejection_that_took_too_long_cancels_nothing(placed, api, platform, later, refuses, balances, monkeypatch):
    order_no = _stuck(placed, platform, later)
    refuses("order", "reject", order_no, "--reason", "no money at the platform")
    later(600)
    really_ask = platform._ask_transfer

    def slowly(fields):
        answer = really_ask(fields)
        # The sweep has claimed it meanwhile.
        Order.update(asks=Order.asks + 1).where(Order.order_no == order_no).execute()
        return answer

    monkeypatch.setattr(platform, "_ask_transfer", slowly)
    assert "changed just now" in refuses("order", "reject", order_no, "--reason", "no money at the platform")
    assert (api.status(order_no), balances()) == ("confirmed", HELD)


def test_a_payout_that_the_platform_has_can_not_be_rejected(placed, api, platform, later, refuses, balances):
    platform.transfers_end = "0"
    order_no = placed()
    later(100, times=9)
    assert "has it in progress" in refuses("order", "reject", order_no, "--reason", "changed my mind")
    assert (api.status(order_no), balances()) == ("confirmed", HELD)
    platform.transfers_end = "1"
    later(2 * sweep.LEASE)
    assert (api.status(order_no), balances()) == ("completed", SPENT)


def test_a_payout_without_a_status_check_can_not_be_rejected(placed, api, platform, later, refuses, balances):
    order_no = _stuck(placed, platform, later)
    refuses("order", "reject", order_no, "--reason", "no money at the platform")
    later(600)
    platform.fails("unheard")
    assert "cannot confirm" in refuses("order", "reject", order_no, "--reason", "changed my mind")
    assert (api.status(order_no), balances()) == ("confirmed", HELD)


def test_a_payout_claimed_by_the_service_can_not_be_rejected(placed, platform, later, refuses, balances):
    order_no = placed()
    later(1)
    order = Order.get(Order.order_no == order_no)
    assert order.claim(int(time.time()) + sweep.LEASE)  # as the sweep does
    assert "Try again in a minute" in refuses("order", "reject", order_no, "--reason", "changed my mind")
    assert balances() == HELD


@pytest.mark.parametrize("by", ["ask", "reject"])
def test_an_error_that_names_the_payout_counts_for_every_caller(
    by, handed_over_unheard, platform, later, ahead, refuses, exceptions, monkeypatch
):
    order_no, named = handed_over_unheard
    with monkeypatch.context() as it_waits_for_the_staff:
        it_waits_for_the_staff.setattr(platform, "_ask_transfer", lambda fields: named)
        ahead(660)
        refuses("order", by, order_no, *(["--reason", "wrong account"] if by == "reject" else []))
    platform.payouts.clear()
    later(601, times=3)
    later(3600, times=3)
    handed_over = [call.path for call in platform.calls].count("/epay/api/transfer/submit")
    assert (handed_over, exceptions()) == (1, {order_no: "payout_missing"})


# --- a platform that no longer responds


@pytest.mark.parametrize(("how", "status", "money"), [("complete", "completed", SPENT), ("cancel", "cancelled", BACK)])
def test_after_a_day_of_silence_an_operator_decides(
    how, status, money, placed, api, platform, later, ahead, flask, refuses, balances, exceptions, monkeypatch
):
    order_no = placed()
    later(1)
    monkeypatch.setattr(platform, "answer", lambda path, request: Response("gone", 410))
    later(300, times=3)
    assert "after a day" in refuses("order", "settle", order_no, f"--{how}")
    later(86_400)
    assert balances() == HELD
    assert "Try again in a minute" in refuses("order", "settle", order_no, f"--{how}")
    ahead(60)
    flask("order", "settle", order_no, f"--{how}")
    assert (api.status(order_no), balances(), exceptions()) == (status, money, {})


def test_a_new_silence_is_shorter_than_a_day(placed, platform, later, refuses, monkeypatch):
    platform.transfers_end = "0"
    order_no = placed()
    later(1)
    platform.fails("broken")
    later(1)
    later(86_400)
    platform.fails("broken")
    later(301)
    assert "after a day" in refuses("order", "settle", order_no, "--cancel")


# --- channels without payouts


def test_version_1_accepts_no_withdrawals(api, platform, add_channel, balances):
    channel = add_channel("epay", platform.config("1"))
    refused = api.sell(channel=channel, paychannel_paymethod="alipay")
    assert (refused.code, refused.data) == (42200, {"paychannel_paymethod": ["This channel pays out by: -."]})
    assert balances() == BACK
