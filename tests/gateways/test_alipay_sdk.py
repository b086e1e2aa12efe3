"""alipay against an independent side: the package python-alipay-sdk, and OpenSSL's reading of certificates in it."""

import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qsl

import pytest
from alipay import AliPay, DCAliPay

import gateways
from gateways.alipay import serial_numbers
from gateways.base import Incoming, Payment, Payout, State
from tests.upstreams.alipay import APP_ID, Alipay

pytestmark = pytest.mark.filterwarnings("ignore:X509.get_issuer:DeprecationWarning")  # in the SDK

EXPIRES_AT = 2_000_000_000
NOTIFY = "https://shop.example.com/addons/paychannel/notify/1"


@pytest.fixture
def alipay(web_server):
    server = Alipay(web_server)
    server.written = "pretty"  # the SDK counts braces in texts, too
    return server


@pytest.fixture
def in_china(monkeypatch):
    """The SDK's requests are stamped in local time."""
    monkeypatch.setenv("TZ", "CST-8")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def sdk(alipay):
    """The SDK as a merchant uses it, in key mode."""
    client = AliPay(APP_ID, NOTIFY, alipay.app_private, alipay.public)
    client._gateway = alipay.gateway
    return client


@pytest.fixture
def sdk_with_certificates(alipay):
    files = alipay.certificates
    client = DCAliPay(
        APP_ID,
        alipay.app_private,
        files["app_certificate"],
        files["alipay_certificate"],
        files["alipay_root_certificates"],
    )
    client._gateway = alipay.gateway
    return client


def driver(alipay, mode="key"):
    return gateways.build("alipay", alipay.config(mode))


def payment(number="1", amount=10_000):
    return Payment(number, amount, "alipay", f"Order {number}", NOTIFY, "https://shop.example.com/pay", EXPIRES_AT)


PAYOUT = Payout("1", "1", 10_000, "alipay", {"card_number": "payee@example.com", "real_name": "张三"})


# --- the loopback is as the SDK expects Alipay to be


def test_the_sdk_creates_asks_and_closes_at_the_loopback(in_china, alipay, sdk):
    until = {"time_expire": "2033-05-18 11:33:20"}
    made = sdk.api_alipay_trade_precreate(subject="张三的订单", out_trade_no="1", total_amount="100.00", **until)
    assert made["qr_code"] == alipay.codes["1"]["qr_code"]
    assert sdk.api_alipay_trade_query(out_trade_no="1")["sub_code"] == "ACQ.TRADE_NOT_EXIST"
    alipay.scan("1")
    assert sdk.api_alipay_trade_query(out_trade_no="1")["trade_status"] == "WAIT_BUYER_PAY"
    assert sdk.api_alipay_trade_close(out_trade_no="1")["code"] == "10000"


def test_the_sdk_pays_out_by_certificates_at_the_loopback(in_china, alipay, sdk_with_certificates):
    to = {"identity": "payee@example.com", "identity_type": "ALIPAY_LOGON_ID", "name": "张三"}
    made = sdk_with_certificates.api_alipay_fund_trans_uni_transfer(out_biz_no="1", trans_amount="100.00", **to)
    about = {"out_biz_no": "1", "product_code": "TRANS_ACCOUNT_NO_PWD", "biz_scene": "DIRECT_TRANSFER"}
    found = sdk_with_certificates.server_api("alipay.fund.trans.common.query", about)
    assert [(said["status"], said["order_id"]) for said in (made, found)] == [("SUCCESS", "TR1")] * 2


def test_the_sdk_verifies_the_loopbacks_notice(alipay, sdk):
    driver(alipay).open_payment(payment())
    alipay.pay("1")
    fields = dict(parse_qsl(alipay.notice("1").body.decode(), keep_blank_values=True))
    signature = fields.pop("sign")
    assert sdk.verify({**fields}, signature) is True
    assert sdk.verify({**fields, "total_amount": "1000.00"}, signature) is False


# --- the driver does what the SDK does


@pytest.mark.parametrize("mode", ["key", "certificate"])
def test_the_sdk_makes_the_same_signature_for_each_of_the_drivers_requests(mode, alipay, sdk):
    ours = driver(alipay, mode)
    ours.open_payment(payment())
    alipay.scan("1")
    ours.query(payment())
    ours.close(payment())
    if mode == "certificate":
        ours.pay_out(PAYOUT)
        ours.query_payout(PAYOUT)
    for request in alipay.calls:
        fields = {**request.args.to_dict(), **dict(parse_qsl(request.get_data().decode()))}
        signature = fields.pop("sign")
        assert dict(parse_qsl(sdk.sign_data(fields)))["sign"] == signature
    assert len(alipay.calls) == {"key": 3, "certificate": 5}[mode]


def test_the_driver_believes_answers_and_notices_that_the_sdk_signs(alipay, monkeypatch):
    signing = AliPay(APP_ID, None, alipay.private, alipay.app_public)
    monkeypatch.setattr(alipay, "sign", signing._sign)
    ours = driver(alipay)
    ours.open_payment(payment())
    alipay.pay("1")
    assert ours.query(payment()).state is State.PAID
    form = signing.sign_data(alipay.notice_fields("1")) + "&sign_type=RSA2"
    notice = ours.read_notice(Incoming("POST", b"", {}, form.encode()))
    assert (notice.order_no, notice.report.state, notice.report.amount) == ("1", State.PAID, 10_000)


def test_certificates_are_called_by_the_same_numbers_as_in_the_sdk(alipay, sdk_with_certificates):
    loaded = gateways.DRIVERS["alipay"].config_schema().load(alipay.config("certificate"))
    assert serial_numbers(loaded["app_certificate"]) == sdk_with_certificates.app_cert_sn
    assert serial_numbers(loaded["alipay_root_certificates"]) == sdk_with_certificates.alipay_root_cert_sn
    assert sdk_with_certificates.alipay_root_cert_sn.count("_") == 1  # of four roots, two are signed with RSA


# --- several threads


def test_threads_that_share_a_driver_get_their_own_answers(alipay):
    ours = driver(alipay, "certificate")

    def walk(number):
        name, amount = f"{number}", 100 + number
        opened = ours.open_payment(payment(name, amount))
        alipay.pay(name)
        report = ours.query(payment(name, amount))
        sent = alipay.notice(name)
        notice = ours.read_notice(Incoming(sent.method, b"", sent.headers, sent.body))
        return opened.qr, report.amount, report.reference, notice.order_no, notice.report

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(walk, range(40)))
    for number, (qr, amount, reference, told, report) in enumerate(results):
        mine = alipay.trades[f"{number}"]
        assert (qr, amount, reference, told) == (
            alipay.codes[f"{number}"]["qr_code"],
            100 + number,
            mine["trade_no"],
            f"{number}",
        )
        assert (report.amount, report.reference) == (amount, reference)
