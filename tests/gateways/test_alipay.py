"""alipay: deposits from the QR code to the credit, against the loopback Alipay, which is our own code.

test_alipay_sdk.py has the checks by independent code.
"""

from types import SimpleNamespace

import pytest
import segno

from tests.gateways.adapters import WHOLE_RESPONSE, responds
from tests.pages import Seen

START = 1_000_000
PAID, UNPAID = (START + 9_940, 0), (START, 0)
EXPIRY = 15 * 60


@pytest.fixture
def channel(add_channel, alipay):
    return add_channel("alipay", alipay.config("key"))


@pytest.fixture
def buy(api, channel):
    """`buy()` creates a deposit on the channel; returns the whole response."""
    return lambda **more: api.buy(**{"channel": channel, "paychannel_paymethod": "alipay"} | more)


@pytest.fixture
def order_no(buy):
    """A new deposit."""
    return buy().data["order_no"]


@pytest.fixture
def paid(alipay, order_no, api):
    """A deposit that was paid and credited."""
    alipay.pay(order_no)
    alipay.notice(order_no).to(api.send, order_no)
    return order_no


# --- the normal case


def test_a_finished_trade_is_paid_too(api, alipay, order_no, outcome):
    alipay.pay(order_no)
    assert alipay.notice(order_no, trade_status="TRADE_FINISHED").to(api.send, order_no).text == "success"
    assert outcome(order_no) == ("completed", PAID, {})


def test_the_payer_sees_the_code_and_a_link_that_opens_the_app(alipay, order_no, shown):
    page, code = shown(order_no), alipay.codes[order_no]["qr_code"]
    quoted = code.replace(":", "%3A").replace("/", "%2F").replace("?", "%3F").replace("=", "%3D").replace("&", "%26")
    assert segno.make(code, error="m").png_data_uri(scale=8, border=4) in page
    assert f"alipays://platformapi/startapp?saId=10000007&qrcode={quoted}" in Seen(page).addresses


def test_the_request_names_the_order_in_yuan_and_its_end_in_chinas_time(clock, alipay, buy):
    order_no = buy(amount="0.01").data["order_no"]  # at 12:00 UTC, which is 20:00 in China
    [code], [call] = alipay.codes.values(), alipay.calls
    wanted = ("total_amount", "time_expire", "notify_url")
    assert [code[name] for name in wanted] == [
        "0.01", "2026-05-01 20:15:00", f"http://127.0.0.1:8000/addons/paychannel/notify/{order_no}",
    ]  # fmt: skip
    assert (call.method, call.path, call.args["charset"]) == ("POST", "/alipay/gateway.do", "utf-8")
    assert call.args["timestamp"] == "2026-05-01 20:00:00"


# --- notices


def test_a_code_that_was_scanned_is_not_paid_and_is_cancelled_once_alipay_closes_it(
    api, alipay, order_no, later, steps, outcome
):
    alipay.scan(order_no)
    assert alipay.notice(order_no).to(api.send, order_no).text == "success"
    later(60)
    assert outcome(order_no) == ("pending", UNPAID, {})
    alipay.notice(order_no, trade_status="TRADE_CLOSED").to(api.send, order_no)
    assert steps(order_no)[-1] == ("channel", "pending", "cancelled")


def test_after_the_success_an_older_notice_changes_nothing_and_a_closed_trade_is_a_reversal(
    api, alipay, paid, order_details, outcome
):
    told = order_details(paid)
    assert alipay.notice(paid, trade_status="WAIT_BUYER_PAY").to(api.send, paid).text == "success"
    assert order_details(paid) == told
    assert alipay.notice(paid, trade_status="TRADE_CLOSED").to(api.send, paid).text == "success"
    assert outcome(paid) == ("completed", PAID, {paid: "reversed"})


# --- expiry


def test_an_order_that_could_not_be_closed_or_checked_stays_open(api, alipay, buy, later, order_details):
    orders = [buy().data["order_no"] for _ in range(3)]
    for order_no in orders:
        alipay.scan(order_no)
    for error in (("40004", "ACQ.SYSTEM_ERROR"), ("20000", "isp.unknow-error")):
        alipay.errs("", "")  # the status check has a response, closing has none
        alipay.errs(*error)
    alipay.errs("40004", "ACQ.TRADE_NOT_EXIST", signed=False)
    later(EXPIRY)
    for order_no, error in zip(orders, ("ACQ.SYSTEM_ERROR", "isp.unknow-error", "ACQ.TRADE_NOT_EXIST"), strict=True):
        assert api.status(order_no) == "pending", error
        [exception] = order_details(order_no)["exceptions"]
        assert (exception["kind"], error in exception["detail"]) == ("unknown_outcome", True), error
        assert ("unsigned error" in exception["detail"]) is (error == "ACQ.TRADE_NOT_EXIST")


def test_a_response_counts_with_its_signature_only(alipay, buy, exceptions, shown, monkeypatch):
    responds(WHOLE_RESPONSE)(SimpleNamespace(platform=alipay), monkeypatch)
    order_no = buy().data["order_no"]
    assert "alipays://" in shown(order_no)
    assert exceptions() == {}


# --- the config


def test_a_channel_can_change_to_certificates(api, alipay, add_channel, flask, refuses):
    number = add_channel("alipay", alipay.config("key"))
    pairs = [part for name, text in alipay.certificates.items() for part in ("--config", f"{name}={text}")]
    assert "Leave this field or alipay_public_key empty" in refuses("channel", "set", number, *pairs)
    flask("channel", "set", number, *pairs, "--config", "alipay_public_key=")
    flask("account", "add", "demo", "--card-number", "payee@example.com", "--real-name", "张三")
    assert api.buy(channel=number, paychannel_paymethod="alipay").code == 1
    assert api.sell(channel=number, paychannel_paymethod="alipay").code == 1
