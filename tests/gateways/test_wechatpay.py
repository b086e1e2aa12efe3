"""wechatpay: a deposit from QR code to notice against the loopback; `sdk` in a name: compared with the SDK
wechatpayv3."""

import json
from dataclasses import replace

import pytest
import segno
from wechatpayv3.utils import build_authorization, load_private_key

from gateways import registry
from gateways.base import BadNotice, Incoming, Payment
from tests.upstreams.loopback import key_pair
from tests.upstreams.wechatpay import (
    CERTIFICATE_SERIAL,
    KEY_ID,
    MCHID,
    MERCHANT_SERIAL,
    WechatPay,
    certificate,
)

START = 1_000_000
UNPAID, PAID = (START, 0), (START + 9_940, 0)
EXPIRY = 900
PAYMENT = Payment(
    "202605010000000000000000", 1, "wxpay", "订单",
    "https://shop.example.com/notify", "https://shop.example.com/pay", 2_000_000_000,
)  # fmt: skip


@pytest.fixture
def channel(wechat, add_channel):
    return add_channel("wechatpay", wechat.config())


@pytest.fixture
def buy(api, channel):
    """`buy()`: the number of a new deposit of 100 yuan."""
    return lambda: str(api.buy(channel=channel).data["order_no"])


# --- a deposit


@pytest.mark.parametrize(
    ("believes", "signs"), [("key", "key"), ("certificate", "certificate"), ("both", "key"), ("both", "certificate")]
)
def test_both_kinds_of_the_upstreams_keys_are_accepted(believes, signs, api, wechat, add_channel, shown):
    wechat.signs_by = signs
    order_no = api.buy(channel=add_channel("wechatpay", wechat.config(believes))).data["order_no"]
    code = segno.make(wechat.code_url.format(order_no[-9:]), error="m")
    assert code.png_data_uri(scale=8, border=4) in shown(order_no)
    wechat.pay(order_no)
    assert wechat.notice(order_no).to(api.send, order_no).status == 204
    assert api.status(order_no) == "completed"


def test_responses_signed_with_the_public_key_are_requested(wechat):
    for believes, signs, named in (
        ("key", "key", KEY_ID),
        ("both", "key", KEY_ID),
        ("certificate", "certificate", None),
    ):
        wechat.signs_by = signs
        registry.build("wechatpay", wechat.config(believes)).open_payment(PAYMENT)
        assert wechat.calls[-1].headers.get("Wechatpay-Serial") == named


def test_an_address_with_a_path_is_signed_as_it_is_called(api, web_server, add_channel, later):
    relay = WechatPay(web_server, "relay/wechat/v3")
    assert relay.base_url.endswith("/relay/wechat")
    order_no = api.buy(channel=add_channel("wechatpay", relay.config())).data["order_no"]
    relay.pay(order_no)
    later(60)
    assert api.status(order_no) == "completed"


# --- notices


def _changed(sent, **headers):
    """A notice with other headers (`Serial=`: Wechatpay-Serial) and an unchanged signature."""
    return replace(sent, headers=sent.headers | {f"Wechatpay-{name}": value for name, value in headers.items()})


def test_a_refusal_repeats_nothing_of_the_notice(api, buy, wechat, order_details, caplog):
    order_no = buy()
    for sent in (
        _changed(wechat.notice(order_no), Serial="MARK", Signature="MARK", Nonce="MARK", Timestamp="MARK"),
        wechat.sent(b"MARK"),
        wechat.notice(order_no, event={"event_type": "MARK"}),
        wechat.notice(order_no, trade_state="MARK"),
        wechat.notice(order_no, mchid="MARK"),
    ):
        assert "MARK" not in sent.to(api.send, order_no).text
    assert "MARK" not in json.dumps(order_details(order_no)) + caplog.text


def test_an_accepted_notice_is_refused_when_it_is_old(api, buy, wechat, ahead, balances):
    order_no = buy()
    wechat.pay(order_no)
    sent = wechat.notice(order_no)
    assert sent.to(api.send, order_no).status == 204
    ahead(302)
    assert sent.to(api.send, order_no).status == 400
    assert balances() == PAID


def test_notices_of_clocks_and_ciphertexts_within_the_rules_are_accepted(api, buy, wechat):
    orders = [buy() for _ in range(4)]
    for order_no in orders:
        wechat.pay(order_no)
    for order_no, seconds in zip(orders[:2], (-290, 290), strict=True):
        wechat.clock_off = seconds
        assert wechat.notice(order_no).to(api.send, order_no).status == 204, "clocks may differ by five minutes"
    wechat.clock_off = 0
    for order_no, data in zip(orders[2:], (None, ""), strict=True):
        sealed = wechat.encrypted(json.dumps(wechat.told(order_no)).encode(), data=data)
        sent = wechat.notice(order_no, event={"resource": sealed})
        assert sent.to(api.send, order_no).status == 204, "associated data is optional"
    assert {api.status(order_no) for order_no in orders} == {"completed"}


def test_a_certificate_is_found_by_its_number_in_any_notation(api, wechat, add_channel):
    wechat.signs_by = "certificate"
    channel = add_channel("wechatpay", wechat.config("certificate"))
    for serial in (CERTIFICATE_SERIAL, CERTIFICATE_SERIAL.lower(), CERTIFICATE_SERIAL.lstrip("0")):
        order_no = api.buy(channel=channel).data["order_no"]
        wechat.pay(order_no)
        assert _changed(wechat.notice(order_no), Serial=serial).to(api.send, order_no).status == 204


# --- failures of the upstream


def test_a_refund_before_the_payment_was_recorded_needs_an_operator(buy, wechat, later, flask, refuses, outcome):
    order_no = buy()
    wechat.orders[order_no]["trade_state"] = "REFUND"
    later(60)
    assert outcome(order_no) == ("pending", UNPAID, {order_no: "wrong_amount"})
    assert "names no amount" in refuses("order", "settle", order_no, "--credit")
    flask("order", "settle", order_no, "--refund")
    assert outcome(order_no) == ("cancelled", UNPAID, {})


# --- the end of an order


def test_an_order_that_the_upstream_never_had_is_checked_after_its_cancellation(api, buy, wechat, later, exceptions):
    wechat.fails("unheard")
    order_no = buy()
    later(EXPIRY)
    assert (api.status(order_no), wechat.orders) == ("cancelled", {})
    # The money arrives after all.
    wechat.orders[order_no] = {"asked": {"amount": {"total": 10_000}}, "way": "native", "trade_state": "SUCCESS"}
    later(600)
    assert exceptions() == {order_no: "late_payment"}


# --- the driver itself


def test_opening_and_closing_may_be_repeated(wechat):
    driver = registry.build("wechatpay", wechat.config())
    assert driver.open_payment(PAYMENT) == driver.open_payment(PAYMENT)
    first, second = [call.get_data() for call in wechat.calls]
    assert first == second
    assert json.loads(first)["time_expire"] == "2033-05-18T11:33:20+08:00"
    assert [driver.close(PAYMENT) for _ in range(2)] == [True, True]


# --- wechatpayv3, a third party's SDK


@pytest.fixture(params=["key", "certificate"])
def sdk(request, wechat, wechat_sdk, tmp_path):
    """The SDK, with either of the upstream's keys."""
    wechat.signs_by = request.param
    (tmp_path / "platform.pem").write_text(certificate())
    return wechat_sdk(**({"cert_dir": str(tmp_path)} if request.param == "certificate" else {}))


def _sdk_creates(sdk, order_no):
    amount = {"total": 100, "currency": "CNY"}
    return sdk.pay("一件商品", order_no, amount, time_expire="2033-05-18T11:33:20+08:00")


def test_the_sdk_creates_queries_and_closes_a_payment_at_the_loopback(sdk, wechat):
    code, text = _sdk_creates(sdk, "sdk-001")
    assert (code, json.loads(text)["code_url"]) == (200, wechat.code_url.format("sdk-001"))
    code, text = sdk.query(out_trade_no="sdk-001")
    assert (code, json.loads(text)["trade_state"]) == (200, "NOTPAY")
    assert sdk.close("sdk-001")[0] == 204
    assert wechat.orders["sdk-001"]["trade_state"] == "CLOSED"
    assert json.loads(sdk.query(out_trade_no="sdk-002")[1])["code"] == "ORDER_NOT_EXIST"


def test_the_loopback_refuses_other_keys_signatures(wechat_sdk):
    code, text = wechat_sdk(key_pair("another merchant")[0]).query(out_trade_no="sdk-001")
    assert (code, json.loads(text)["code"]) == (401, "SIGN_ERROR")


def test_sdk_and_driver_read_the_same_values_in_a_notice_and_refuse_the_same_forgery(sdk, wechat):
    def read(sent):
        incoming = Incoming("POST", b"", sent.headers, sent.body)
        return registry.build("wechatpay", wechat.config("both")).read_notice(incoming)

    assert _sdk_creates(sdk, "sdk-001")[0] == 200
    wechat.pay("sdk-001")
    sent = wechat.notice("sdk-001")
    by_sdk, by_driver = sdk.callback(sent.headers, sent.body), read(sent)
    assert by_sdk["event_type"] == "TRANSACTION.SUCCESS"
    assert by_driver.order_no == by_sdk["resource"]["out_trade_no"] == "sdk-001"
    assert by_driver.report.amount == by_sdk["resource"]["amount"]["total"] == 100
    assert by_driver.report.reference == by_sdk["resource"]["transaction_id"]
    forged = _changed(sent, Nonce="another")
    assert sdk.callback(forged.headers, forged.body) is None
    with pytest.raises(BadNotice):
        read(forged)


def test_the_sdk_computes_the_drivers_authorization(wechat, clock):
    driver, key = registry.build("wechatpay", wechat.config()), load_private_key(wechat.merchant_private)
    for call in (driver.open_payment, driver.query, driver.close):
        call(PAYMENT)
        sent = wechat.calls[-1]
        target, body = sent.environ["REQUEST_URI"], sent.get_data().decode()
        given = sent.headers["Authorization"]
        nonce = given.partition('nonce_str="')[2].partition('"')[0]
        expected = build_authorization(target, sent.method, MCHID, MERCHANT_SERIAL, key, data=body, nonce_str=nonce)
        assert given == expected


def test_if_errors_are_signed_a_check_finds_a_wrong_key_of_the_upstream(channel, wechat, flask, refuses):
    wechat.signs_errors = True
    assert "accepts your keys" in flask("channel", "check", channel).output
    flask("channel", "set", channel, "--config", f"public_key={key_pair('somebody')[1]}")
    assert "not authentic: bad signature" in refuses("channel", "check", str(channel))
