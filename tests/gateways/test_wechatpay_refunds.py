"""wechatpay: refunds against the loopback, from request to notice; `sdk` in a name: compared with wechatpayv3."""

import json
from dataclasses import replace

import pytest
from wechatpayv3.utils import build_authorization, load_private_key

from gateways import registry
from gateways.base import BadNotice, ChannelRefused, ChannelUnknown, Incoming, Payment, RefundRequest, Report, State
from runtime.settings import Settings
from runtime.state import Runtime
from tests.upstreams.loopback import key_pair
from tests.upstreams.wechatpay import MCHID, MERCHANT_SERIAL, apiv3_key

NOTIFY = "https://shop.example.com/notify/1"
PAYMENT = Payment("202605010000000000000000", 10_000, "wxpay", "订单", NOTIFY, "https://shop.example.com/pay", 2**31)
NUMBER = "202605020000000000000001"


@pytest.fixture(autouse=True)
def _local():
    Runtime(Settings(private_channels=True)).enter()


@pytest.fixture
def driver(wechat):
    return registry.build("wechatpay", wechat.config("both"))


@pytest.fixture
def request_of(driver, wechat):
    """`request_of(amount=300)`: a refund of a payment of 100 yuan."""
    driver.open_payment(PAYMENT)
    wechat.pay(PAYMENT.order_no)
    whole = {"refund_no": NUMBER, "order_no": PAYMENT.order_no, "amount": 300, "total": 10_000, "reason": "商品已售完"}
    reference = driver.query(PAYMENT).reference
    return lambda **facts: RefundRequest(**whole | {"reference": reference, "notify_url": NOTIFY} | facts)


@pytest.fixture
def ours(request_of):
    """The refund of most tests."""
    return request_of()


def read(driver, sent):
    return driver.read_notice(Incoming(sent.method, b"", sent.headers, sent.body))


def is_unknown(call, request, text):
    """Assert that the outcome of a call is unknown for a reason with this text; return the error."""
    with pytest.raises(ChannelUnknown, match=text) as caught:
        call(request)
    assert not isinstance(caught.value, ChannelRefused)
    return caught.value


# --- the request


def test_the_request_names_the_payment_by_the_channels_number_and_the_amounts_in_fen(driver, wechat, ours):
    driver.refund(ours)
    call = wechat.calls[-1]
    assert (call.method, call.path) == ("POST", "/v3/refund/domestic/refunds")
    assert json.loads(call.get_data()) == {
        "transaction_id": ours.reference,
        "out_refund_no": NUMBER,
        "reason": "商品已售完",
        "notify_url": NOTIFY,
        "amount": {"refund": 300, "total": 10_000, "currency": "CNY"},
    }


@pytest.mark.parametrize(
    ("reason", "sent"),
    [
        ("a" * 81, "a" * 80),
        ("退" * 27, "退" * 26),
        ("a" * 79 + "退", "a" * 79),
        ("a" * 78 + "😀", "a" * 78),
        ("", None),
    ],
)
def test_a_reason_is_cut_to_80_bytes_between_two_characters(reason, sent, driver, wechat, request_of):
    assert driver.refund(request_of(reason=reason)).state is State.OPEN
    assert json.loads(wechat.calls[-1].get_data()).get("reason") == sent


def test_a_repeated_request_is_the_same_refund(driver, wechat, ours):
    assert driver.repeats_refund(ours)
    first = driver.refund(ours)
    wechat.end_refund(NUMBER)
    assert driver.refund(ours) == replace(first, state=State.PAID)
    assert len(wechat.refunds) == 1


def test_a_request_whose_response_was_lost_is_found_and_repeated_once(driver, wechat, ours):
    wechat.fails("lost", "half", "garbage")
    for _ in range(3):
        with pytest.raises(ChannelUnknown):
            driver.refund(ours)
    assert driver.query_refund(ours).state is State.OPEN
    assert driver.refund(ours) == driver.query_refund(ours)
    assert len(wechat.refunds) == 1


# --- its status


@pytest.mark.parametrize(
    ("status", "state", "why"),
    [
        ("SUCCESS", State.PAID, ""),
        ("PROCESSING", State.OPEN, ""),
        ("CLOSED", State.FAILED, "closed"),
        ("ABNORMAL", State.STUCK, "card or account"),
    ],
)
def test_request_status_check_and_notice_report_the_same(status, state, why, driver, wechat, ours):
    wechat.refunds_begin = status
    report = driver.refund(ours)
    assert report == Report(state, 300, wechat.refunds[NUMBER]["refund_id"], detail=report.detail)
    assert why in report.detail
    assert bool(report.detail) is bool(why)
    assert driver.query_refund(ours) == report
    if status != "PROCESSING":
        notice = read(driver, wechat.refund_notice(NUMBER))
        assert (notice.order_no, notice.report) == (PAYMENT.order_no, None)
        assert (notice.refund_no, notice.refund) == (NUMBER, report)


def test_a_refund_that_the_channel_does_not_know_is_absent(driver, ours):
    assert driver.query_refund(ours) == Report(State.ABSENT)


def test_an_unknown_status_is_checked_again(driver, wechat, ours):
    wechat.refunds_begin = "REVIEWING"
    for call in (driver.refund, driver.query_refund):
        assert is_unknown(call, ours, "reports status REVIEWING").has_it
    # The notice is accepted, so that WeChat Pay does not repeat it; it proves nothing.
    notice = read(driver, wechat.refund_notice(NUMBER))
    assert (notice.report, notice.refund_no, notice.refund) == (None, NUMBER, None)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"out_refund_no": "1"}, "another refund"),
        ({"transaction_id": "4200000000000000000000001"}, "another refund"),
        ({"amount": {"refund": 301, "total": 10_000, "currency": "CNY"}}, "another amount"),
        ({"amount": {"refund": 300, "total": 10_000, "currency": "USD"}}, "invalid"),
        ({"amount": {"refund": 300, "total": 10_000}}, "invalid"),
        ({"amount": {"refund": 300.0, "total": 10_000, "currency": "CNY"}}, "invalid"),
        ({"amount": {"refund": -300, "total": 10_000, "currency": "CNY"}}, "invalid"),
        ({"amount": None}, "invalid"),
        ({"status": None}, "invalid"),
        ({"refund_id": ""}, "invalid"),
    ],
)
def test_a_response_about_something_else_proves_nothing(changed, why, driver, wechat, ours):
    driver.refund(ours)
    wechat.end_refund(NUMBER)
    wechat.refunds[NUMBER]["changed"] = changed
    for call in (driver.refund, driver.query_refund):
        is_unknown(call, ours, why)


def test_an_unsigned_or_old_response_proves_nothing(driver, wechat, ours):
    driver.refund(ours)
    wechat.end_refund(NUMBER)
    for call in (driver.refund, driver.query_refund):
        wechat.clock_off = 0
        wechat.refuses.append((200, wechat.told_of_refund(NUMBER)))
        is_unknown(call, ours, "no signature")
        wechat.clock_off = -302
        is_unknown(call, ours, "not authentic: too old")


# --- refusals and other errors


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (403, "USER_ACCOUNT_ABNORMAL", "用户账户异常或已注销，不能原路退回"),
        (400, "INVALID_REQUEST", "订单已全额退款"),
        (400, "PARAM_ERROR", "参数错误"),
    ],
)
def test_a_clear_refusal_has_the_channels_text(status, code, message, driver, wechat, ours):
    wechat.refuses.append((status, {"code": code, "message": message}))
    with pytest.raises(ChannelRefused, match=rf"{message} \({code}\)"):
        driver.refund(ours)


def test_more_than_what_is_left_is_refused(driver, wechat, request_of):
    driver.refund(request_of(amount=9_900))
    with pytest.raises(ChannelRefused, match="大于可退金额"):
        driver.refund(request_of(amount=101, refund_no="2"))
    driver.refund(request_of(amount=100, refund_no="3"))
    with pytest.raises(ChannelRefused, match="已全额退款"):
        driver.refund(request_of(amount=1, refund_no="4"))


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (404, "RESOURCE_NOT_EXISTS", "订单不存在"),
        (500, "SYSTEM_ERROR", "系统错误"),
        (400, "SYSTEM_ERROR", "系统错误"),
        (429, "FREQUENCY_LIMITED", "频率限制"),
        (403, "FREQUENCY_LIMITED", "频率限制"),
        (429, "INVALID_REQUEST", "频率限制"),
        (503, "INVALID_REQUEST", "维护"),
        (403, "NOT_ENOUGH", "基本账户余额不足，请充值后重新发起"),
        (400, "INVALID_REQUEST", "基本账户余额不足，请充值后重新发起"),
        (400, "INVALID_REQUEST", "退款处理中，请稍后再试"),
        (403, "NO_AUTH", "没有退款权限"),
        (401, "SIGN_ERROR", "签名错误"),
        (404, "MCH_NOT_EXISTS", "商户号不存在"),
        (400, "PARAM_ERROR", "平台证书序列号Wechatpay-Serial错误"),
        (403, "SOMETHING_NEW", "不行"),
    ],
)
def test_after_other_errors_the_same_request_succeeds_later(status, code, message, driver, wechat, ours):
    wechat.refuses.append((status, {"code": code, "message": message}))
    is_unknown(driver.refund, ours, rf"{message} \({code}\)")
    assert driver.refund(ours).state is State.OPEN


@pytest.mark.parametrize("said", ["<html>Forbidden</html>", {"message": "no"}, {"code": "参数错误"}])
def test_an_error_without_a_code_is_not_a_refusal(said, driver, wechat, ours):
    wechat.refuses.append((400, said))
    with pytest.raises(ChannelUnknown):
        driver.refund(ours)


def test_a_low_balance_is_no_refusal(driver, wechat, ours):
    wechat.balance = 299
    is_unknown(driver.refund, ours, "余额不足")
    assert driver.query_refund(ours).state is State.ABSENT
    wechat.balance = 300
    assert driver.refund(ours).state is State.OPEN


def test_a_refusal_of_a_refund_that_exists_is_none(driver, wechat, ours):
    """The first request succeeded and its response was lost: a refusal of the second one must not cancel it."""
    wechat.fails("lost")
    with pytest.raises(ChannelUnknown):
        driver.refund(ours)
    wechat.end_refund(NUMBER)
    wechat.refuses.append((400, {"code": "INVALID_REQUEST", "message": "订单已全额退款"}))
    assert driver.refund(ours).state is State.PAID
    # The check that follows a refusal may fail, too.
    wechat.refuses += [(400, {"code": "INVALID_REQUEST", "message": "订单已全额退款"}), (500, {"code": "SYSTEM_ERROR"})]
    is_unknown(driver.refund, ours, "SYSTEM_ERROR")


def test_another_amount_under_the_same_number_is_no_refusal(driver, wechat, ours, request_of):
    driver.refund(ours)
    for call in (driver.refund, driver.query_refund):
        is_unknown(call, request_of(amount=301), "不一致|another amount")


@pytest.mark.parametrize(
    ("status", "code"), [(500, "SYSTEM_ERROR"), (429, "FREQUENCY_LIMITED"), (401, "SIGN_ERROR"), (400, "PARAM_ERROR")]
)
def test_a_status_check_with_an_error_proves_nothing(status, code, driver, wechat, ours):
    driver.refund(ours)
    wechat.refuses.append((status, {"code": code, "message": "不行"}))
    is_unknown(driver.query_refund, ours, code)


# --- notices


def test_a_refund_in_the_console_is_reported_under_its_own_number(driver, wechat, ours):
    wechat.refund_in_console(PAYMENT.order_no, 200, "50000000382019052709732678859")
    notice = read(driver, wechat.refund_notice("50000000382019052709732678859"))
    assert (notice.order_no, notice.refund_no) == (PAYMENT.order_no, "50000000382019052709732678859")
    assert (notice.report, notice.refund.state, notice.refund.amount) == (None, State.PAID, 200)


def test_a_notice_that_contradicts_itself_proves_nothing(driver, wechat, ours):
    driver.refund(ours)
    wechat.end_refund(NUMBER, "CLOSED")
    notice = read(driver, wechat.refund_notice(NUMBER, event={"event_type": "REFUND.SUCCESS"}))
    assert (notice.refund_no, notice.refund) == (NUMBER, None)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"mchid": "1900000110"}, "another merchant"),
        ({"mchid": None}, "fields are invalid"),
        ({"out_refund_no": ""}, "fields are invalid"),
        ({"out_refund_no": "1\n2"}, "fields are invalid"),
        ({"out_trade_no": None}, "fields are invalid"),
        ({"refund_id": None}, "fields are invalid"),
        ({"refund_status": None}, "fields are invalid"),
        ({"amount": None}, "fields are invalid"),
        ({"amount": {"total": 10_000}}, "fields are invalid"),
        ({"amount": {"refund": "３００"}}, "fields are invalid"),
    ],
)
def test_a_notice_about_another_merchant_or_without_the_facts_is_rejected(told, why, driver, wechat, ours):
    driver.refund(ours)
    wechat.end_refund(NUMBER)
    with pytest.raises(BadNotice, match=why):
        read(driver, wechat.refund_notice(NUMBER, **told))


def test_a_tampered_notice_is_rejected(driver, wechat, ours):
    driver.refund(ours)
    wechat.end_refund(NUMBER)
    sent = wechat.refund_notice(NUMBER)
    changed = sent.body.replace(b"REFUND.SUCCESS", b"REFUND.ABNORMAL")
    resource = json.loads(sent.body)["resource"] | {"associated_data": "transaction"}
    foreign = wechat.encrypted(b"{}", key=apiv3_key("other"), data="refund")
    for tampered, why in (
        (replace(sent, body=changed), "bad signature"),
        (replace(sent, headers={}), "unknown key"),
        (replace(sent, method="GET"), "not a POST"),
        (wechat.refund_notice(NUMBER, event={"resource": resource}), "decryption failed"),
        (wechat.refund_notice(NUMBER, event={"resource": foreign}), "decryption failed"),
        (wechat.refund_notice(NUMBER, event={"event_type": "TRANSACTION.SUCCESS"}), "fields are invalid"),
    ):
        with pytest.raises(BadNotice, match=why):
            read(driver, tampered)


def test_the_payment_shows_that_it_was_refunded(driver, wechat, ours):
    driver.refund(ours)
    assert driver.query(PAYMENT).state is State.RETURNED


# --- wechatpayv3, a third party's SDK


def test_the_sdk_refunds_and_queries_at_the_loopback_and_the_driver_reads_the_same(driver, wechat, wechat_sdk, ours):
    amount = {"refund": ours.amount, "total": ours.total, "currency": "CNY"}
    sdk = wechat_sdk()
    code, text = sdk.refund(NUMBER, amount, transaction_id=ours.reference, reason=ours.reason, notify_url=NOTIFY)
    made = json.loads(text)
    assert (code, made["status"], made["out_refund_no"]) == (200, "PROCESSING", NUMBER)
    asked_by_sdk = json.loads(wechat.calls[-1].get_data())
    report = driver.refund(ours)
    assert json.loads(wechat.calls[-1].get_data()) == asked_by_sdk
    assert (report.state, report.amount, report.reference) == (State.OPEN, 300, made["refund_id"])
    wechat.end_refund(NUMBER)
    code, text = sdk.query_refund(NUMBER)
    assert (code, json.loads(text)["status"]) == (200, "SUCCESS")
    assert driver.query_refund(ours).state is State.PAID
    code, text = sdk.query_refund("1")
    assert (code, json.loads(text)["code"]) == (404, "RESOURCE_NOT_EXISTS")


def test_the_sdk_and_the_driver_decrypt_the_same_refund_notice_and_refuse_the_same_forgery(
    driver, wechat, wechat_sdk, ours
):
    driver.refund(ours)
    wechat.end_refund(NUMBER, "ABNORMAL")
    sent = wechat.refund_notice(NUMBER)
    by_sdk, by_driver = wechat_sdk().callback(sent.headers, sent.body), read(driver, sent)
    assert by_sdk["event_type"] == "REFUND.ABNORMAL"
    assert by_driver.order_no == by_sdk["resource"]["out_trade_no"]
    assert by_driver.refund_no == by_sdk["resource"]["out_refund_no"]
    assert by_driver.refund.reference == by_sdk["resource"]["refund_id"]
    assert by_driver.refund.amount == by_sdk["resource"]["amount"]["refund"] == 300
    forged = replace(sent, headers=sent.headers | {"Wechatpay-Nonce": "another"})
    assert wechat_sdk().callback(forged.headers, forged.body) is None
    with pytest.raises(BadNotice):
        read(driver, forged)


def test_the_sdk_computes_the_authorization_of_refunds_and_their_status_checks(driver, wechat, ours, clock):
    key = load_private_key(wechat.merchant_private)
    for call in (driver.refund, driver.query_refund):
        call(ours)
        sent = wechat.calls[-1]
        target, body = sent.environ["REQUEST_URI"], sent.get_data().decode()
        given = sent.headers["Authorization"]
        nonce = given.partition('nonce_str="')[2].partition('"')[0]
        expected = build_authorization(target, sent.method, MCHID, MERCHANT_SERIAL, key, data=body, nonce_str=nonce)
        assert given == expected


def test_a_wrong_key_of_the_merchant_refunds_nothing(wechat, ours):
    stranger = registry.build("wechatpay", wechat.config(private_key=key_pair("another merchant")[0]))
    is_unknown(stranger.refund, ours, "SIGN_ERROR")
    assert wechat.refunds == {}
