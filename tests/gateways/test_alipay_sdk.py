"""alipay against independent code: the package python-alipay-sdk with OpenSSL, and data signed by Alipay's sandbox."""

import time
from urllib.parse import parse_qsl

import pytest
from alipay import AliPay, DCAliPay
from werkzeug import Response

from gateways import registry
from gateways.alipay import serial_numbers
from gateways.base import BadNotice, ChannelUnknown, Incoming, Payment, Payout, RefundRequest, State
from runtime.settings import Settings
from runtime.state import Runtime
from tests.upstreams.alipay import APP_ID, Alipay

pytestmark = pytest.mark.filterwarnings("ignore:X509.get_issuer:DeprecationWarning")  # in the SDK

EXPIRES_AT = 2_000_000_000
NOTIFY = "https://shop.example.com/addons/paychannel/notify/1"

# Published with the tests of the package yansongda/pay: a response and a payer's return, signed by Alipay's sandbox.
SANDBOX_KEY = (
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAl2PJhW04G1sClzEDwMw1nxCjlyDTubFhn89bcEzP7GB/mFWnfIRXydM2qvDALpJggjeCIc3"
    "Orm0AobZOltic1MGOBrFWcoOMyT7haV3X05jPa0qy6bMg5YJZy7/5mjTQL/3jPJM+TA3YTNV8wPUsJgWINENAGFIakS4HTj3oGIuPvbMgL1z7Yd66TI"
    "YzfA4FRwa08XXaZLC/u+EJ8tUedhQhPjwWQBL0H+bhoqWZSIW3/xdMZrMf8RF9uM22Y3mE1DAnxseXrxjW2Kg0q/47mOjXGBcrQUOeaAB+0SamdFu6L"
    "P9ylQOESg0bpFhgqhUWIT/QYJ1I8PQrVYy9QZkAIwIDAQAB"
)
SANDBOX_ANSWER = (
    '{"alipay_trade_query_response":{"code":"10000","msg":"Success","buyer_logon_id":"ifv***@sandbox.com",'
    '"buyer_pay_amount":"0.00","buyer_user_id":"2088722003899169","buyer_user_type":"PRIVATE","invoice_amount":"0.00",'
    '"out_trade_no":"1703141270","point_amount":"0.00","receipt_amount":"0.00","send_pay_date":"2023-12-21 14:48:36",'
    '"total_amount":"0.01","trade_no":"2023122122001499160501586202","trade_status":"TRADE_SUCCESS"},'
    '"sign":"WBz5iEFVhP99SRqHAaUi6KD+6u4xUxOgLAJ989gxByd79pa9bhHfQ0EFO/78YU3TuoqNvUBbHZ7LPxP+OPQFTUtHa5JF2pz+EfgBkYOnBPW+Y'
    "Gz6arGqmAPBy9I+ltJxKNKq4G7ehPG0gbtQQcVqqIR9vDylitmlGIIe+YKfNbEi+vPNkQ3HXLsu3lXKGqB21XSYb/NdxneALsVOowVqgU2SSR/+5TcUzC"
    "uW5VA/LWKnpXZEDdE1HTgUFqvqrYtLoVfmXO41oKZdrR3t4/rbV64YlWR4vPSuELuC4gLdXdd63PaOmdIo/5TxI26379ZC8IfhcBiS/KO3PYm1dbgpIg"
    '=="}'
)
SANDBOX_FORM = (
    b"charset=utf-8&out_trade_no=1703141270&method=alipay.trade.page.pay.return&total_amount=0.01&sign=RJzbs5y7I41BO9UPnCdq"
    b"7oWgoInyjELi9Qj6D%2BLAZXVpHTedemAHfVUowuF9iuznGZLxU6Xv1L3ZkzTGxmIfvzontCZNb0%2BRROqiT41lX91VYd6j4ZcOn8zsvlCdQSVHmYNJi"
    b"%2Bw%2F40uHxo1ufRwHxBNtQKsoJCYk5VtZ92pQFvVyE5wPPT6Nolww5WlCAPxcWNby8VAiWT%2Bd2yxmFm8vZ6yj5rsLHTR72O76TkEXzOEex6e36Zf8"
    b"M9YXww7RQbflMfk9eURPHW%2FoQq4hZr%2FlX7%2FO1nT5vdT4UVFai4V18Xm1KspBun8outJxqlWMIKVxGsYhIH1E79ORt4wQA7PG1g%3D%3D&trade_"
    b"no=2023122122001499160501586202&auth_app_id=9021000122682882&version=1.0&app_id=9021000122682882&sign_type=RSA2&seller"
    b"_id=2088721003899159&timestamp=2023-12-21+14%3A48%3A44"
)


@pytest.fixture
def alipay(web_server):
    Runtime(Settings(private_channels=True)).enter()
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
    return registry.build("alipay", alipay.config(mode))


def payment(number="1", amount=10_000):
    return Payment(number, amount, "alipay", f"Order {number}", NOTIFY, "https://shop.example.com/pay", EXPIRES_AT)


def refund(alipay):
    """A refund of 3 of the 100 yuan that the payer of the order "1" paid."""
    return RefundRequest("R1", "1", alipay.trades["1"]["trade_no"], 300, 10_000, "商品已售完", NOTIFY)


PAYOUT = Payout("1", "1", 10_000, "alipay", {"card_number": "payee@example.com", "real_name": "张三"})


# --- the loopback is as the SDK expects Alipay


def test_the_sdk_creates_queries_and_closes_at_the_loopback(in_china, alipay, sdk):
    until = {"time_expire": "2033-05-18 11:33:20"}
    made = sdk.api_alipay_trade_precreate(subject="张三的订单", out_trade_no="1", total_amount="100.00", **until)
    assert made["qr_code"] == alipay.codes["1"]["qr_code"]
    assert sdk.api_alipay_trade_query(out_trade_no="1")["sub_code"] == "ACQ.TRADE_NOT_EXIST"
    alipay.scan("1")
    assert sdk.api_alipay_trade_query(out_trade_no="1")["trade_status"] == "WAIT_BUYER_PAY"
    assert sdk.api_alipay_trade_close(out_trade_no="1")["code"] == "10000"


def test_the_sdk_refunds_and_queries_at_the_loopback_and_the_driver_reads_the_same(in_china, alipay, sdk):
    ours = driver(alipay)
    ours.open_payment(payment())
    alipay.pay("1")
    asked = {"trade_no": alipay.trades["1"]["trade_no"], "out_request_no": "R1"}
    made = sdk.api_alipay_trade_refund("3.00", refund_reason="商品已售完", **asked)
    assert (made["code"], made["fund_change"], made["refund_fee"]) == ("10000", "Y", "3.00")
    assert ours.refund(refund(alipay)).state is State.OPEN  # the same number again
    found = sdk.api_alipay_trade_fastpay_refund_query(**asked)
    assert (found["refund_status"], found["refund_amount"]) == ("REFUND_SUCCESS", "3.00")
    assert (ours.query_refund(refund(alipay)).state, len(alipay.refunds)) == (State.PAID, 1)
    assert "refund_status" not in sdk.api_alipay_trade_fastpay_refund_query("R2", trade_no=asked["trade_no"])


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


# --- the driver agrees with the SDK


@pytest.mark.parametrize("mode", ["key", "certificate"])
def test_the_sdk_computes_the_same_signature_for_each_of_the_drivers_requests(mode, alipay, sdk):
    ours = driver(alipay, mode)
    ours.open_payment(payment())
    alipay.scan("1")
    ours.query(payment())
    ours.close(payment())
    ours.open_payment(payment())
    alipay.pay("1")
    ours.refund(refund(alipay))
    ours.query_refund(refund(alipay))
    if mode == "certificate":
        ours.pay_out(PAYOUT)
        ours.query_payout(PAYOUT)
    for request in alipay.calls:
        fields = {**request.args.to_dict(), **dict(parse_qsl(request.get_data().decode()))}
        signature = fields.pop("sign")
        assert dict(parse_qsl(sdk.sign_data(fields)))["sign"] == signature
    assert len(alipay.calls) == {"key": 6, "certificate": 8}[mode]


def test_the_driver_accepts_responses_and_notices_that_the_sdk_signs(alipay, monkeypatch):
    signing = AliPay(APP_ID, None, alipay.private, alipay.app_public)
    monkeypatch.setattr(alipay, "sign", signing._sign)
    ours = driver(alipay)
    ours.open_payment(payment())
    alipay.pay("1")
    assert ours.query(payment()).state is State.PAID
    assert ours.refund(refund(alipay)).state is ours.query_refund(refund(alipay)).state is State.PAID
    form = signing.sign_data(alipay.notice_fields("1")) + "&sign_type=RSA2"
    notice = ours.read_notice(Incoming("POST", b"", {}, form.encode()))
    assert (notice.order_no, notice.report.state, notice.report.amount) == ("1", State.PAID, 10_000)


def test_certificates_have_the_same_numbers_as_in_the_sdk(alipay, sdk_with_certificates):
    loaded = registry.DRIVERS["alipay"].config_schema().load(alipay.config("certificate"))
    assert serial_numbers(loaded["app_certificate"]) == sdk_with_certificates.app_cert_sn
    assert serial_numbers(loaded["alipay_root_certificates"]) == sdk_with_certificates.alipay_root_cert_sn
    assert sdk_with_certificates.alipay_root_cert_sn.count("_") == 1  # of four roots, two are signed with RSA


# --- data signed by Alipay's sandbox


@pytest.mark.parametrize("amount", ["0.01", "0.10"])
def test_a_response_that_alipays_sandbox_signed_is_accepted_unchanged(amount, alipay, monkeypatch):
    ours = registry.build("alipay", alipay.config("key", alipay_public_key=SANDBOX_KEY))
    monkeypatch.setattr(alipay, "answer", lambda *_: Response(SANDBOX_ANSWER.replace('"0.01"', f'"{amount}"')))
    if amount != "0.01":
        with pytest.raises(ChannelUnknown, match="signature of the response is invalid"):
            ours.query(payment("1703141270", 1))
    else:
        report = ours.query(payment("1703141270", 1))
        assert (report.state, report.amount, report.reference) == (State.PAID, 1, "2023122122001499160501586202")


def test_the_signature_of_a_form_that_alipays_sandbox_signed_is_valid(alipay):
    """It is a payer's return, which is signed as notices are but does not contain the trade's state."""
    whose = {"app_id": "9021000122682882", "seller_id": "2088721003899159"}
    ours = registry.build("alipay", alipay.config("key", alipay_public_key=SANDBOX_KEY, **whose))
    with pytest.raises(BadNotice, match="the fields are invalid"):
        ours.read_notice(Incoming("POST", b"", {}, SANDBOX_FORM))
    with pytest.raises(BadNotice, match="bad signature"):
        ours.read_notice(Incoming("POST", b"", {}, SANDBOX_FORM.replace(b"amount=0.01", b"amount=0.10")))
