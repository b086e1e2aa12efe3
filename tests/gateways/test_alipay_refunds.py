"""alipay: refunds against the loopback, from request to notice. test_alipay_sdk.py compares them with an SDK."""

import json

import pytest

from gateways import registry
from gateways.base import BadNotice, ChannelRefused, ChannelUnknown, Incoming, Payment, RefundRequest, Report, State
from runtime.settings import Settings
from runtime.state import Runtime

NOTIFY = "https://shop.example.com/notify/1"
ORDER = "202605010000000000000000"
PAYMENT = Payment(ORDER, 10_000, "alipay", "订单", NOTIFY, "https://shop.example.com/pay", 2_000_000_000)
NUMBER = "202605020000000000000001"


@pytest.fixture(autouse=True)
def _local():
    Runtime(Settings(private_channels=True)).enter()


@pytest.fixture(params=["key", "certificate"])
def driver(request, alipay):
    """The driver in either mode, in which a refund is the same."""
    return registry.build("alipay", alipay.config(request.param))


@pytest.fixture
def request_of(driver, alipay):
    """`request_of(amount=300)`: a refund of a payment of 100 yuan."""
    driver.open_payment(PAYMENT)
    alipay.pay(ORDER)
    whole = {"refund_no": NUMBER, "order_no": ORDER, "amount": 300, "total": 10_000, "reason": "商品已售完"}
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


def methods(alipay):
    return [call.args["method"] for call in alipay.calls]


# --- the request


def test_the_request_names_the_trade_its_own_number_and_the_amount_in_yuan(driver, alipay, ours):
    driver.refund(ours)
    [call] = [each for each in alipay.calls if each.args["method"] == "alipay.trade.refund"]
    assert "notify_url" not in call.args
    assert json.loads(call.form["biz_content"]) == {
        "trade_no": ours.reference,
        "refund_amount": "3.00",
        "out_request_no": NUMBER,
        "refund_reason": "商品已售完",
    }


@pytest.mark.parametrize(("reason", "sent"), [("退" * 257, "退" * 256), ("", None)])
def test_a_reason_is_cut_and_an_empty_one_is_not_sent(reason, sent, driver, alipay, request_of):
    assert driver.refund(request_of(reason=reason)).state is State.PAID
    assert json.loads(alipay.calls[-1].form["biz_content"]).get("refund_reason") == sent


def test_a_whole_refund_has_its_number_too(driver, alipay, request_of):
    assert driver.refund(request_of(amount=10_000)) == Report(State.PAID, 10_000)
    assert list(alipay.refunds) == [NUMBER]
    assert driver.query_refund(request_of(amount=10_000)) == Report(State.PAID, 10_000)


# --- what proves it


def test_moved_money_proves_the_refund(driver, ours):
    assert driver.query_refund(ours) == Report(State.ABSENT)
    assert driver.refund(ours) == driver.query_refund(ours) == Report(State.PAID, 300)


def test_a_repeated_number_is_not_refunded_twice_and_only_the_status_check_proves_it(driver, alipay, ours):
    assert driver.repeats_refund(ours)
    driver.refund(ours)
    assert driver.refund(ours) == Report(State.OPEN)
    assert (len(alipay.refunds), driver.query_refund(ours)) == (1, Report(State.PAID, 300))


def test_a_request_whose_response_was_lost_is_found_and_repeated_once(driver, alipay, ours):
    alipay.fails("lost", "half", "garbage")
    for _ in range(3):
        with pytest.raises(ChannelUnknown):
            driver.refund(ours)
    assert driver.query_refund(ours).state is State.PAID
    assert driver.refund(ours).state is State.OPEN
    assert len(alipay.refunds) == 1


def test_an_accepted_refund_without_moved_money_is_open_then_absent_until_the_status_check_proves_it(
    driver, alipay, ours
):
    alipay.refunds_begin = ""
    assert driver.refund(ours) == Report(State.OPEN)
    assert driver.query_refund(ours) == Report(State.ABSENT)
    alipay.end_refund(NUMBER)
    assert driver.query_refund(ours) == Report(State.PAID, 300)


def test_a_missing_statement_about_moved_money_is_no_success(driver, alipay, ours, monkeypatch):
    monkeypatch.setattr(alipay, "_refund", lambda content: alipay._yes(trade_no=content["trade_no"], refund_fee="3.00"))
    assert driver.refund(ours) == Report(State.OPEN)


@pytest.mark.parametrize("status", ["REFUND_PROCESSING", "REFUND_FAIL", "GREAT"])
def test_an_unknown_status_is_checked_again(status, driver, alipay, ours):
    driver.refund(ours)
    alipay.end_refund(NUMBER, status)
    assert is_unknown(driver.query_refund, ours, f"reports status {status}").has_it


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"out_request_no": "1"}, "another refund"),
        ({"out_request_no": "1", "refund_status": ""}, "another refund"),
        ({"out_request_no": ""}, "another refund"),
        ({"trade_no": "2026050122001400000000000001"}, "another refund"),
        ({"refund_amount": "3.01"}, "another amount"),
        ({"refund_amount": "300"}, "another amount"),
        ({"refund_amount": ""}, "not an amount"),
        ({"refund_amount": "3.001"}, "fen"),
    ],
)
def test_a_response_about_something_else_proves_nothing(changed, why, driver, alipay, ours):
    driver.refund(ours)
    alipay.refunds[NUMBER]["changed"] = changed
    is_unknown(driver.query_refund, ours, why)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"trade_no": "2026050122001400000000000001"}, "another order"),
        ({"refund_fee": "2.99"}, "less than"),
        ({"refund_fee": "a lot"}, "not an amount"),
    ],
)
def test_a_success_about_something_else_proves_nothing(changed, why, driver, alipay, ours, monkeypatch):
    refund = alipay._refund
    monkeypatch.setattr(alipay, "_refund", lambda content: refund(content) | changed)
    is_unknown(driver.refund, ours, why)


def test_a_response_counts_with_its_signature_only(driver, alipay, ours, monkeypatch):
    monkeypatch.setattr(alipay, "sign", lambda text: "AAAA")
    for call in (driver.refund, driver.query_refund):
        is_unknown(call, ours, "signature of the response is invalid")


# --- refusals and other errors


@pytest.mark.parametrize(
    "reason",
    [
        "TRADE_HAS_FINISHED",
        "TRADE_HAS_CLOSE",
        "TRADE_STATUS_ERROR",
        "REASON_TRADE_REFUND_FEE_ERR",
        "REFUND_AMT_NOT_EQUAL_TOTAL",
        "TRADE_NOT_ALLOW_REFUND",
        "NOT_ALLOW_PARTIAL_REFUND",
        "INVALID_PARAMETER",
    ],
)
def test_a_clear_refusal_has_alipays_text(reason, driver, alipay, ours):
    alipay.errs("40004", f"ACQ.{reason}")
    with pytest.raises(ChannelRefused, match=rf"业务处理失败 \(40004 ACQ.{reason}\)"):
        driver.refund(ours)


def test_more_than_what_is_left_is_refused(driver, request_of):
    driver.refund(request_of(amount=9_900))
    with pytest.raises(ChannelRefused, match="REASON_TRADE_REFUND_FEE_ERR"):
        driver.refund(request_of(amount=101, refund_no="2"))
    driver.refund(request_of(amount=100, refund_no="3"))
    with pytest.raises(ChannelRefused, match="TRADE_HAS_CLOSE"):
        driver.refund(request_of(amount=1, refund_no="4"))


@pytest.mark.parametrize(
    ("code", "reason", "signed"),
    [
        ("40004", "ACQ.SELLER_BALANCE_NOT_ENOUGH", True),
        ("40004", "ACQ.SYSTEM_ERROR", True),
        ("40004", "aop.ACQ.SYSTEM_ERROR", True),
        ("40004", "isp.unknow-error", True),
        ("40004", "ACQ.TRADE_NOT_EXIST", True),
        ("40004", "ACQ.REASON_TRADE_BEEN_FREEZEN", True),
        ("40004", "ACQ.DISCORDANT_REPEAT_REQUEST", True),
        ("40004", "ACQ.SOMETHING_NEW", True),
        ("40004", "", True),
        ("20000", "isp.unknow-error", True),
        ("20000", "ACQ.TRADE_HAS_FINISHED", True),
        ("20001", "aop.invalid-auth-token", False),
        ("40002", "isv.invalid-signature", False),
        ("40005", "isv.app-call-limited", True),
        ("40006", "isv.insufficient-isv-permissions", True),
        ("10003", "", True),
        ("40004", "ACQ.TRADE_HAS_FINISHED", False),
    ],
)
def test_after_other_errors_the_same_request_succeeds_later(code, reason, signed, driver, alipay, ours):
    alipay.errs(code, reason, signed)
    is_unknown(driver.refund, ours, f"{code} ?{reason}")
    assert driver.refund(ours).state is State.PAID


def test_a_low_balance_is_no_refusal(driver, alipay, ours):
    alipay.balance = 2
    is_unknown(driver.refund, ours, "SELLER_BALANCE_NOT_ENOUGH")
    assert driver.query_refund(ours).state is State.ABSENT
    alipay.balance = 3
    assert driver.refund(ours).state is State.PAID


def test_a_refusal_of_a_refund_that_exists_is_none(driver, alipay, ours):
    """The first request succeeded and its response was lost: a refusal of the second one must not cancel it."""
    alipay.fails("lost")
    with pytest.raises(ChannelUnknown):
        driver.refund(ours)
    alipay.errs("40004", "ACQ.TRADE_HAS_CLOSE")
    assert driver.refund(ours) == Report(State.PAID, 300)
    assert methods(alipay)[-2:] == ["alipay.trade.refund", "alipay.trade.fastpay.refund.query"]
    # The check that follows a refusal may fail, too.
    alipay.errs("40004", "ACQ.TRADE_HAS_CLOSE")
    alipay.errs("20000", "isp.unknow-error")
    is_unknown(driver.refund, ours, "isp.unknow-error")


def test_another_amount_under_the_same_number_is_no_refusal(driver, ours, request_of):
    driver.refund(ours)
    is_unknown(driver.refund, request_of(amount=301), "DISCORDANT_REPEAT_REQUEST")
    is_unknown(driver.query_refund, request_of(amount=301), "another amount")


@pytest.mark.parametrize(
    ("code", "reason", "signed"),
    [
        ("40004", "ACQ.TRADE_NOT_EXIST", True),  # the trade was paid, so this says nothing about its refund
        ("40004", "ACQ.SYSTEM_ERROR", True),
        ("20000", "isp.unknow-error", True),
        ("40004", "ACQ.TRADE_NOT_EXIST", False),
    ],
)
def test_a_status_check_with_an_error_proves_nothing(code, reason, signed, driver, alipay, ours):
    driver.refund(ours)
    alipay.errs(code, reason, signed)
    is_unknown(driver.query_refund, ours, reason)


# --- notices


def test_the_notice_after_a_part_was_refunded_names_the_refund_and_does_not_prove_it(driver, alipay, ours):
    driver.refund(ours)
    notice = read(driver, alipay.refund_notice(ORDER, NUMBER))
    assert (notice.order_no, notice.refund_no, notice.refund) == (ORDER, NUMBER, None)
    assert (notice.report.state, notice.report.amount, notice.report.returned) == (State.PAID, 9_700, 300)


def test_the_notice_after_all_was_refunded_is_a_closed_trade(driver, alipay, request_of):
    driver.refund(request_of(amount=10_000))
    notice = read(driver, alipay.refund_notice(ORDER, NUMBER))
    assert (notice.order_no, notice.refund_no, notice.refund) == (ORDER, NUMBER, None)
    assert notice.report.state is State.FAILED


def test_a_refund_in_the_console_is_reported_under_its_own_number(driver, alipay, ours):
    driver.refund(ours)
    alipay.refund_in_console(ORDER, "2.00", "RF20260501")
    notice = read(driver, alipay.refund_notice(ORDER, "RF20260501"))
    assert (notice.refund_no, notice.refund, notice.report.returned) == ("RF20260501", None, 500)


def test_a_notice_of_a_payment_names_no_refund(driver, alipay, ours):
    assert read(driver, alipay.notice(ORDER)).refund_no == ""
    assert read(driver, alipay.notice(ORDER, out_biz_no="B1")).refund_no == ""
    assert read(driver, alipay.notice(ORDER, gmt_refund="2026-05-01 12:05:00.123", refund_fee="3.00")).refund_no == ""


def test_a_tampered_notice_is_rejected(driver, alipay, ours):
    driver.refund(ours)
    sent = alipay.refund_notice(ORDER, NUMBER)
    for old, new in ((b"out_biz_no=2026", b"out_biz_no=2027"), (b"refund_fee=3.00", b"refund_fee=30.00")):
        assert old in sent.body
        with pytest.raises(BadNotice, match="bad signature"):
            driver.read_notice(Incoming("POST", b"", sent.headers, sent.body.replace(old, new)))
    with pytest.raises(BadNotice, match="another merchant"):
        read(driver, alipay.refund_notice(ORDER, NUMBER, seller_id="2088000000000002"))
    with pytest.raises(BadNotice, match="fields are invalid"):
        read(driver, alipay.refund_notice(ORDER, NUMBER, refund_fee="a lot"))
