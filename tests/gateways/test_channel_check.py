"""`tillbook channel check` and the console's *Try*: their findings on a channel before it takes money."""

import re
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler

import pytest


@pytest.fixture
def channel(version, platform, add_channel):
    return add_channel("epay", platform.config(version), "--pay-method", "wxpay,alipay", "--min", "2.00")


def test_it_reports_everything_that_can_be_checked_and_creates_no_order_here(
    checked, version, platform, channel, flask, flask_json
):
    found = checked()
    assert found["keys"] == ("ok", "The channel responds and accepts your keys.")
    assert found["collect"] == ("ok", "Enabled. Balance at the platform: 1000.00")
    assert found["wxpay"] == found["alipay"] == ("ok", "An order of 2.00 was accepted.")
    assert found["clock"] == ("ok", "In sync with the channel.")
    if version == "1":
        assert found["version"] == ("-", "1. The platform also supports version 2, which is more secure.")
        assert "pay_out" not in found
    else:
        assert found["version"] == ("ok", "2")
        assert found["pay_out"] == ("ok", "Enabled. Available: 100000.00, platform fee: 0.5%")
        assert all(order.get("closed") for order in platform.orders.values())
    assert {order["money"] for order in platform.orders.values()} == {"2.00"}
    assert flask_json("order", "list") == []
    lines = flask("channel", "check", channel).output.splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [["check", "result"], ["keys", "ok"], ["collect", "ok"]]


def test_a_merchant_that_may_not_take_payments_is_a_problem(checked, platform):
    for state, text in (
        (0, "The platform has disabled payments for the merchant."),
        (2, "The platform is still reviewing the merchant."),
    ):
        platform.merchant_state = state
        assert checked(fails=True)["collect"] == ("problem", text)


def test_a_refused_payment_method_is_a_problem_with_the_platforms_message(checked, platform):
    platform.barred.add("127.0.0.1")
    found = checked(fails=True)
    assert found["wxpay"][0] == found["alipay"][0] == "problem"
    assert found["wxpay"][1].startswith("An order of 2.00 was rejected: 你今天已无法再发起支付，请明天再试")


@pytest.mark.parametrize("version", ["2"], indirect=True)
def test_unavailable_payouts_are_reported_and_not_a_problem(checked, platform):
    platform.pays_out = False
    assert checked()["pay_out"] == ("-", "Not enabled: 商户未开启代付API接口 (code -1)")


def test_without_a_response_of_the_platform_the_result_is_unknown(checked, platform):
    platform.fails("", "garbage")
    assert checked()["collect"][0] == "-"


def test_with_redirect_the_methods_are_not_checked(flask, checked, channel, platform):
    flask("channel", "set", channel, "--config", "redirect=true")
    assert checked()["wxpay"] == ("-", "Not tested. The platform's own page shows the payment.")
    assert platform.orders == {}


@pytest.fixture
def says_it_is(monkeypatch):
    """`says_it_is(date)`: the time in the platform's responses."""
    return lambda date: monkeypatch.setattr(BaseHTTPRequestHandler, "date_time_string", lambda *_: date)


def test_a_wrong_clock_is_a_problem_and_a_channel_without_a_time_is_none(checked, says_it_is):
    for seconds, sign in ((-200, "-"), (200, "+")):
        says_it_is(formatdate(time.time() - seconds, usegmt=True))
        result, detail = checked(fails=True)["clock"]
        assert result == "problem"
        off = rf"\{sign}(199|200|201) seconds off the channel's clock. Correct this machine's clock."
        assert re.fullmatch(off, detail)
    for date in ("", "yesterday"):
        says_it_is(date)
        assert checked()["clock"] == ("-", "The channel returned no time.")


def test_a_manual_channel_has_no_check(flask_json):
    assert flask_json("channel", "check", 3) == [
        {"check": "keys", "result": "-", "detail": "Manual channel: no automatic status check."}
    ]
