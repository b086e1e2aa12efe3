"""The alipay driver (Alipay OpenAPI): deposits, and transfers with certificates (docs/alipay.md).

A deposit is a QR code, or Alipay's own page for phones ("wap") or computers ("page").
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding
from marshmallow import ValidationError, fields, validate, validates_schema

from gateways.base import (
    BadNotice,
    ChannelRefused,
    ChannelUnknown,
    Driver,
    Finding,
    Incoming,
    Notice,
    Opened,
    Payment,
    Payout,
    Problem,
    RefundRequest,
    Report,
    State,
)
from gateways.bills import Flow, details
from gateways.config import (
    Address,
    Certificates,
    PrivateKey,
    PublicKey,
    WithBills,
    certificates,
    number,
    private_key,
    public_key,
    texts,
)
from gateways.signatures import is_signature, sign
from gateways.statement import DEPOSIT, Layout
from gateways.upstream import Upstream, printable, read_form, web_address
from runtime import money
from runtime.clock import in_china
from runtime.texts import N_

GATEWAY = "https://openapi.alipay.com/gateway.do"
APP = "alipays://platformapi/startapp?saId=10000007&qrcode="  # opens the app as if its scanner had read the code
# Alipay's own pages: their methods, and the product codes that these require.
PAGES = {
    "wap": ("alipay.trade.wap.pay", "QUICK_WAP_WAY"),
    "page": ("alipay.trade.page.pay", "FAST_INSTANT_TRADE_PAY"),
}
ORDER_CODE = "QR_CODE_OFFLINE"  # 订单码支付; without a product code a QR code belongs to 当面付
DONE, FAILED = "10000", "40004"
TRADES = {
    "WAIT_BUYER_PAY": State.OPEN,
    "TRADE_SUCCESS": State.PAID,
    "TRADE_FINISHED": State.PAID,  # paid, too long ago for a refund
    "TRADE_CLOSED": State.FAILED,
}
TRANSFERS = {
    "SUCCESS": State.PAID,
    "INIT": State.OPEN,
    "WAIT_PAY": State.OPEN,
    "DEALING": State.OPEN,
    "FAIL": State.FAILED,
    "CLOSED": State.FAILED,
    "REFUND": State.FAILED,  # paid and returned
}
TRANSFER = {"product_code": "TRANS_ACCOUNT_NO_PWD", "biz_scene": "DIRECT_TRANSFER"}
USER_ID = re.compile(r"2088[0-9]{12}")
# Codes that refuse a new QR code; the others mean that Alipay is busy, or don't concern the order.
REFUSALS = frozenset({"40001", "40002", "40003", "40004", "40006"})
# Exceptions: an internal failure, or the order exists already.
NO_REFUSALS = re.compile(r"(isp|aop)\..*|.*SYSTEM_ERROR|ACQ\.(TRADE_HAS_SUCCESS|TRADE_HAS_CLOSE|CONTEXT_INCONSISTENT)")
NO_TRADE, NO_TRANSFER = "ACQ.TRADE_NOT_EXIST", "ORDER_NOT_EXIST"
# A trade in these states can't be closed; the next status check reports whether it was paid.
NOT_WAITING = frozenset(
    f"ACQ.{name}"
    for name in (
        "TRADE_STATUS_ERROR",
        "REASON_TRADE_STATUS_INVALID",
        "REASON_ILLEGAL_STATUS",
        "TRADE_HAS_SUCCESS",
        "TRADE_HAS_FINISHED",
        "TRADE_HAS_CLOSE",
    )
)
# Permanent refusals: this payee can't receive this amount, and neither a retry nor an operator can change that.
UNPAYABLE = frozenset(
    {
        "PAYEE_NOT_EXIST",
        "PAYEE_ACCOUNT_NOT_EXSIT",
        "PAYEE_ACCOUNT_STATUS_ERROR",
        "PAYEE_USERINFO_STATUS_ERROR",
        "PAYEE_USER_INFO_ERROR",
        "PAYEE_ACC_OCUPIED",
        "PERMIT_NON_BANK_LIMIT_PAYEE",
        "PERM_AML_NOT_REALNAME_REV",
        "NO_ACCOUNT_RECEIVE_PERMISSION",
        "PAYER_PAYEE_CANNOT_SAME",
        "EXCEED_LIMIT_SM_MIN_AMOUNT",
    }
)
REFUNDED = "REFUND_SUCCESS"
# Codes that refuse a refund permanently. With all others the same request may succeed later: after a recharge
# (SELLER_BALANCE_NOT_ENOUGH), at another time, or once an operator corrects the keys or the permissions.
# DISCORDANT_REPEAT_REQUEST is not one of them: Alipay has a refund of another amount under the number.
UNREFUNDABLE = frozenset(
    f"ACQ.{name}"
    for name in (
        "INVALID_PARAMETER",
        "NOT_ALLOW_PARTIAL_REFUND",
        "ONLINE_TRADE_VOUCHER_NOT_ALLOW_REFUND",
        "REASON_TRADE_REFUND_FEE_ERR",
        "REASON_TRADE_STATUS_INVALID",
        "REFUND_AMT_NOT_EQUAL_TOTAL",
        "REFUND_FEE_ERROR",
        "TRADE_HAS_CLOSE",
        "TRADE_HAS_FINISHED",
        "TRADE_NOT_ALLOW_REFUND",
        "TRADE_STATUS_ERROR",
    )
)
REASON_LENGTH = 256
NO_BILL = ("BILL_NOT_EXIST", "NO_BILL_DATA")  # some with the prefix isp.
BILL_HOSTS = ("alipay.com", "alipaydev.com")  # with their subdomains; the second is that of the sandbox
FLOW = Flow(time="发生时间", balance="账户余额(元)", received="收入金额(+元)", spent="支出金额(-元)")
CERTIFICATES = ("app_certificate", "alipay_certificate", "alipay_root_certificates")
RSA_SIGNED = "1.2.840.113549.1.1."
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_MARK = re.compile(r"[ \t\r\n]*([{:,}])[ \t\r\n]*")
_decoder = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


class Certificate(Certificates):
    """A certificate; files from the console may also contain its issuers' certificates after it."""

    def _pem(self, text: str) -> str:
        return super()._pem("".join(_CERTIFICATE.findall(text)[:1]))


class RootCertificates(Certificates):
    """Alipay's root certificates. Only those signed with RSA count; some of the others can't be parsed."""

    refusal = N_("The file does not contain Alipay's root certificates.")

    def _pem(self, text: str) -> str:
        roots: list[x509.Certificate] = []
        for block in _CERTIFICATE.findall(text):
            with suppress(ValueError):
                roots += certificates(block)
        signed = [each for each in roots if each.signature_algorithm_oid.dotted_string.startswith(RSA_SIGNED)]
        if not signed:
            raise ValueError
        return "".join(each.public_bytes(Encoding.PEM).decode() for each in signed)


class AlipayConfig(WithBills):
    """An application of Alipay's open platform, with Alipay's public key or with three certificates.

    `seller_id`: the merchant's PID; notices for other sellers are rejected.
    """

    app_id = fields.String(
        required=True,
        validate=number(8, 32),
        metadata=texts(N_("Application"), N_("APPID: 控制台 → 应用 → your application.")),
    )
    seller_id = fields.String(
        required=True,
        validate=validate.Regexp(r"2088[0-9]{12}\Z", error=N_("Must be a PID: 16 digits that start with 2088.")),
        metadata=texts(N_("Merchant number"), N_("PID, 16 digits that start with 2088: 账户中心 → 商户信息.")),
    )
    private_key = PrivateKey(
        required=True,
        validate=validate.Length(min=1, error=N_("Must not be empty.")),
        metadata=texts(
            N_("Your private key"), N_("应用私钥, generated with Alipay's key tool. PEM or plain text."), secret=True
        ),
    )
    alipay_public_key = PublicKey(
        load_default="",
        metadata=texts(
            N_("Alipay's public key"), N_("Key mode: enter 支付宝公钥, not 应用公钥. Leave empty in certificate mode.")
        ),
    )
    app_certificate = Certificate(
        load_default="",
        metadata=texts(N_("Your application's certificate"), N_("Certificate mode: appCertPublicKey_APPID.crt.")),
    )
    alipay_certificate = Certificate(
        load_default="",
        metadata=texts(N_("Alipay's certificate"), N_("Certificate mode: alipayCertPublicKey_RSA2.crt.")),
    )
    alipay_root_certificates = RootCertificates(
        load_default="",
        metadata=texts(N_("Alipay's root certificates"), N_("Certificate mode: alipayRootCert.crt.")),
    )
    wap = fields.Boolean(
        load_default=False,
        metadata=texts(
            N_("Alipay's page on phones"),
            N_("Payers on phones continue to the Alipay app instead of scanning a QR code. Needs 手机网站支付."),
        ),
    )
    page = fields.Boolean(
        load_default=False,
        metadata=texts(
            N_("Alipay's page on computers"),
            N_("Payers on computers continue to Alipay's page, where they scan or sign in. Needs 电脑网站支付."),
        ),
    )
    order_code = fields.Boolean(
        load_default=False,
        metadata=texts(
            N_("QR codes by 订单码支付"),
            N_("For a contract on 订单码支付. Without this setting, QR codes need 当面付."),
            more=True,
        ),
    )
    base_url = Address(
        load_default=GATEWAY,
        metadata=texts(N_("Address"), N_("Change it only for Alipay's sandbox or your own relay."), more=True),
    )

    @validates_schema
    def _has_one_mode(self, data: dict[str, Any], **_: Any) -> None:
        given = [name for name in CERTIFICATES if data[name]]
        if data["alipay_public_key"]:
            wrong = {name: [N_("Not used in key mode. Leave this field or alipay_public_key empty.")] for name in given}
        elif given:
            wrong = {name: [N_("Required in certificate mode.")] for name in CERTIFICATES if name not in given}
        else:
            wrong = {"alipay_public_key": [N_("Enter this key or all three certificates.")]}
        if wrong:
            raise ValidationError(wrong)

    @validates_schema
    def _keys_fit(self, data: dict[str, Any], **_: Any) -> None:
        ours = private_key(data["private_key"]).public_key()
        keys = {name: _certified(data[name]) for name in CERTIFICATES[:2] if data[name]}
        if data["alipay_public_key"]:
            keys["alipay_public_key"] = public_key(data["alipay_public_key"])
        wrong = {}
        for name, key in keys.items():
            if key is None:
                wrong[name] = [N_("Must contain an RSA key.")]
            elif name == "app_certificate" and key != ours:
                wrong[name] = [N_("Does not match private_key.")]
            elif name != "app_certificate" and key == ours:
                wrong[name] = [N_("This is your application's key. Enter Alipay's public key.")]
        if wrong:
            raise ValidationError(wrong)


def _certified(pem: str) -> RSAPublicKey | None:
    """Return the RSA key of a certificate, or None if it has none."""
    try:
        key = certificates(pem)[0].public_key()
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, RSAPublicKey) else None


def serial_numbers(pem: str) -> str:
    """Return Alipay's ids of certificates: the MD5 of each one's issuer and number, joined by underscores."""
    named = [f"{each.issuer.rfc4514_string()}{each.serial_number}" for each in certificates(pem)]
    return "_".join(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest() for name in named)


def joined(fields: Mapping[str, str]) -> str:
    """Return the text to sign of a form: all fields sorted by name, including empty ones, not URL-encoded."""
    return "&".join(f"{name}={fields[name]}" for name in sorted(fields))


def members(text: str) -> dict[str, tuple[Any, str]]:
    """Return a JSON object's members: each value, and its exact text, which is what is signed.

    Raises:
        ValueError: it is not a JSON object.
    """
    found: dict[str, tuple[Any, str]] = {}
    mark, at = _mark(text, 0, "{")
    while mark != "}":
        name, at = _decoder.raw_decode(text, at)
        _, begin = _mark(text, at, ":")
        value, end = _decoder.raw_decode(text, begin)
        found[str(name)] = value, text[begin:end]
        mark, at = _mark(text, end, ",}")
    return found


def _mark(text: str, at: int, possible: str) -> tuple[str, int]:
    found = _MARK.match(text, at)
    if not found or found[1] not in possible:
        raise ValueError(f"no {possible} at {at}")
    return found[1], found.end()


def _time(timestamp: float) -> str:
    return f"{in_china(timestamp):%Y-%m-%d %H:%M:%S}"


def _why(answer: Mapping[str, Any]) -> str:
    """Return the text and the codes of an error."""
    codes = " ".join(str(answer[name]) for name in ("code", "sub_code") if answer.get(name))
    message = str(answer.get("sub_msg") or answer.get("msg") or "")
    # The response to an invalid signature repeats the signed text, which includes the payee.
    return f"{printable(message.partition('biz_content')[0])} ({printable(codes)})"


def _failure(answer: Mapping[str, Any]) -> str:
    """Return the code with which Alipay definitely refused the request; otherwise ""."""
    return str(answer.get("sub_code")) if answer["code"] == FAILED else ""


def _trade(fields: Mapping[str, Any]) -> Report:
    """Read the report on a deposit in a response or notice. Raises ValueError if it is invalid."""
    state, reference = TRADES.get(str(fields.get("trade_status"))), fields.get("trade_no")
    if state is None or not isinstance(reference, str) or not reference:
        raise ValueError(N_("unknown trade status %(status)s") % {"status": printable(fields.get("trade_status"))})
    amount = money.fen(str(fields.get("total_amount")))
    returned = money.fen(str(fields.get("refund_fee") or "0"))  # in notices after a refund
    if state is State.PAID and 0 < returned < amount:
        return Report(state, amount - returned, printable(reference), returned=returned)
    closed = N_("closed at Alipay: it was not paid in time, or all of it was refunded")
    return Report(state, amount, printable(reference), detail=closed if state is State.FAILED else "")


class AlipayDriver(Driver):
    """One application. Requests and responses are signed; errors may be unsigned, and then prove nothing."""

    name = "alipay"
    title = N_("Alipay (OpenAPI)")
    about = N_(
        "Deposits directly into your Alipay merchant account, by QR code or on Alipay's page. "
        "Payouts need certificate mode."
    )
    config_schema = AlipayConfig
    methods = ("alipay",)
    products = {"mobile": "wap", "alipay": "wap", "pc": "page"}
    account_fields = ("base_url", "app_id", "seller_id")
    closes_for_good = True
    longest_expiry = 2 * 3_600  # its codes
    refunds = True
    refund_days = 365  # the contract may allow less: Alipay then refuses
    statement = Layout(
        number=("商户订单号",),
        reference=("支付宝交易号",),
        amount=("订单金额（元）", "商家实收（元）"),
        settled=("商家实收（元）",),
        refund_number=("退款批次号/请求号", "退款请求号", "退款批次号"),
        fee=("服务费（元）",),
        fee_sign="-",
        status=("业务类型",),
        time=("完成时间",),
        text=("商品名称", "备注"),
        paid=frozenset({"交易"}),
        failed=frozenset(),
        refunded=frozenset({"退款"}),
        types=(DEPOSIT,),  # payouts are in another statement
    )

    def __init__(self, config: Mapping[str, Any]):
        super().__init__(config)
        address = urlsplit(config["base_url"])
        self._upstream = Upstream(f"{address.scheme}://{address.netloc}", config["proxy"])
        self._path = address.path
        self._private_key = private_key(config["private_key"])
        pem = config["alipay_public_key"]
        self._alipay_key = public_key(pem) if pem else _certified(config["alipay_certificate"])
        self._serials, self._alipay_serial = {}, ""
        if config["app_certificate"]:
            self._serials = {
                "app_cert_sn": serial_numbers(config["app_certificate"]),
                "alipay_root_cert_sn": serial_numbers(config["alipay_root_certificates"]),
            }
            self._alipay_serial = serial_numbers(config["alipay_certificate"])

    @property
    def payout_methods(self) -> tuple[str, ...]:  # type: ignore[override]
        """The payout methods: Alipay pays out only for applications with certificates."""
        return self.methods if self._serials else ()

    def _genuine(self, signed: bytes, signature: object) -> bool:
        return self._alipay_key is not None and is_signature(self._alipay_key, signed, signature)

    def _request(
        self, method: str, content: Mapping[str, Any], **addresses: str
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Return the query and the form of a signed request."""
        common = {
            "app_id": self.config["app_id"],
            "method": method,
            "format": "JSON",
            "charset": "utf-8",
            "sign_type": "RSA2",
            "timestamp": _time(time.time()),
            "version": "1.0",
            **addresses,
            **self._serials,
        }
        # Escaped ASCII, which no charset can change. It is sent in the body, because addresses are written to logs.
        form = {"biz_content": json.dumps(content, separators=(",", ":"))}
        return common | {"sign": sign(self._private_key, joined(common | form).encode())}, form

    def _call(
        self, method: str, content: Mapping[str, Any], unsigned_errors: bool = False, **addresses: str
    ) -> dict[str, Any]:
        """Return Alipay's response after verifying its signature; with `unsigned_errors` also an unsigned error."""
        query, form = self._request(method, content, **addresses)
        reply = self._upstream.call("POST", self._path, query=query, form=form)
        try:
            text, charset = reply.text()  # some errors are in GBK, whatever charset was requested
            answer = members(text)
        except (ValueError, RecursionError):
            raise reply.not_the_api(N_("no JSON object")) from None
        name = f"{method.replace('.', '_')}_response"
        result, signed = answer.get(name) or answer.get("error_response") or (None, "")
        if not isinstance(result, dict) or not isinstance(result.get("code"), str):
            raise reply.not_the_api(N_("no code in the response"))
        serial, _ = answer.get("alipay_cert_sn", ("", ""))
        if self._alipay_serial and serial and serial != self._alipay_serial:
            raise ChannelUnknown(
                N_("Alipay now uses another certificate, %(serial)s: download it") % {"serial": printable(serial)}
            )
        if not self._genuine(signed.encode(charset), answer.get("sign", ("", ""))[0]):
            if result["code"] == DONE:
                raise ChannelUnknown(N_("the signature of the response is invalid"), problem=Problem.NOT_AUTHENTIC)
            if not unsigned_errors:
                why = _why(result)
                raise ChannelUnknown(N_("unsigned error: %(why)s") % {"why": why}, problem=Problem.REJECTED, why=why)
        return result

    @staticmethod
    def _done(answer: Mapping[str, Any], name: str, our_number: str) -> Mapping[str, Any]:
        """Return a successful response about the order with our number. Raises ChannelUnknown."""
        if answer["code"] != DONE:
            raise ChannelUnknown(_why(answer), problem=Problem.REJECTED, why=_why(answer))
        if answer.get(name) != our_number:
            raise ChannelUnknown(N_("the response is about another order"))
        return answer

    def signs_again(self, browser: str) -> bool:
        return self.way(browser) in PAGES

    def open_payment(self, payment: Payment) -> Opened:
        way = self.way(payment.payer.browser) if payment.payer else ""
        content = {
            "out_trade_no": payment.order_no,
            "total_amount": money.hundredths(payment.amount),
            "subject": payment.subject,
            "time_expire": _time(payment.expires_at),
        }
        if way in PAGES:
            # A signed form that opens Alipay's own page. Only the browser that sends it calls Alipay.
            method, product = PAGES[way]
            content["product_code"] = product
            if way == "wap":
                content["quit_url"] = payment.pay_url
            addresses = {"notify_url": payment.notify_url, "return_url": payment.return_url}
            query, form = self._request(method, content, **addresses)
            return Opened(redirect=f"{self.config['base_url']}?{urlencode(query)}", fields=form)
        if self.config["order_code"]:
            content["product_code"] = ORDER_CODE
        # A forged refusal is harmless here: no payer has seen a code yet.
        answer = self._call("alipay.trade.precreate", content, unsigned_errors=True, notify_url=payment.notify_url)
        if answer["code"] in REFUSALS and not NO_REFUSALS.fullmatch(str(answer.get("sub_code"))):
            raise ChannelRefused(_why(answer))
        code = web_address(str(self._done(answer, "out_trade_no", payment.order_no).get("qr_code")))
        return Opened(qr=code, scheme=APP + quote(code, safe=""))

    def query(self, payment: Payment) -> Report:
        answer = self._call("alipay.trade.query", {"out_trade_no": payment.order_no})
        if _failure(answer) == NO_TRADE:
            return Report(State.ABSENT)  # a trade is created when the payer scans the code
        try:
            return _trade(self._done(answer, "out_trade_no", payment.order_no))
        except ValueError as error:
            raise ChannelUnknown(printable(error)) from None

    def clock(self) -> list[Finding]:
        return [self._upstream.clock()]

    def check(self, payments: Sequence[Payment]) -> list[Finding]:
        """Check the keys and the clock."""
        return [*super().check(payments), *self.clock()]

    def close(self, payment: Payment) -> bool:
        answer = self._call("alipay.trade.close", {"out_trade_no": payment.order_no})
        if _failure(answer) == NO_TRADE:
            return False  # the code was not scanned; it can't be closed, but expires at its time_expire
        if _failure(answer) in NOT_WAITING:
            raise ChannelRefused(_why(answer))
        self._done(answer, "out_trade_no", payment.order_no)
        return True

    def read_notice(self, incoming: Incoming) -> Notice:
        # The bytes are signed, and some notices are in GBK. The fields that count are ASCII in each charset.
        fields = read_form(incoming.body, "latin-1")
        kind, signature = fields.pop("sign_type", ""), fields.pop("sign", "")
        if kind != "RSA2" or not self._genuine(joined(fields).encode("latin-1"), signature):
            raise BadNotice(N_("bad signature"))
        for name, whose in (("app_id", "application"), ("seller_id", "merchant")):
            if fields.get(name) != self.config[name]:
                raise BadNotice(N_("it is for another %(whose)s") % {"whose": whose})
        try:
            report = _trade(fields)
        except ValueError:
            raise BadNotice(N_("the fields are invalid")) from None
        # After a refund Alipay repeats the notice of the payment with the refund's number, which may be one that was
        # made in Alipay's console. Its amount is the sum of all refunds, so only a status check proves this one.
        after_refund = fields.get("gmt_refund") or fields.get("refund_fee")
        refund_no = printable(fields.get("out_biz_no", "")) if after_refund else ""
        return Notice(fields.get("out_trade_no", ""), report, refund_no)

    def refund(self, request: RefundRequest) -> Report:
        content = {  # without undocumented fields: Alipay warns that these make it fail, or refund twice
            "trade_no": request.reference,
            "refund_amount": money.hundredths(request.amount),
            "out_request_no": request.refund_no,  # also for a whole refund: the same number is never refunded twice
            **({"refund_reason": request.reason[:REASON_LENGTH]} if request.reason else {}),
        }
        answer = self._call("alipay.trade.refund", content)
        if _failure(answer) in UNREFUNDABLE:
            # It may follow a request whose response was lost: then the refund exists, and this refuses a second one.
            found = self.query_refund(request)
            if found.state is State.ABSENT:
                raise ChannelRefused(_why(answer))
            return found
        done = self._done(answer, "trade_no", request.reference)
        if done.get("fund_change") != "Y":
            return Report(State.OPEN)  # a repeated number, or not decided yet
        try:
            so_far = money.fen(str(done["refund_fee"])) if done.get("refund_fee") else request.amount
        except ValueError as error:
            raise ChannelUnknown(printable(error), has_it=True) from None
        if so_far < request.amount:  # the sum of all refunds of the trade
            raise ChannelUnknown(N_("the response reports less than the refund's amount"), has_it=True)
        return Report(State.PAID, request.amount)

    def query_refund(self, request: RefundRequest) -> Report:
        """Check the status of a refund. Raises ChannelUnknown.

        If the payer's bank does not accept the money, Alipay moves it to the payer's balance: the payer has it.
        """
        content = {"trade_no": request.reference, "out_request_no": request.refund_no}
        answer = self._call("alipay.trade.fastpay.refund.query", content)
        # An unknown trade is an error too, not ABSENT: it was paid, so the response is of another account or wrong.
        if answer["code"] != DONE:
            raise ChannelUnknown(_why(answer), problem=Problem.REJECTED, why=_why(answer))
        status = answer.get("refund_status")
        for name, ours in content.items():
            if answer.get(name) != ours and (status or answer.get(name)):  # without a status it may lack the numbers
                raise ChannelUnknown(N_("the response is about another refund"))
        if not status:
            # Not received, failed, or in progress: Alipay does not report which. It is safe to take this as ABSENT,
            # because Alipay's remedy is the same request again, and it refunds a number once.
            return Report(State.ABSENT)
        if status != REFUNDED:
            raise ChannelUnknown(
                N_("the channel reports status %(status)s") % {"status": printable(status)}, has_it=True
            )
        try:
            amount = money.fen(str(answer.get("refund_amount")))
        except ValueError as error:
            raise ChannelUnknown(printable(error), has_it=True) from None
        if amount != request.amount:
            raise ChannelUnknown(N_("the channel has another amount under the refund's number"), has_it=True)
        return Report(State.PAID, amount)

    def fetch_statement(self, day: date) -> bytes | None:
        return self._bill("trade", day)

    def fetch_balance(self, day: date) -> int | None:
        flow = self._bill("signcustomer", day)
        return FLOW.closing_balance(flow) if flow is not None else None

    def _bill(self, kind: str, day: date) -> bytes | None:
        """Return the unpacked file of a bill, as `fetch_statement` does.

        The response that names the file is signed, the file itself is not: TLS and Alipay's host prove it.
        """
        answer = self._call(
            "alipay.data.dataservice.bill.downloadurl.query", {"bill_type": kind, "bill_date": str(day)}
        )
        if str(answer.get("sub_code")).rpartition(".")[2].upper() in NO_BILL:
            return None
        if answer["code"] != DONE:
            raise ChannelUnknown(_why(answer), problem=Problem.REJECTED, why=_why(answer))
        address = str(answer.get("bill_download_url")).strip()
        # Alipay's documents show http, and its hosts support https.
        secure = re.sub(rf"^http://([a-z0-9.-]+\.({'|'.join(map(re.escape, BILL_HOSTS))})/)", r"https://\1", address)
        return details(self._upstream.download(self._upstream.file_address(secure, BILL_HOSTS)))

    def pay_out(self, payout: Payout) -> Report:
        payee = str(payout.account.get("card_number", ""))
        content = {
            **TRANSFER,
            "out_biz_no": payout.order_no,
            "trans_amount": money.hundredths(payout.amount),
            "order_title": f"Order {payout.order_no}",
            "payee_info": {
                "identity": payee,
                "identity_type": "ALIPAY_USER_ID" if USER_ID.fullmatch(payee) else "ALIPAY_LOGON_ID",
                "name": str(payout.account.get("real_name", "")),
            },
        }
        answer = self._call("alipay.fund.trans.uni.transfer", content)
        if _failure(answer) in UNPAYABLE:
            raise ChannelRefused(_why(answer))
        return self._transfer(answer, payout)

    def query_payout(self, payout: Payout) -> Report:
        answer = self._call("alipay.fund.trans.common.query", {**TRANSFER, "out_biz_no": payout.order_no})
        if _failure(answer) == NO_TRANSFER:
            return Report(State.ABSENT)
        return self._transfer(answer, payout)

    def _transfer(self, answer: Mapping[str, Any], payout: Payout) -> Report:
        done = self._done(answer, "out_biz_no", payout.order_no)
        state = TRANSFERS.get(str(done.get("status")))
        if state is None:
            raise ChannelUnknown(
                N_("the channel reports status %(status)s") % {"status": printable(done.get("status"))}
            )
        try:  # only in responses to a status check of a sent payout
            amount = money.fen(str(done["trans_amount"])) if done.get("trans_amount") else payout.amount
        except ValueError as error:
            raise ChannelUnknown(printable(error)) from None
        why = f"{printable(done.get('fail_reason') or done['status'])} ({printable(done.get('error_code') or '')})"
        return Report(state, amount, printable(done.get("order_id") or ""), detail=why if state is State.FAILED else "")
