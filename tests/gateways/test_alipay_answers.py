"""alipay: deposits if Alipay or the network fails, or if a response is not trustworthy."""

import json

import pytest
from werkzeug import Response

from tests.upstreams.alipay import Alipay

START = 1_000_000
PAID, UNPAID = (START + 9_940, 0), (START, 0)


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


@pytest.mark.parametrize("fault", ["slow", "unheard", "lost", "half", "garbage", "broken"])
def test_a_deposit_without_a_response_is_opened_again_and_can_be_paid(
    fault, impatient, api, alipay, buy, later, exceptions, shown, balances
):
    alipay.fails(fault)
    answer = buy()
    order_no = answer.data["order_no"]
    assert (answer.code, api.status(order_no), exceptions()) == (1, "pending", {order_no: "unknown_outcome"})
    assert "alipays://" not in shown(order_no)
    later(1)
    assert "alipays://" in shown(order_no)
    alipay.pay(order_no)
    alipay.notice(order_no).to(api.send, order_no)
    assert (api.status(order_no), balances(), exceptions()) == ("completed", PAID, {})


REFUSALS = [
    ("40004", "ACQ.TOTAL_FEE_EXCEED", True),
    ("40004", "ACQ.ACCESS_FORBIDDEN", True),
    ("40001", "isv.missing-method", False),
    ("40002", "isv.invalid-app-id", False),
    ("40003", "isv.missing-signature-config", False),
    ("40006", "isv.insufficient-isv-permissions", False),
]


@pytest.mark.parametrize("error", REFUSALS)
def test_an_explicit_refusal_cancels_the_order_and_gives_the_reason(error, alipay, buy, api, order_details):
    alipay.errs(*error)
    assert buy().code == 50201
    [order] = api.listed().data["list"]
    assert order["status"] == "cancelled"
    assert order_details(order["order_no"])["history"][-1]["why"] == f"Rejected: 业务处理失败 ({error[0]} {error[1]})"


NO_ANSWERS = [
    ("20000", "isp.unknow-error", True),
    ("20000", "aop.unknow-error", False),
    ("20001", "aop.invalid-auth-token", False),
    ("40004", "isp.unknow-error", True),
    ("40004", "aop.unknow-error", True),
    ("40004", "ACQ.SYSTEM_ERROR", True),
    ("40004", "aop.ACQ.SYSTEM_ERROR", True),
    ("40004", "ACQ.TRADE_HAS_SUCCESS", True),
    ("40004", "ACQ.TRADE_HAS_CLOSE", True),
    ("40004", "ACQ.CONTEXT_INCONSISTENT", True),
    ("40005", "isv.app-call-limited", False),
    ("10003", "", True),
]


@pytest.mark.parametrize("error", NO_ANSWERS)
def test_an_unclear_response_leaves_the_order_open(error, alipay, buy, exceptions):
    alipay.errs(*error)
    order_no = buy().data["order_no"]
    assert exceptions() == {order_no: "unknown_outcome"}


WRONG_ANSWERS = {
    "nothing": "",
    "a list": "[]",
    "an empty object": "{}",
    "no signature": '{"alipay_trade_precreate_response": SIGNED}',
    "another's signature": '{"alipay_trade_precreate_response": SIGNED, "sign": "AAAA"}',
    "one signature for another text": '{"alipay_trade_precreate_response": {"code":"10000"}, "sign": "SIGN"}',
    "an answer twice": '{"alipay_trade_precreate_response": SIGNED,'
    ' "alipay_trade_precreate_response": {}, "sign": "SIGN"}',
    "an answer to something else": '{"alipay_trade_query_response": SIGNED, "sign": "SIGN"}',
    "no code": '{"alipay_trade_precreate_response": {}, "sign": "SIGN"}',
    "no colon": '{"alipay_trade_precreate_response" SIGNED, "sign": "SIGN"}',
    "half": '{"alipay_trade_precreate_response": SIGNED, "sign"',
    "names that are none": '{[1]: SIGNED, "sign": "SIGN"}',
    "far too deep": '{"alipay_trade_precreate_response": ' + "[" * 20_000,
}


@pytest.fixture
def answers(alipay, monkeypatch):
    """`answers(text)`: the response to each precreation, with a valid one for SIGNED and its signature for SIGN."""

    def put(text):
        def answer(_, request):
            number = json.loads(request.form["biz_content"])["out_trade_no"]
            signed = f'{{"code":"10000","out_trade_no":"{number}","qr_code":"https://qr.alipay.com/1"}}'
            return Response(text.replace("SIGNED", signed).replace("SIGN", alipay.sign(signed)))

        monkeypatch.setattr(alipay, "answer", answer)

    return put


@pytest.mark.parametrize("wrong", WRONG_ANSWERS)
def test_a_response_that_alipay_did_not_sign_is_ignored(wrong, answers, buy, order_details):
    answers(WRONG_ANSWERS[wrong])
    [exception] = order_details(buy().data["order_no"])["exceptions"]
    assert exception["kind"] == "unknown_outcome"
    assert not exception["detail"].startswith("the driver failed")  # the driver did not expect such a response


def test_the_same_response_with_its_signature_counts(answers, buy, exceptions, shown):
    answers('{"alipay_trade_precreate_response": SIGNED, "sign": "SIGN"}')
    order_no = buy().data["order_no"]
    assert "alipays://" in shown(order_no)
    assert exceptions() == {}


WRONG_TRADES = {
    "another order": {"out_trade_no": "1" * 24},
    "an unknown status": {"trade_status": "TRADE_EATEN"},
    "no number": {"trade_no": ""},
    "no amount": {"total_amount": "a lot"},
}


@pytest.mark.parametrize("wrong", WRONG_TRADES)
def test_a_signed_response_with_other_facts_credits_nothing(wrong, alipay, order_no, later, balances, exceptions):
    alipay.pay(order_no)
    alipay.trades[order_no] |= WRONG_TRADES[wrong]
    later(60)
    assert (balances(), exceptions()) == (UNPAID, {order_no: "unknown_outcome"})


def test_a_code_that_can_not_be_shown_is_not_a_response(alipay, buy, exceptions, monkeypatch):
    monkeypatch.setattr(alipay, "_yes", lambda **facts: {"code": "10000", **facts, "qr_code": "javascript:alert(1)"})
    order_no = buy().data["order_no"]
    assert exceptions() == {order_no: "unknown_outcome"}
