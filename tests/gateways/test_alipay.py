"""alipay: deposits from the QR code to the credit, against the loopback Alipay, which is our own code.

test_alipay_sdk.py has the checks by independent code.
"""

import pytest
import segno

from tests.pages import Seen
from tests.support import heard
from tests.upstreams.alipay import SELLER_ID, WRITTEN, Alipay
from tests.upstreams.loopback import Sent

START = 1_000_000
PAID, UNPAID = (START + 9_940, 0), (START, 0)
EXPIRY = 15 * 60


@pytest.fixture
def alipay(web_server):
    return Alipay(web_server)


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


def called_methods(alipay):
    return [request.args["method"].removeprefix("alipay.") for request in alipay.calls]


# --- the normal case


@pytest.mark.parametrize(
    ("mode", "status"), [("key", "TRADE_SUCCESS"), ("key", "TRADE_FINISHED"), ("certificate", "TRADE_SUCCESS")]
)
def test_a_deposit_is_paid_and_credited(mode, status, api, alipay, add_channel, buy, balances, steps):
    order_no = buy(channel=add_channel("alipay", alipay.config(mode))).data["order_no"]
    alipay.pay(order_no)
    answer = alipay.notice(order_no, trade_status=status).to(api.send, order_no)
    assert (answer.status, answer.text) == (200, "success")
    assert (api.status(order_no), balances()) == ("completed", PAID)
    assert steps(order_no)[-1] == ("service", "confirmed", "completed")


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


@pytest.mark.parametrize("written", WRITTEN)
def test_a_lost_notice_is_found_by_a_status_check_in_every_format(written, api, alipay, order_no, later):
    alipay.pay(order_no)
    alipay.written = written
    later(60)
    assert api.status(order_no) == "completed"


def test_a_repeated_notice_is_a_success_and_credits_once(api, alipay, paid, balances):
    again = [
        alipay.notice(paid, **change).to(api.send, paid).text for change in ({}, {"trade_status": "TRADE_FINISHED"})
    ]
    assert (again, balances()) == (["success", "success"], PAID)


def test_a_scanned_code_is_not_paid_yet(api, alipay, order_no, later, balances):
    alipay.scan(order_no)
    assert alipay.notice(order_no).to(api.send, order_no).text == "success"
    later(60)
    assert (api.status(order_no), balances()) == ("pending", UNPAID)


# --- notices


def test_a_trade_closed_after_its_success_is_a_reversal(api, alipay, paid, exceptions, balances):
    answer = alipay.notice(paid, trade_status="TRADE_CLOSED").to(api.send, paid)
    assert (answer.text, api.status(paid), balances()) == ("success", "completed", PAID)
    assert exceptions() == {paid: "reversed"}


def test_a_notice_older_than_the_payment_changes_nothing(api, alipay, paid, order_details):
    told = order_details(paid)
    assert alipay.notice(paid, trade_status="WAIT_BUYER_PAY").to(api.send, paid).text == "success"
    assert order_details(paid) == told


def test_a_trade_that_alipay_closes_unpaid_cancels_the_order(api, alipay, order_no, steps):
    alipay.scan(order_no)
    alipay.notice(order_no, trade_status="TRADE_CLOSED").to(api.send, order_no)
    assert steps(order_no)[-1] == ("channel", "pending", "cancelled")


def test_another_amount_credits_nothing_and_needs_an_operator(api, alipay, order_no, exceptions, balances):
    alipay.pay(order_no, "99.99")
    assert alipay.notice(order_no).to(api.send, order_no).text == "success"
    assert (api.status(order_no), balances(), exceptions()) == ("pending", UNPAID, {order_no: "wrong_amount"})


def test_with_ask_again_a_notice_alone_credits_nothing(api, alipay, add_channel, buy, later, balances):
    order_no = buy(channel=add_channel("alipay", alipay.config("key", ask_again="true"))).data["order_no"]
    alipay.scan(order_no)
    assert alipay.notice(order_no, trade_status="TRADE_SUCCESS").to(api.send, order_no).text == "success"
    later(1)
    assert (api.status(order_no), balances()) == ("pending", UNPAID)
    alipay.pay(order_no)
    alipay.notice(order_no).to(api.send, order_no)
    later(1)
    assert (api.status(order_no), balances()) == ("completed", PAID)


SENSELESS = {
    "an unknown status": {"trade_status": "TRADE_EATEN"},
    "no status": {"trade_status": ""},
    "no number": {"trade_no": ""},
    "no amount": {"total_amount": ""},
    "an exponent": {"total_amount": "1E2"},
    "a negative amount": {"total_amount": "-100.00"},
    "parts of a fen": {"total_amount": "100.001"},
    "other digits": {"total_amount": "１００"},
}
STRANGE = {
    "another application": ({"app_id": "2021000000000002"}, "it is for another application"),
    "another merchant": ({"seller_id": "2088000000000002"}, "it is for another merchant"),
    "another order": ({"out_trade_no": "1" * 24}, "it is about another order"),
} | {name: (changed, "the fields are invalid") for name, changed in SENSELESS.items()}


@pytest.mark.parametrize("strange", STRANGE)
def test_a_genuine_notice_with_other_facts_changes_nothing(strange, api, alipay, order_no, order_details):
    changed, reason = STRANGE[strange]
    alipay.pay(order_no)
    told = order_details(order_no)
    answer = alipay.notice(order_no, **changed).to(api.send, order_no)
    assert (answer.status, answer.text) == (400, "fail")
    assert heard(order_details(order_no)) == (told, [reason])


FORGED = {
    "no body": lambda body: b"",
    "no signature": lambda body: body[: body.index(b"&sign=")],
    "an empty signature": lambda body: body[: body.index(b"&sign=")] + b"&sign=",
    "no base64": lambda body: body[: body.index(b"&sign=")] + b"&sign=%C3%A9",
    "half of a signature": lambda body: body[:-100],
    "no kind of signature": lambda body: body.replace(b"sign_type=RSA2&", b""),
    "another kind of signature": lambda body: body.replace(b"sign_type=RSA2", b"sign_type=RSA"),
    "another amount": lambda body: body.replace(b"total_amount=100.00", b"total_amount=1000.00"),
    "a field more": lambda body: body + b"&more=",
    "a field less": lambda body: body.replace(b"&body=", b""),
    "a field twice": lambda body: body + f"&seller_id={SELLER_ID}".encode(),
    "no UTF-8": lambda body: body + b"&memo2=%FF",
    "JSON": lambda body: b'{"trade_status": "TRADE_SUCCESS"}',
}


@pytest.mark.parametrize("forgery", FORGED)
def test_a_forged_notice_is_refused_and_changes_nothing(forgery, api, alipay, order_no, order_details, balances):
    alipay.pay(order_no)
    told, genuine = order_details(order_no), alipay.notice(order_no)
    answer = Sent("POST", FORGED[forgery](genuine.body), genuine.headers).to(api.send, order_no)
    after, reasons = heard(order_details(order_no))
    assert (answer.status, answer.text, after, balances()) == (400, "fail", told, UNPAID)
    assert reasons in (["bad signature"], ["a field is repeated"], ["it is not a valid form"])


def test_a_notice_by_get_or_signed_with_our_own_key_is_refused(api, alipay, order_no):
    alipay.pay(order_no)
    genuine = alipay.notice(order_no)
    by_get = Sent("GET", b"", {}, genuine.body.decode()).to(api.send, order_no)
    alipay.private = alipay.app_private
    ours = alipay.notice(order_no).to(api.send, order_no)
    assert [by_get.status, ours.status, api.status(order_no)] == [400, 400, "pending"]


def test_a_genuine_notice_counts_for_its_own_order_only(api, alipay, buy, balances):
    paid, unpaid = (buy().data["order_no"] for _ in range(2))
    alipay.pay(paid)
    assert alipay.notice(paid).to(api.send, unpaid).status == 400
    assert ([api.status(paid), api.status(unpaid)], balances()) == (["pending", "pending"], UNPAID)


# --- expiry


def test_an_unscanned_code_expires_and_late_money_is_still_found(api, alipay, order_no, later, exceptions):
    later(EXPIRY)
    assert (api.status(order_no), called_methods(alipay)[-2:]) == ("cancelled", ["trade.query", "trade.close"])
    alipay.pay(order_no)
    later(601)
    assert exceptions() == {order_no: "late_payment"}


def test_a_scanned_code_is_closed_at_alipay(api, alipay, order_no, later, order_details):
    alipay.scan(order_no)
    later(EXPIRY)
    assert (api.status(order_no), alipay.trades[order_no]["trade_status"]) == ("cancelled", "TRADE_CLOSED")
    assert order_details(order_no)["due_at"] is None


def test_a_payment_between_check_and_close_is_credited(api, alipay, order_no, later, exceptions):
    alipay.errs("", "")
    alipay.errs("40004", "ACQ.TRADE_STATUS_ERROR")
    later(EXPIRY)
    assert (api.status(order_no), exceptions()) == ("pending", {})
    alipay.pay(order_no)
    later(300)
    assert api.status(order_no) == "completed"


@pytest.mark.parametrize("error", [("40004", "ACQ.SYSTEM_ERROR"), ("20000", "isp.unknow-error")])
def test_an_order_that_could_not_be_closed_stays_open(error, api, alipay, order_no, later, exceptions):
    alipay.scan(order_no)
    alipay.errs("", "")
    alipay.errs(*error)
    later(EXPIRY)
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "unknown_outcome"})


def test_an_unsigned_not_found_cancels_no_deposit(api, alipay, order_no, later, order_details):
    alipay.errs("40004", "ACQ.TRADE_NOT_EXIST", signed=False)
    later(EXPIRY)
    assert api.status(order_no) == "pending"
    assert (
        "unsigned error: 业务处理失败 (40004 ACQ.TRADE_NOT_EXIST)" in order_details(order_no)["exceptions"][0]["detail"]
    )
