"""wechatpay: a deposit from QR code to notice against the loopback; `sdk` in a name: compared with the SDK
wechatpayv3."""

import json
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
import segno
from wechatpayv3 import WeChatPay, WeChatPayType
from wechatpayv3.utils import build_authorization, load_private_key

from gateways import registry
from gateways.base import BadNotice, Incoming, Payment, State
from tests.support import free_port, heard, https_certificate
from tests.upstreams.loopback import key_pair
from tests.upstreams.wechatpay import (
    APPID,
    CERTIFICATE_SERIAL,
    KEY_ID,
    MCHID,
    MERCHANT_SERIAL,
    WechatPay,
    apiv3_key,
    certificate,
)

START = 1_000_000
UNPAID, PAID = (START, 0), (START + 9_940, 0)
CREATE = "pay/transactions/native"
FAULTS = ["slow", "unheard", "lost", "half", "garbage", "broken"]
EXPIRY = 900


@pytest.fixture
def platform(web_server):
    return WechatPay(web_server)


@pytest.fixture
def channel(platform, add_channel):
    return add_channel("wechatpay", platform.config())


@pytest.fixture
def buy(api, channel):
    """`buy()`: the number of a new deposit of 100 yuan."""
    return lambda: str(api.buy(channel=channel).data["order_no"])


@pytest.fixture
def has_qr(platform, shown):
    """`has_qr(order_no)`: whether the payment page shows the code of this order."""

    def look(order_no):
        code = segno.make(platform.code_url.format(order_no[-9:]), error="m")
        return code.png_data_uri(scale=8, border=4) in shown(order_no)

    return look


# --- a deposit


@pytest.mark.parametrize(
    ("believes", "signs"), [("key", "key"), ("certificate", "certificate"), ("both", "key"), ("both", "certificate")]
)
def test_a_deposit_is_shown_paid_and_credited(believes, signs, api, platform, add_channel, has_qr, balances, steps):
    platform.signs_by = signs
    order_no = api.buy(channel=add_channel("wechatpay", platform.config(believes))).data["order_no"]
    assert has_qr(order_no)
    platform.pay(order_no)
    answer = platform.notice(order_no).to(api.send, order_no)
    assert (answer.status, answer.text) == (204, "")
    assert (api.status(order_no), balances()) == ("completed", PAID)
    assert steps(order_no)[-1] == ("service", "confirmed", "completed")


def test_the_upstream_gets_the_orders_facts(buy, platform):
    order_no = buy()
    asked = platform.orders[order_no]["asked"]
    assert (asked["amount"], asked["out_trade_no"]) == ({"total": 10_000, "currency": "CNY"}, order_no)
    assert asked["notify_url"].endswith(f"/addons/paychannel/notify/{order_no}")
    assert (asked["appid"], asked["mchid"]) == (APPID, MCHID)


@pytest.mark.parametrize(("believes", "named"), [("key", KEY_ID), ("both", KEY_ID), ("certificate", None)])
def test_responses_signed_with_the_public_key_are_requested(believes, named, platform):
    platform.signs_by = "key" if named else "certificate"
    registry.build("wechatpay", platform.config(believes)).open_payment(_payment())
    assert [call.headers.get("Wechatpay-Serial") for call in platform.calls] == [named]


def test_an_address_with_a_path_is_signed_as_it_is_called(api, web_server, add_channel, later):
    relay = WechatPay(web_server, "relay/wechat/v3")
    assert relay.base_url.endswith("/relay/wechat")
    order_no = api.buy(channel=add_channel("wechatpay", relay.config())).data["order_no"]
    relay.pay(order_no)
    later(60)
    assert api.status(order_no) == "completed"


def test_a_lost_notice_is_found_by_a_status_check(api, buy, platform, later, balances, order_details):
    order_no = buy()
    platform.pay(order_no)
    later(60)
    assert (api.status(order_no), balances()) == ("completed", PAID)
    assert order_details(order_no)["channel_reference"] == f"42000{order_no[-20:]}"


def test_a_repeated_notice_credits_once(api, buy, platform, later, balances):
    order_no = buy()
    platform.pay(order_no)
    sent = platform.notice(order_no)
    assert [sent.to(api.send, order_no).status for _ in range(2)] == [204, 204]
    assert platform.notice(order_no).to(api.send, order_no).status == 204
    later(60)
    assert balances() == PAID


def test_another_amount_needs_an_operator(api, buy, platform, exceptions, balances):
    order_no = buy()
    platform.pay(order_no, total=9_999)
    assert platform.notice(order_no).to(api.send, order_no).status == 204
    assert (api.status(order_no), exceptions(), balances()) == ("pending", {order_no: "wrong_amount"}, UNPAID)


def test_with_ask_again_a_notice_alone_credits_nothing_here(api, platform, add_channel, later, balances):
    order_no = api.buy(channel=add_channel("wechatpay", platform.config(ask_again="true"))).data["order_no"]
    paid = platform.notice(order_no, trade_state="SUCCESS", transaction_id="1", amount={"total": 1, "currency": "CNY"})
    assert paid.to(api.send, order_no).status == 204
    later(1)
    assert (api.status(order_no), balances()) == ("pending", UNPAID)
    platform.pay(order_no)
    assert platform.notice(order_no).to(api.send, order_no).status == 204
    later(1)
    assert (api.status(order_no), balances()) == ("completed", PAID)


def test_the_channel_accepts_only_wxpay(api, channel):
    refused = api.buy(channel=channel, paychannel_paymethod="alipay")
    assert (refused.code, refused.data) == (42200, {"paychannel_paymethod": ["This channel accepts: wxpay."]})


@pytest.mark.parametrize("method", ["wxpay", "bank"])
def test_a_withdrawal_is_refused_immediately(method, api, channel, balances, platform):
    refused = api.sell(channel=channel, paychannel_paymethod=method)
    assert (refused.code, refused.data) == (42200, {"paychannel_paymethod": ["This channel pays out by: -."]})
    assert (balances(), platform.calls) == (UNPAID, [])


# --- notices


def _changed(sent, body=None, **headers):
    """A notice with changed bytes or headers (`Serial=`: Wechatpay-Serial) and an unchanged signature."""
    changed = {f"Wechatpay-{name}": value for name, value in headers.items()}
    return replace(sent, body=sent.body if body is None else body, headers=sent.headers | changed)


def _at(platform, order_no, seconds):
    platform.clock_off = seconds
    return platform.notice(order_no)


def _old_with_a_new_time(platform, order_no):
    return _changed(_at(platform, order_no, -400), Timestamp=str(int(time.time())))


def _by_another_key(platform, order_no):
    platform.signs_by = "certificate"
    return _changed(platform.notice(order_no), Serial=KEY_ID)


def _stamped(platform, order_no, stamp):
    sent = platform.notice(order_no)
    return replace(sent, headers=sent.headers | platform.signed(sent.body, stamp))


def _amount(**amount):
    return lambda platform, order_no: platform.notice(order_no, amount={"total": 10_000, "currency": "CNY"} | amount)


def _inside(**told):
    return lambda platform, order_no: platform.notice(order_no, **told)


def _around(**event):
    return lambda platform, order_no: platform.notice(order_no, event=event)


def _sealed(**resource):
    return lambda platform, order_no: platform.notice(order_no, resource=resource)


def _raw(body):
    return lambda platform, order_no: platform.sent(body)


UNKNOWN_KEY, BAD, OTHER_TIME = "signed with an unknown key", "bad signature", "too old, or a clock"
NONSENSE, NO_PAYMENT, CLOSED_BOOK = "the fields are invalid", "it does not report a payment", "decryption failed"
OTHERS = "it is for another merchant or application"
HALF_A_LETTER = (
    b'{"event_type": "TRANSACTION.SUCCESS", "resource": '
    b'{"algorithm": "AEAD_AES_256_GCM", "ciphertext": "AAAA", "nonce": "\\ud800aaaaaaaaaaaa"}}'
)
REFUSED = {
    "no headers": (lambda p, n: replace(p.notice(n), headers={}), UNKNOWN_KEY),
    "another key's number": (lambda p, n: _changed(p.notice(n), Serial="PUB_KEY_ID_1"), UNKNOWN_KEY),
    "another key under the right number": (_by_another_key, BAD),
    "no signature": (lambda p, n: _changed(p.notice(n), Signature=""), BAD),
    "WeChat Pay's own probe": (lambda p, n: _changed(p.notice(n), Signature="WECHATPAY/SIGNTEST/abc"), BAD),
    "a signature of other letters": (lambda p, n: _changed(p.notice(n), Signature="é" * 344), BAD),
    "another nonce": (lambda p, n: _changed(p.notice(n), Nonce="another"), BAD),
    "a byte more": (lambda p, n: _changed(p.notice(n), p.notice(n).body + b" "), BAD),
    "half of it": (lambda p, n: _changed(p.notice(n), p.notice(n).body[:200]), BAD),
    "no body": (lambda p, n: _changed(p.notice(n), b""), BAD),
    "an old one with a new time": (_old_with_a_new_time, BAD),
    "an old one": (lambda p, n: _at(p, n, -302), OTHER_TIME),
    "one of tomorrow": (lambda p, n: _at(p, n, 86_400), OTHER_TIME),
    "a time that is none": (lambda p, n: _stamped(p, n, "soon"), OTHER_TIME),
    "a time before all": (lambda p, n: _stamped(p, n, "-1"), OTHER_TIME),
    "a time of many digits": (lambda p, n: _stamped(p, n, "9" * 5000), OTHER_TIME),
    "no JSON": (_raw(b"paid"), NONSENSE),
    "no object": (_raw(b"[]"), NONSENSE),
    "no UTF-8": (_raw(b'{"event_type": "\xff"}'), NONSENSE),
    "too deep": (_raw(b"[" * 9_000), NONSENSE),
    "no resource": (_around(resource=None), NONSENSE),
    "a resource that is a text": (_around(resource="SUCCESS"), NONSENSE),
    "another event": (_around(event_type="REFUND.SUCCESS"), NO_PAYMENT),
    "an event that is a number": (_around(event_type=True), NONSENSE),
    "another cipher": (_sealed(algorithm="NONE"), NONSENSE),
    "other data beside": (_sealed(associated_data="other"), CLOSED_BOOK),
    "a short nonce": (_sealed(nonce="1"), CLOSED_BOOK),
    "a nonce of half a letter": (_raw(HALF_A_LETTER), CLOSED_BOOK),
    "too short a ciphertext": (_sealed(ciphertext="AAAA"), CLOSED_BOOK),
    "no base64": (_sealed(ciphertext="***"), CLOSED_BOOK),
    "another APIv3 key": (lambda p, n: p.notice(n, resource=p.encrypted(b"{}", key=apiv3_key("other"))), CLOSED_BOOK),
    "no JSON inside": (lambda p, n: p.notice(n, resource=p.encrypted(b"paid")), NONSENSE),
    "no object inside": (lambda p, n: p.notice(n, resource=p.encrypted(b"null")), NONSENSE),
    "another merchant": (_inside(mchid="1900000110"), OTHERS),
    "another application": (_inside(appid="wx0"), OTHERS),
    "not paid": (_inside(trade_state="NOTPAY"), NO_PAYMENT),
    "a state of its own": (_inside(trade_state="GREAT"), NONSENSE),
    "no number of the payment": (_inside(transaction_id=None), NONSENSE),
    "a number of the payment with a line break": (_inside(transaction_id="1\n2"), NONSENSE),
    "another order": (_inside(out_trade_no="202605010000000000000000"), "it is about another order"),
    "no amount": (_inside(amount=None), NONSENSE),
    "no currency": (_inside(amount={"total": 10_000}), NONSENSE),
    "another currency": (_amount(currency="USD"), NONSENSE),
    "no total": (_inside(amount={"currency": "CNY"}), NONSENSE),
    "a fraction": (_amount(total=10_000.0), NONSENSE),
    "an amount below zero": (_amount(total=-10_000), NONSENSE),
    "an amount without end": (_amount(total=10**4_000), NONSENSE),
    "an amount that is none": (_amount(total=float("nan")), NONSENSE),
    "true": (_amount(total=True), NONSENSE),
    "digits of another script": (_amount(total="１００００"), NONSENSE),
}


@pytest.mark.parametrize(("made", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_notice_that_is_not_genuine_changes_nothing(made, reason, api, buy, platform, order_details, balances):
    order_no = buy()
    told = order_details(order_no)
    platform.pay(order_no)
    answer = made(platform, order_no).to(api.send, order_no)
    assert (answer.status, answer.json["code"], answer.headers["Content-Type"]) == (400, "FAIL", "application/json")
    now, reasons = heard(order_details(order_no))
    assert (now, balances(), len(reasons)) == (told, UNPAID, 1)
    assert reasons[0].startswith(reason)


def test_a_refusal_repeats_nothing_of_the_notice(api, buy, platform, order_details, caplog):
    order_no = buy()
    for sent in (
        _changed(platform.notice(order_no), Serial="MARK", Signature="MARK", Nonce="MARK", Timestamp="MARK"),
        platform.sent(b"MARK"),
        platform.notice(order_no, event={"event_type": "MARK"}),
        platform.notice(order_no, trade_state="MARK"),
        platform.notice(order_no, mchid="MARK"),
    ):
        assert "MARK" not in sent.to(api.send, order_no).text
    assert "MARK" not in json.dumps(order_details(order_no)) + caplog.text


def test_a_notice_by_get_is_refused(api, buy, platform):
    order_no = buy()
    platform.pay(order_no)
    assert replace(platform.notice(order_no), method="GET").to(api.send, order_no).status == 400
    assert api.status(order_no) == "pending"


def test_a_genuine_notice_sent_to_another_orders_address_credits_neither(api, buy, platform, balances):
    paid, other = buy(), buy()
    platform.pay(paid)
    assert platform.notice(paid).to(api.send, other).status == 400
    assert (api.status(paid), api.status(other), balances()) == ("pending", "pending", UNPAID)


def test_an_accepted_notice_is_refused_when_it_is_old(api, buy, platform, ahead, balances):
    order_no = buy()
    platform.pay(order_no)
    sent = platform.notice(order_no)
    assert sent.to(api.send, order_no).status == 204
    ahead(302)
    assert sent.to(api.send, order_no).status == 400
    assert balances() == PAID


@pytest.mark.parametrize("seconds", [-290, 290])
def test_clocks_may_differ_by_less_than_five_minutes(seconds, api, buy, platform):
    platform.clock_off = seconds
    order_no = buy()
    platform.pay(order_no)
    assert platform.notice(order_no).to(api.send, order_no).status == 204
    assert api.status(order_no) == "completed"


@pytest.mark.parametrize("data", [None, ""])
def test_associated_data_of_the_ciphertext_is_optional(data, api, buy, platform):
    order_no = buy()
    platform.pay(order_no)
    sealed = platform.encrypted(json.dumps(platform.told(order_no)).encode(), data=data)
    assert platform.notice(order_no, event={"resource": sealed}).to(api.send, order_no).status == 204
    assert api.status(order_no) == "completed"


@pytest.mark.parametrize("serial", [CERTIFICATE_SERIAL, CERTIFICATE_SERIAL.lower(), CERTIFICATE_SERIAL.lstrip("0")])
def test_a_certificate_is_found_by_its_number_in_any_notation(serial, api, platform, add_channel):
    platform.signs_by = "certificate"
    order_no = api.buy(channel=add_channel("wechatpay", platform.config("certificate"))).data["order_no"]
    platform.pay(order_no)
    assert _changed(platform.notice(order_no), Serial=serial).to(api.send, order_no).status == 204


# --- failures of the upstream


def _opened_in_the_end(api, platform, later, has_qr, order_no):
    """The deposit can't be paid yet; sweeps open it, and it is paid and credited."""
    assert (api.status(order_no), has_qr(order_no)) == ("pending", False)
    later(1)
    later(60)
    assert has_qr(order_no)
    platform.pay(order_no)
    assert platform.notice(order_no).to(api.send, order_no).status == 204
    return api.status(order_no)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_deposit_whose_opening_failed_is_opened_later(
    fault, api, buy, platform, later, has_qr, balances, impatient, exceptions
):
    platform.fails(fault)
    order_no = buy()
    assert exceptions() == {order_no: "unknown_outcome"}
    assert _opened_in_the_end(api, platform, later, has_qr, order_no) == "completed"
    assert (balances(), exceptions()) == (PAID, {})


UNCLEAR = {
    "a limit of calls": (429, {"code": "FREQUENCY_LIMITED", "message": "频率超限"}),
    "a limit of calls with another status": (403, {"code": "RATELIMIT_EXCEEDED", "message": "频率超限"}),
    "a limit of another kind": (429, {"code": "NO_AUTH", "message": "频率超限"}),
    "an error of its own": (500, {"code": "SYSTEM_ERROR", "message": "系统错误"}),
    "an error of its own with another status": (400, {"code": "SYSTEM_ERROR", "message": "系统错误"}),
    "an error of a bank": (500, {"code": "BANK_ERROR", "message": "银行系统异常"}),
    "it was paid": (400, {"code": "ORDERPAID", "message": "该订单已支付"}),
    "the number is used": (403, {"code": "OUT_TRADE_NO_USED", "message": "商户订单号已使用"}),
    "the number is used, in other words": (400, {"code": "INVALID_REQUEST", "message": "201 商户订单号重复"}),
    "a page": (403, "<html>Forbidden</html>"),
    "a refusal without a code": (400, {"message": "no"}),
    "a refusal with a number": (404, {"code": 404, "message": "no"}),
    "a redirect": (302, {"code": "NO_AUTH", "message": "elsewhere"}),
    "a success that nobody signed": (200, {"code_url": "weixin://wxpay/bizpayurl?pr=forged"}),
}


@pytest.mark.parametrize("answer", UNCLEAR.values(), ids=UNCLEAR)
def test_an_unclear_response_is_not_a_refusal(answer, api, buy, platform, later, has_qr):
    platform.refuses = [answer]
    assert _opened_in_the_end(api, platform, later, has_qr, buy()) == "completed"


@pytest.mark.parametrize("changed", [{"clock_off": -302}, {"clock_off": 302}, {"signs_by": "certificate"}])
def test_a_response_that_is_old_or_by_another_key_is_refused(changed, api, buy, platform, later, has_qr):
    before = {name: getattr(platform, name) for name in changed}
    vars(platform).update(changed)
    order_no = buy()
    vars(platform).update(before)
    assert _opened_in_the_end(api, platform, later, has_qr, order_no) == "completed"


@pytest.mark.parametrize(
    "code_url", ["", "no link", "weixin://a b", "weixin://\n{}", "weixin://" + "x" * 600, "é://{}"]
)
def test_a_response_without_a_usable_code_is_not_shown(code_url, api, buy, platform, later, has_qr):
    usable, platform.code_url = platform.code_url, code_url
    order_no = buy()
    platform.code_url = usable
    assert _opened_in_the_end(api, platform, later, has_qr, order_no) == "completed"


@pytest.mark.parametrize("code", ["NO_AUTH", "PARAM_ERROR", "APPID_MCHID_NOT_MATCH", "SIGN_ERROR", "RULE_LIMIT"])
def test_an_explicit_refusal_cancels(code, api, channel, platform, order_details):
    platform.refuses = [(403, {"code": code, "message": "不行"})]
    assert api.buy(channel=channel).code == 50201
    order_no = api.listed().data["list"][0]["order_no"]
    assert order_details(order_no)["history"][-1]["why"] == f"Rejected: 不行 ({code})"
    assert api.status(order_no) == "cancelled"


def test_a_key_that_the_upstream_does_not_know_is_an_explicit_refusal(api, platform, add_channel):
    other = platform.config(private_key=key_pair("another merchant")[0])
    assert api.buy(channel=add_channel("wechatpay", other)).code == 50201


@pytest.mark.parametrize("fault", FAULTS)
def test_a_failed_status_check_is_repeated(fault, api, buy, platform, later, balances, exceptions, impatient):
    order_no = buy()
    platform.pay(order_no)
    platform.fails(fault)
    later(60)
    assert (api.status(order_no), exceptions(), balances()) == ("pending", {order_no: "unknown_outcome"}, UNPAID)
    later(60)
    assert (api.status(order_no), exceptions(), balances()) == ("completed", {}, PAID)


ODD = {
    "another merchant": {"mchid": "1900000110"},
    "another application": {"appid": "wx0"},
    "another order": {"out_trade_no": "202605010000000000000000"},
    "another currency": {"amount": {"total": 10_000, "currency": "USD"}},
    "no currency": {"amount": {"total": 10_000}},
    "a fraction": {"amount": {"total": 10_000.5, "currency": "CNY"}},
    "no amount": {"amount": None},
    "no number": {"transaction_id": ""},
    "a state of its own": {"trade_state": "GREAT"},
    "no state": {"trade_state": None},
}


@pytest.mark.parametrize("told", ODD.values(), ids=ODD)
def test_a_response_about_another_order_is_refused(told, api, buy, platform, later, exceptions, balances):
    order_no = buy()
    platform.pay(order_no)
    platform.orders[order_no]["changed"] = told
    later(60)
    assert (api.status(order_no), exceptions(), balances()) == ("pending", {order_no: "unknown_outcome"}, UNPAID)


def test_a_refund_before_the_payment_was_recorded_needs_an_operator(
    api, buy, platform, later, exceptions, balances, flask, refuses
):
    order_no = buy()
    platform.orders[order_no]["trade_state"] = "REFUND"
    later(60)
    assert (api.status(order_no), exceptions(), balances()) == ("pending", {order_no: "wrong_amount"}, UNPAID)
    assert "names no amount" in refuses("order", "settle", order_no, "--credit")
    flask("order", "settle", order_no, "--refund")
    assert (api.status(order_no), exceptions(), balances()) == ("cancelled", {}, UNPAID)


@pytest.mark.parametrize("state", ["USERPAYING", "PAYERROR", "ACCEPT"])
def test_a_deposit_that_is_being_paid_stays_open(state, api, buy, platform, later):
    order_no = buy()
    platform.orders[order_no]["trade_state"] = state
    later(60)
    assert api.status(order_no) == "pending"


@pytest.mark.parametrize("state", ["CLOSED", "REVOKED"])
def test_a_deposit_that_is_closed_upstream_is_cancelled(state, api, buy, platform, later):
    order_no = buy()
    platform.orders[order_no]["trade_state"] = state
    later(60)
    assert api.status(order_no) == "cancelled"


# --- the end of an order


def test_expiry_closes_the_deposit_upstream_and_then_here(api, buy, platform, later, called):
    order_no = buy()
    later(EXPIRY)
    assert (platform.orders[order_no]["trade_state"], api.status(order_no)) == ("CLOSED", "cancelled")
    calls = called(platform)
    assert calls[-2:] == [
        f"pay/transactions/out-trade-no/{order_no}",
        f"pay/transactions/out-trade-no/{order_no}/close",
    ]
    later(3_600, times=3)
    assert called(platform) == calls  # it is closed permanently, so there are no checks for late money


def test_a_deposit_that_was_paid_at_the_last_moment_is_credited(api, buy, platform, later, balances):
    order_no = buy()
    platform.pay(order_no)
    later(EXPIRY)
    assert (api.status(order_no), balances()) == ("completed", PAID)


def test_a_deposit_that_is_paid_while_it_is_closed_is_credited(
    api, buy, platform, later, balances, exceptions, monkeypatch
):
    order_no, close = buy(), platform._close
    monkeypatch.setattr(platform, "_close", lambda number: platform.pay(number) or close(number))
    later(EXPIRY)
    assert (api.status(order_no), exceptions()) == ("pending", {})
    later(300)
    assert (api.status(order_no), balances()) == ("completed", PAID)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_failed_closing_is_repeated(fault, api, buy, platform, later, impatient):
    order_no = buy()
    platform.fails("", fault)
    later(EXPIRY)
    assert api.status(order_no) == "pending"
    later(300)
    assert (platform.orders[order_no]["trade_state"], api.status(order_no)) == ("CLOSED", "cancelled")


def test_closing_a_closed_deposit_succeeds(platform):
    driver, payment = registry.build("wechatpay", platform.config()), _payment()
    driver.open_payment(payment)
    assert [driver.close(payment) for _ in range(2)] == [True, True]


def test_an_order_that_the_upstream_never_had_is_checked_after_its_cancellation(api, buy, platform, later, exceptions):
    platform.fails("unheard")
    order_no = buy()
    later(EXPIRY)
    assert (api.status(order_no), platform.orders) == ("cancelled", {})
    # The money arrives after all.
    platform.orders[order_no] = {"asked": {"amount": {"total": 10_000}}, "way": "native", "trade_state": "SUCCESS"}
    later(600)
    assert exceptions() == {order_no: "late_payment"}


# --- the config


def _without(*names):
    return lambda config: {name: value for name, value in config.items() if name not in names}


def _with(**changed):
    return lambda config: config | changed


WRONG = {
    "no appid": (_without("appid"), ["appid"]),
    "no mchid": (_without("mchid"), ["mchid"]),
    "an mchid that is none": (_with(mchid="19 00"), ["mchid"]),
    "no serial_no": (_without("serial_no"), ["serial_no"]),
    "a serial_no that is no hex": (_with(serial_no="No. 1"), ["serial_no"]),
    "no private_key": (_without("private_key"), ["private_key"]),
    "an empty private_key": (_with(private_key=""), ["private_key"]),
    "a private_key that is none": (_with(private_key="MIIE"), ["private_key"]),
    "a public key as private_key": (_with(private_key=key_pair("wechatpay platform")[1]), ["private_key"]),
    "no apiv3_key": (_without("apiv3_key"), ["apiv3_key"]),
    "a short apiv3_key": (_with(apiv3_key="a" * 31), ["apiv3_key"]),
    "a long apiv3_key": (_with(apiv3_key="a" * 33), ["apiv3_key"]),
    "an apiv3_key of other letters": (_with(apiv3_key="é" * 16), ["apiv3_key"]),
    "nobody to verify with": (_without("public_key_id", "public_key"), ["public_key_id", "public_key"]),
    "no public_key": (_without("public_key"), ["public_key"]),
    "no public_key_id": (_without("public_key_id"), ["public_key_id"]),
    "no public_key beside certificates": (
        lambda config: _without("public_key")(config) | {"platform_certificates": certificate()},
        ["public_key"],
    ),
    "a public_key_id of another form": (_with(public_key_id=MERCHANT_SERIAL), ["public_key_id"]),
    "a public_key that is none": (_with(public_key="hello"), ["public_key"]),
    "certificates that are none": (_with(platform_certificates="hello"), ["platform_certificates"]),
    "plain http": (_with(base_url="http://api.example.com"), ["base_url"]),
    "a proxy that is none": (_with(proxy="squid"), ["proxy"]),
    "two fields at once": (_with(mchid="?", apiv3_key="?"), ["mchid", "apiv3_key"]),
    "a field of another driver": (_with(pid="1"), ["pid"]),
}


@pytest.mark.parametrize(("changed", "named"), WRONG.values(), ids=WRONG)
def test_an_invalid_field_of_the_config_is_named(changed, named, platform, refuses):
    config = changed(platform.config())
    pairs = [part for name, value in config.items() for part in ("--config", f"{name}={value}")]
    new = ("channel", "add", "--category", "gateway_b", "--driver", "wechatpay", "--name", "Wechat")
    message = refuses(*new, *pairs)
    parts = message.partition("config: ")[2].split("; ")
    assert sorted(part.partition(":")[0] for part in parts) == sorted(named)
    assert platform.config()["apiv3_key"] not in message


def test_a_certificate_of_another_kind_of_key_is_refused(platform, refuses, tmp_path):
    own = https_certificate(tmp_path, "127.0.0.1").read_text()
    wrong = platform.config(platform_certificates=own[own.index("-----BEGIN CERTIFICATE") :])
    pairs = [part for name, value in wrong.items() for part in ("--config", f"{name}={value}")]
    message = refuses("channel", "add", "--category", "gateway_b", "--driver", "wechatpay", "--name", "W", *pairs)
    assert message.partition("config: ")[2].startswith("platform_certificates: ")


def test_the_live_address_need_not_be_given(platform):
    config = registry.DRIVERS["wechatpay"].config_schema().load(_without("base_url")(platform.config()))
    assert config["base_url"] == "https://api.mch.weixin.qq.com"


def test_keys_are_read_from_files(platform, flask_json, tmp_path):
    pairs = []
    for name, value in platform.config().items():
        (tmp_path / name).write_text(f"{value}\n" if name.endswith("_key") else value)
        pairs += ["--config", f"{name}=@{tmp_path / name}"]
    added = flask_json("channel", "add", "--category", "gateway_b", "--driver", "wechatpay", "--name", "W", *pairs)
    assert added["pay_method"] == "wxpay"


def test_a_proxy_is_used(api, platform, add_channel, later):
    nobody = f"127.0.0.1:{free_port()}"
    through = platform.config(base_url=f"http://{nobody}", proxy=platform.server.url_for("/").rstrip("/"))
    order_no = api.buy(channel=add_channel("wechatpay", through)).data["order_no"]
    platform.pay(order_no)
    later(60)
    assert (api.status(order_no), {call.host for call in platform.calls}) == ("completed", {nobody})


def test_keys_are_in_no_log_and_no_response(api, buy, channel, platform, later, order_details, caplog, flask):
    caplog.set_level(logging.DEBUG)
    orders = [buy()]
    for misbehaves in (*FAULTS[1:], ""):
        platform.fails(misbehaves)
        orders.append(buy())
    platform.refuses = [(401, {"code": "SIGN_ERROR", "message": "签名错误"})]
    answers = [api.buy(channel=channel).text]
    for order_no in orders:
        platform.orders.get(order_no) and platform.pay(order_no)
        answers += [platform.sent(b"{}").to(api.send, order_no).text, api.detail(order_no=order_no).text]
    later(60, times=2)
    answers += [json.dumps([order_details(order_no) for order_no in orders]), flask("channel", "list").output]
    key = platform.merchant_private.splitlines()
    for secret in (apiv3_key(), key[1], key[-2]):
        assert secret not in caplog.text + "".join(answers)
    assert orders[0] in caplog.text  # it did log


# --- the driver itself


def _payment(number=0, **changed):
    order_no = f"20260501{number:016d}"
    fields = {
        "amount": 1,
        "method": "wxpay",
        "subject": f"订单 {order_no}",
        "notify_url": f"https://shop.example.com/addons/paychannel/notify/{order_no}",
        "pay_url": "https://shop.example.com/pay",
        "expires_at": 2_000_000_000,
    }
    return Payment(order_no=order_no, **fields | changed)


def test_eight_threads_use_one_driver_at_once(platform):
    driver, together = registry.build("wechatpay", platform.config()), Barrier(8)

    def life(number):
        payment = _payment(number, amount=number + 1)
        together.wait()
        shown = driver.open_payment(payment).qr
        states = [driver.query(payment).state]
        if number % 2:
            platform.pay(payment.order_no)
            sent = platform.notice(payment.order_no)
            notice = driver.read_notice(Incoming("POST", b"", sent.headers, sent.body))
            return shown, states, notice.order_no, notice.report.amount
        states += [State.FAILED] if driver.close(payment) else []
        return shown, [*states, driver.query(payment).state], payment.order_no, payment.amount

    with ThreadPoolExecutor(8) as pool:
        lives = list(pool.map(life, range(8)))
    for number, (shown, states, order_no, amount) in enumerate(lives):
        assert (order_no, amount) == (_payment(number).order_no, number + 1)
        assert shown == platform.code_url.format(order_no[-9:])
        assert states == [State.OPEN] if number % 2 else [State.OPEN, State.FAILED, State.FAILED]
    assert platform.most_at_once > 1


def test_the_same_call_again_is_the_same_order(platform):
    driver = registry.build("wechatpay", platform.config())
    assert driver.open_payment(_payment()) == driver.open_payment(_payment())
    assert [call.get_data() for call in platform.calls[:1]] == [call.get_data() for call in platform.calls[1:]]
    assert json.loads(platform.calls[0].get_data())["time_expire"] == "2033-05-18T11:33:20+08:00"


# --- wechatpayv3, a third party's SDK


@pytest.fixture(params=["key", "certificate"])
def sdk(request, platform, tmp_path):
    """The SDK for the merchant's account; it has no public setting for its address."""
    platform.signs_by = request.param
    if request.param == "key":
        whom = {"public_key": key_pair("wechatpay platform")[1], "public_key_id": KEY_ID}
    else:
        (tmp_path / "platform.pem").write_text(certificate())
        whom = {"cert_dir": str(tmp_path)}
    made = WeChatPay(
        WeChatPayType.NATIVE,
        MCHID,
        platform.merchant_private,
        MERCHANT_SERIAL,
        APPID,
        apiv3_key(),
        notify_url="https://shop.example.com/notify",
        **whom,
    )
    made._core._gate_way = platform.base_url
    return made


def _sdk_creates(sdk, order_no):
    amount = {"total": 100, "currency": "CNY"}
    return sdk.pay("一件商品", order_no, amount, time_expire="2033-05-18T11:33:20+08:00")


def test_the_sdk_creates_queries_and_closes_a_payment_at_the_loopback(sdk, platform):
    code, text = _sdk_creates(sdk, "sdk-001")
    assert (code, json.loads(text)["code_url"]) == (200, platform.code_url.format("sdk-001"))
    code, text = sdk.query(out_trade_no="sdk-001")
    assert (code, json.loads(text)["trade_state"]) == (200, "NOTPAY")
    assert sdk.close("sdk-001")[0] == 204
    assert platform.orders["sdk-001"]["trade_state"] == "CLOSED"
    assert json.loads(sdk.query(out_trade_no="sdk-002")[1])["code"] == "ORDER_NOT_EXIST"


def test_the_loopback_refuses_other_keys_signatures(platform):
    stranger = WeChatPay(
        WeChatPayType.NATIVE,
        MCHID,
        key_pair("another merchant")[0],
        MERCHANT_SERIAL,
        APPID,
        apiv3_key(),
        public_key=key_pair("wechatpay platform")[1],
        public_key_id=KEY_ID,
    )
    stranger._core._gate_way = platform.base_url
    code, text = stranger.query(out_trade_no="sdk-001")
    assert (code, json.loads(text)["code"]) == (401, "SIGN_ERROR")


def test_sdk_and_driver_read_the_same_values_in_a_notice(sdk, platform):
    assert _sdk_creates(sdk, "sdk-001")[0] == 200
    platform.pay("sdk-001")
    sent = platform.notice("sdk-001")
    by_sdk = sdk.callback(sent.headers, sent.body)
    by_driver = registry.build("wechatpay", platform.config("both")).read_notice(
        Incoming("POST", b"", sent.headers, sent.body)
    )
    assert by_sdk["event_type"] == "TRANSACTION.SUCCESS"
    assert by_driver.order_no == by_sdk["resource"]["out_trade_no"] == "sdk-001"
    assert by_driver.report.amount == by_sdk["resource"]["amount"]["total"] == 100
    assert by_driver.report.reference == by_sdk["resource"]["transaction_id"]


def test_sdk_and_driver_refuse_the_same_forgery(sdk, platform):
    assert _sdk_creates(sdk, "sdk-001")[0] == 200
    platform.pay("sdk-001")
    sent = _changed(platform.notice("sdk-001"), Nonce="another")
    assert sdk.callback(sent.headers, sent.body) is None
    with pytest.raises(BadNotice):
        registry.build("wechatpay", platform.config("both")).read_notice(Incoming("POST", b"", sent.headers, sent.body))


@pytest.mark.parametrize("call", ["open_payment", "query", "close"])
def test_the_sdk_computes_the_drivers_authorization(call, platform, clock):
    driver = registry.build("wechatpay", platform.config())
    driver.open_payment(_payment())
    getattr(driver, call)(_payment())
    sent = platform.calls[-1]
    given = sent.headers["Authorization"]
    nonce = given.partition('nonce_str="')[2].partition('"')[0]
    assert given == build_authorization(
        sent.environ["REQUEST_URI"],
        sent.method,
        MCHID,
        MERCHANT_SERIAL,
        load_private_key(platform.merchant_private),
        data=sent.get_data().decode(),
        nonce_str=nonce,
    )


def test_if_errors_are_signed_a_check_finds_a_wrong_key_of_the_upstream(channel, platform, flask, refuses):
    platform.signs_errors = True
    assert "accepts your keys" in flask("channel", "check", channel).output
    flask("channel", "set", channel, "--config", f"public_key={key_pair('somebody')[1]}")
    assert "not authentic: bad signature" in refuses("channel", "check", str(channel))
