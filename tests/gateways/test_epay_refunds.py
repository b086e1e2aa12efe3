"""epay, version 1 and 2: refunds through the driver's interface, against the loopback platform."""

from dataclasses import replace
from decimal import Decimal

import pytest

from gateways import registry
from gateways.base import ChannelRefused, ChannelUnknown, Payment, RefundRequest, State
from runtime.settings import Settings
from runtime.state import Runtime

WHOLE, PART = 10_000, 3_000
REFUND_NO = "202605010000000000000001"
ORDER_NO = "202605010000000000000009"


@pytest.fixture
def runtime():
    """The settings that drivers need; no database."""
    Runtime(Settings(private_channels=True)).enter()


@pytest.fixture
def driver(runtime, platform, version):
    return registry.build("epay", platform.config(version))


@pytest.fixture
def v1(runtime, platform):
    return registry.build("epay", platform.config("1"))


@pytest.fixture
def v2(runtime, platform):
    return registry.build("epay", platform.config("2"))


@pytest.fixture
def request_of(runtime, platform):
    """`request_of(3_000)`: the request to refund 30 yuan of a payment of 100 yuan, which exists at the platform."""

    def make(fen, **more):
        if ORDER_NO not in platform.orders:
            channel = registry.build("epay", platform.config("1"))
            there = "https://orders.example.com/"
            channel.open_payment(Payment(ORDER_NO, WHOLE, "wxpay", "an order", there, there, 2_000_000_000))
            platform.pay(ORDER_NO)
        reference = platform.orders[ORDER_NO]["trade_no"]
        facts = {"reason": "", "notify_url": "", "refunded_before": 0, **more}
        return RefundRequest(REFUND_NO, ORDER_NO, reference, fen, WHOLE, **facts)

    return make


@pytest.fixture
def sent(platform, request_of):
    """`sent()`: what the payer got back, by the platform's own upstream, in yuan."""
    return lambda: platform.at_upstream.get(platform.orders[ORDER_NO]["trade_no"], Decimal(0))


# --- requests


@pytest.mark.parametrize("fen", [PART, WHOLE])
def test_a_refund_is_done_with_the_platforms_number(fen, driver, request_of, platform, sent):
    report = driver.refund(request_of(fen))
    [refund_no] = platform.refunds
    assert (report.state, report.amount, report.reference, report.proven) == (State.PAID, fen, refund_no, True)
    assert sent() == Decimal(fen) / 100


def test_code_1_of_version_1_is_a_success_without_a_number(v1, request_of, platform):
    platform.success_of_refunds = "1"
    report = v1.refund(request_of(PART))
    assert (report.state, report.amount, report.reference) == (State.PAID, PART, "")


def test_version_1_sends_the_key_in_the_form_and_not_in_the_address(v1, request_of, platform):
    request = request_of(PART)
    v1.refund(request)
    call = platform.calls[-1]
    assert (call.method, call.path, call.args.to_dict()) == ("POST", "/epay/api.php", {"act": "refund"})
    expected = {"pid": "1001", "key": platform.key, "trade_no": request.reference, "money": "30.00"}
    assert call.form.to_dict() == expected


def test_a_payment_without_a_number_of_the_platform_is_named_by_the_orders(driver, request_of, platform):
    request = replace(request_of(PART), reference="")
    assert driver.refund(request).state is State.PAID
    assert platform.calls[-1].form["out_trade_no"] == ORDER_NO
    assert "trade_no" not in platform.calls[-1].form
    assert driver.refunded_sum(request) == (None if driver.config["version"] == "1" else PART)


WRONG_SUCCESS = {
    "code 0 without a refund number": {"code": 0, "msg": "succ", "money": "30.00"},
    "code 0 without an amount": {"code": 0, "msg": "succ", "refund_no": "RF1"},
    "code 0 with another amount": {"code": 0, "refund_no": "RF1", "money": "100.00"},
    "code 1 with another amount": {"code": 1, "money": "100.00"},
    "code 1 with an invalid amount": {"code": 1, "money": "a lot"},
    "code 1 about another order": {"code": 1, "money": "30.00", "trade_no": "EP000000000000077"},
    "no code": {"msg": "succ", "money": "30.00"},
    "the code true": {"code": True, "money": "30.00"},
}


@pytest.mark.parametrize("said", WRONG_SUCCESS.values(), ids=WRONG_SUCCESS)
def test_a_success_of_version_1_that_does_not_fit_is_an_unknown_outcome(said, v1, request_of, platform, monkeypatch):
    request = request_of(PART)
    monkeypatch.setattr(platform, "_refund_v1", lambda form: said)
    with pytest.raises(ChannelUnknown):
        v1.refund(request)


@pytest.mark.parametrize(
    "wrong",
    [
        {"money": "100.00"},
        {"money": ""},
        {"refund_no": ""},
        {"out_refund_no": "202605010000000000000002"},
        {"trade_no": "EP000000000000077"},
        {"code": 1},
    ],
    ids=str,
)
def test_a_success_of_version_2_that_does_not_fit_is_an_unknown_outcome(wrong, v2, request_of, platform, monkeypatch):
    request, refund = request_of(PART), platform._refund_v2
    monkeypatch.setattr(platform, "_refund_v2", lambda fields: refund(fields) | wrong)
    with pytest.raises(ChannelUnknown):
        v2.refund(request)


def test_a_success_of_version_2_with_another_signature_is_an_unknown_outcome(v2, request_of, platform, monkeypatch):
    request = request_of(PART)
    monkeypatch.setattr(platform, "_rsa", lambda fields: "AAAA")
    with pytest.raises(ChannelUnknown, match="signature"):
        v2.refund(request)


# --- refusals

FINAL = (
    "当前订单不存在！",
    "退款金额不能大于订单金额",
    "未开启商户后台自助退款",
    "管理员未开启商户后台自助退款",
    "商户未开启订单退款API接口",
    "接口订单号不存在",
    "退款失败：当前支付插件不支持API退款",
    "当前支付通道不支持API退款",
    "No Act!",
    "接口方法不存在",
)
NOT_FINAL = (
    "商户余额不足，请先充值",  # it may be topped up
    "商户密钥错误",  # the key can be corrected
    "该订单已全额退款！",  # perhaps by an earlier request
    "退款金额不能超过该订单剩余可退款金额！",
    "只支持退款已支付状态的订单",
    "退款失败：Operation timed out after 10000 milliseconds",
    "退款失败：当前订单不存在！",  # said by the platform's upstream
    "退款失败：",
    "订单不存在，请联系客服",
    "系统繁忙",
    "",
)


@pytest.mark.parametrize("text", FINAL)
def test_a_refusal_for_a_reason_that_stays_is_final(text, driver, request_of, platform):
    request, platform.refusal = request_of(PART), text
    with pytest.raises(ChannelRefused, match=text.strip("！")):
        driver.refund(request)


@pytest.mark.parametrize("text", NOT_FINAL)
def test_any_other_refusal_is_an_unknown_outcome(text, driver, request_of, platform):
    request, platform.refusal = request_of(PART), text
    with pytest.raises(ChannelUnknown):
        driver.refund(request)


def test_a_refusal_that_names_the_order_is_an_unknown_outcome(driver, request_of, platform, monkeypatch):
    request = request_of(PART)
    said = {"code": -1, "msg": "当前订单不存在！", "trade_no": request.reference}
    monkeypatch.setattr(platform, "_refund", lambda fields: said)
    with pytest.raises(ChannelUnknown):
        driver.refund(request)


@pytest.mark.parametrize("fault", ["lost", "unheard", "half", "garbage", "broken"])
def test_without_a_usable_response_the_outcome_is_unknown(fault, driver, request_of, platform):
    request = request_of(PART)
    platform.fails(fault)
    with pytest.raises(ChannelUnknown):
        driver.refund(request)


def test_a_refund_that_takes_too_long_is_an_unknown_outcome(driver, request_of, platform, impatient):
    request = request_of(PART)
    platform.fails("slow")
    with impatient(), pytest.raises(ChannelUnknown):
        driver.refund(request)


# --- what the platform has refunded, and status checks


def test_version_2_and_some_platforms_of_version_1_report_the_refunded_sum(driver, request_of, platform):
    platform.tells_sums = True
    request = request_of(PART)
    assert driver.refunded_sum(request) == 0
    driver.refund(request)
    assert driver.refunded_sum(request) == PART


def test_other_platforms_of_version_1_report_only_that_something_was_refunded(v1, request_of):
    request = request_of(PART)
    assert v1.refunded_sum(request) == 0
    v1.refund(request)
    assert v1.refunded_sum(request) is None
    with pytest.raises(ChannelUnknown, match="does not report how much"):
        v1.query_refund(request)


def test_the_refunded_sum_of_an_unknown_or_frozen_or_unpaid_order_is_unknown(driver, request_of, platform):
    request = request_of(PART)
    assert driver.refunded_sum(replace(request, reference="EP000000000000077")) is None
    for status in ("0", "3", "9"):
        platform.orders[ORDER_NO]["status"] = status
        assert driver.refunded_sum(request) is None


def test_a_wrong_key_is_not_a_refunded_sum(platform, request_of):
    request, config = request_of(PART), platform.config("1", key="another-key")
    with pytest.raises(ChannelUnknown, match="商户密钥错误"):
        registry.build("epay", config).refunded_sum(request)


@pytest.mark.parametrize("fen", [PART, WHOLE])
@pytest.mark.parametrize(("fault", "state"), [("lost", State.PAID), ("unheard", State.ABSENT)])
def test_after_a_silence_a_status_check_finds_the_outcome(fault, state, fen, driver, request_of, platform):
    platform.tells_sums = True
    request = request_of(fen)
    platform.fails(fault)
    with pytest.raises(ChannelUnknown):
        driver.refund(request)
    report = driver.query_refund(request)
    assert (report.state, report.amount) == (state, fen if state is State.PAID else 0)


def test_the_sum_is_compared_with_the_one_before_the_first_request(v1, request_of, platform):
    platform.tells_sums = True
    v1.refund(request_of(PART))
    expected = {PART: State.ABSENT, 0: State.PAID, 1_000: None, 5_000: None, None: None}
    for before, state in expected.items():
        request = request_of(PART, refunded_before=before)
        if state:
            assert v1.query_refund(request).state is state
        else:
            with pytest.raises(ChannelUnknown, match=r"has refunded 30\.00 of this payment"):
                v1.query_refund(request)


def test_if_nothing_at_all_was_refunded_the_sum_before_is_not_needed(driver, request_of):
    assert driver.query_refund(request_of(PART, refunded_before=None)).state is State.ABSENT


def test_version_2_finds_a_refund_by_its_number_even_if_the_sum_has_grown_further(v2, request_of, platform):
    request = request_of(PART)
    v2.refund(request)
    v2.refund(replace(request, refund_no="202605010000000000000002"))
    report = v2.query_refund(request)
    assert (report.state, report.amount, report.reference) == (State.PAID, PART, next(iter(platform.refunds)))


def test_a_failed_refund_of_version_2_is_failed_only_if_nothing_was_refunded(v2, request_of, platform):
    request = request_of(PART)
    v2.refund(request)
    [refund] = platform.refunds.values()
    refund["status"] = "0"
    with pytest.raises(ChannelUnknown, match="its refunded sum has grown"):
        v2.query_refund(request)
    platform.refunded.clear()
    platform.orders[ORDER_NO]["status"] = "1"
    assert v2.query_refund(request).state is State.FAILED


@pytest.mark.parametrize(
    "odd", [{"status": "7"}, {"status": ""}, {"money": "1.00"}, {"money": ""}, {"out_refund_no": "7"}], ids=str
)
def test_an_odd_report_of_version_2_is_an_unknown_outcome(odd, v2, request_of, platform, monkeypatch):
    request = request_of(PART)
    v2.refund(request)
    ask = platform._ask_refund
    monkeypatch.setattr(platform, "_ask_refund", lambda fields: ask(fields) | odd)
    with pytest.raises(ChannelUnknown):
        v2.query_refund(request)


def test_a_platform_of_version_2_without_status_checks_of_refunds_is_asked_for_the_sum(
    v2, request_of, platform, monkeypatch
):
    request = request_of(PART)
    v2.refund(request)
    monkeypatch.setattr(platform, "_ask_refund", lambda fields: {"code": -5, "msg": "接口方法不存在"})
    assert v2.query_refund(request).state is State.PAID


# --- repeated requests


def test_only_the_first_refund_of_a_whole_payment_is_repeated(driver, request_of):
    assert driver.repeats_refund(request_of(WHOLE))
    assert not driver.repeats_refund(request_of(PART))
    assert not driver.repeats_refund(request_of(WHOLE, refunded_before=None))
    assert not driver.repeats_refund(request_of(WHOLE, refunded_before=PART))


def test_a_whole_refund_that_only_the_platforms_upstream_knows_is_not_made_twice(driver, request_of, platform, sent):
    request, platform.upstream_error = request_of(WHOLE), "Operation timed out"
    with pytest.raises(ChannelUnknown):
        driver.refund(request)
    assert driver.query_refund(request).state is State.ABSENT
    platform.upstream_error = ""
    assert driver.repeats_refund(request)
    with pytest.raises(ChannelUnknown, match="退款失败"):
        driver.refund(request)
    assert sent() == 100


def test_version_2_takes_a_finished_refund_of_the_same_number_as_the_same(v2, request_of, sent):
    request = request_of(PART)
    first = v2.refund(request)
    assert v2.refund(request) == first
    assert sent() == 30


# --- the channel


def test_refunds_are_off_if_the_platform_has_none_or_an_error_could_be_forged(runtime, platform, version):
    def refunds(**config):
        return registry.build("epay", platform.config(version, **config)).refunds

    assert refunds() is True
    assert refunds(base_url="https://pay.example.com") is True
    assert refunds(no_refunds="true") is False
    assert refunds(base_url="http://pay.example.com") is False
    if version == "1":
        assert refunds(no_status_checks="true") is False
        assert refunds(query_url="http://pay.example.com/api.php") is False


def test_a_partial_refund_of_a_paid_order_is_reported_with_both_amounts(driver, request_of, platform):
    request_of(PART)
    payment = Payment(ORDER_NO, WHOLE, "wxpay", "", "", "", 2_000_000_000)
    for status in ("1", "2"):
        platform.orders[ORDER_NO] |= {"status": status, "refundmoney": "30.00"}
        report = driver.query(payment)
        assert (report.state, report.amount, report.returned) == (State.PAID, 7_000, 3_000)
    platform.orders[ORDER_NO] |= {"status": "1", "refundmoney": "0.00"}
    assert driver.query(payment).amount == WHOLE


def test_an_operator_makes_the_refunds_of_a_manual_channel(runtime, request_of):
    manual = registry.build("manual", {})
    assert (manual.refunds, manual.by_hand) == (True, True)
    assert manual.refund(request_of(PART)).state is State.OPEN
    assert manual.query_refund(request_of(PART)).state is State.OPEN


# --- a platform that accepts a refund and completes it later, as this service does


@pytest.mark.parametrize("status", [2, "2", 0])
def test_a_refund_that_the_platform_has_only_accepted_is_not_done(status, v1, request_of, platform, monkeypatch):
    request = request_of(PART)
    monkeypatch.setattr(platform, "_refund_v1", lambda form: {"code": 1, "msg": "accepted", "status": status})
    assert (v1.refund(request).state, v1.refund(request).amount) == (State.OPEN, 0)


@pytest.mark.parametrize(("status", "state"), [(1, State.PAID), (2, State.OPEN)])
def test_version_2_reports_a_refund_in_progress(status, state, v2, request_of, monkeypatch):
    request = request_of(PART)
    said = {"code": 0, "refund_no": "RF1", "out_refund_no": REFUND_NO, "money": "30.00", "status": status}
    monkeypatch.setattr(type(v2), "_call", lambda self, *arguments: said)
    assert v2.query_refund(request).state is state
    assert v2.refund(request).state is state
