"""alipay: withdrawals in certificate mode, against the loopback Alipay, which is our own code."""

import logging

import pytest

from tests.upstreams.alipay import APP_ID

START = 1_000_000
PAYEE = "payee@example.com"


@pytest.fixture
def channel(add_channel, alipay):
    return add_channel("alipay", alipay.config("certificate"), "--auto-accept-max", "1000")


@pytest.fixture
def payee(flask):
    """`payee("2088...")`: the payout account on file."""

    def put(card_number):
        flask("account", "add", "demo", "--card-number", card_number, "--real-name", "张三")

    put(PAYEE)
    return put


@pytest.fixture
def sell(api, channel, payee):
    """`sell()` creates an auto-approved withdrawal of 100 yuan, which is sent next; returns its number."""
    return lambda: api.sell(channel=channel, paychannel_paymethod="alipay").data["order_no"]


def called_methods(alipay):
    return [request.args["method"].removeprefix("alipay.fund.trans.") for request in alipay.calls]


@pytest.fixture
def why(order_details):
    """`why(order_no)`: the text of its open exception."""
    return lambda order_no: [row["detail"] for row in order_details(order_no)["exceptions"] if not row["resolution"]]


def test_the_payee_is_named_by_number_or_by_login(alipay, sell, payee, later):
    for account, kind in (
        (PAYEE, "ALIPAY_LOGON_ID"),
        ("13800138000", "ALIPAY_LOGON_ID"),
        ("2088000000000009", "ALIPAY_USER_ID"),
        ("20880000000000091", "ALIPAY_LOGON_ID"),
    ):
        payee(account)
        order_no = sell()
        later(1)
        assert alipay.transfers[order_no]["payee"] == {"identity": account, "identity_type": kind, "name": "张三"}


def test_for_a_payee_who_can_not_be_paid_the_reserve_returns(api, alipay, sell, later, balances, order_details):
    for reason in ("PAYEE_NOT_EXIST", "PAYEE_USER_INFO_ERROR", "PERMIT_NON_BANK_LIMIT_PAYEE"):
        alipay.unpayable[PAYEE] = reason
        order_no = sell()
        later(1)
        assert (api.status(order_no), balances(), alipay.transfers) == ("cancelled", (START, 0), {})
        assert order_details(order_no)["history"][-1]["why"] == f"Rejected: 收款账号***有误 (40004 {reason})"


NO_ANSWERS = [
    ("20000", "isp.unknow-error", True),
    ("40004", "SYSTEM_ERROR", True),
    ("40004", "EXCEED_LIMIT_DM_AMOUNT", True),
    ("40004", "SECURITY_CHECK_FAILED", True),
    ("40004", "PAYEE_NOT_EXIST", False),
    ("20000", "PAYEE_NOT_EXIST", True),
    ("40002", "isv.invalid-signature", False),
    ("40006", "isv.insufficient-isv-permissions", False),
]


def test_a_temporary_failure_keeps_the_reserve_and_gives_the_reason(api, alipay, channel, payee, later, balances, why):
    orders = [api.sell(channel=channel, paychannel_paymethod="alipay").data["order_no"] for _ in NO_ANSWERS]
    for error in NO_ANSWERS:
        alipay.errs(*error)
    later(1)
    for order_no, error in zip(orders, NO_ANSWERS, strict=True):
        assert api.status(order_no) == "confirmed", error
        assert f"({error[0]} {error[1]})" in why(order_no)[0], error
    assert balances() == (START - 8 * 10_030, 8 * 10_030)
    later(301, times=3)
    assert ({api.status(order_no) for order_no in orders}, alipay.balance) == ({"completed"}, 99_200)


def test_a_payee_in_a_failure_or_unclear_response_is_not_stored(alipay, sell, later, order_details, why):
    """History cannot be changed, so an erasure could not remove it from there."""
    alipay.transfers_end = "DEALING"
    alipay.errs("20000", f"isp.{PAYEE}")
    order_no = sell()
    later(1)
    assert "isp.***" in why(order_no)[0]
    later(301, times=3)
    alipay.transfers[order_no] |= {"status": "FAIL", "error_code": "MISMATCH", "fail_reason": f"张三与{PAYEE}不符"}
    later(301)
    assert order_details(order_no)["history"][-1]["why"] == "***与***不符 (MISMATCH)"
    assert not [text for text in ("张三", PAYEE) if text in str(order_details(order_no))]


def test_an_unsigned_not_found_pays_nothing_again(alipay, sell, later):
    alipay.transfers_end = "DEALING"
    sell()
    later(1)
    alipay.errs("40004", "ORDER_NOT_EXIST", signed=False)
    later(10)
    assert called_methods(alipay) == ["uni.transfer", "common.query"]


def test_a_changed_certificate_of_alipay_is_reported_to_the_operator(api, alipay, sell, later, why):
    alipay.cert_serial = 4004
    order_no = sell()
    later(1)
    assert api.status(order_no) == "confirmed"
    assert why(order_no)[0].startswith("Alipay now uses another certificate")
    alipay.cert_serial = 3003
    later(10)
    assert (api.status(order_no), alipay.balance) == ("completed", 99_900)


def test_no_secret_and_no_payee_appears_in_a_log(caplog, api, alipay, add_channel, sell, later, why):
    caplog.set_level(logging.DEBUG)
    deposit = api.buy(channel=add_channel("alipay", alipay.config("key")), paychannel_paymethod="alipay")
    alipay.pay(deposit.data["order_no"])
    alipay.notice(deposit.data["order_no"]).to(api.send, deposit.data["order_no"])
    alipay.app_public = alipay.public  # so that each signature is invalid, and the response repeats the signed text
    order_no = sell()
    later(1, times=3)
    assert why(order_no)[0].endswith(f"app_id={APP_ID}& (40002 isv.invalid-signature)")
    secrets = alipay.app_private.splitlines()[1:-1]
    assert "uni.transfer" in caplog.text  # otherwise nothing was logged that could contain a secret
    assert not [text for text in (*secrets, PAYEE, "张三", "payee_info") if text in caplog.text]
