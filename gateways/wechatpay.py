"""The wechatpay driver: WeChat Pay's API v3, without payouts (docs/wechatpay.md).

A deposit is a QR code ("native"), a payment inside WeChat ("jsapi"), or a link for a phone's browser ("h5").
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate, validates_schema

from gateways.base import (
    Acknowledgement,
    BadNotice,
    ChannelRefused,
    ChannelUnknown,
    Driver,
    Finding,
    Incoming,
    Notice,
    NumberTaken,
    Opened,
    Payer,
    Payment,
    Problem,
    RefundRequest,
    Report,
    State,
    StatementNotReady,
)
from gateways.bills import DAMAGED, Flow, gunzipped
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
from gateways.statement import Layout
from gateways.upstream import Reply, Upstream, printable, web_address
from runtime.clock import in_china
from runtime.texts import N_

SCHEME = "WECHATPAY2-SHA256-RSA2048"
CLOCKS_DIFFER = 300  # seconds
TRANSACTIONS = "v3/pay/transactions"
STATES = {
    "SUCCESS": State.PAID,
    "REFUND": State.RETURNED,
    "NOTPAY": State.OPEN,
    "USERPAYING": State.OPEN,
    "PAYERROR": State.OPEN,  # the payer may try again
    "ACCEPT": State.OPEN,
    "CLOSED": State.FAILED,
    "REVOKED": State.FAILED,
}
# Error codes of a new payment that leave its outcome open: they follow the second of two calls whose first had no
# response, or ask to try again later. All other codes are refusals. That includes SIGN_ERROR: nothing was created, and
# every deposit fails until the operator has corrected the keys or the clock.
MAYBE_OPEN = frozenset(
    {"ORDERPAID", "ORDER_PAID", "SYSTEM_ERROR", "SYSTEMERROR", "BANK_ERROR", "BANKERROR"}
    | {"FREQUENCY_LIMITED", "FREQUENCY_LIMIT_EXCEED", "RATELIMIT_EXCEED", "RATELIMIT_EXCEEDED"}
)
NUMBER_TAKEN = "OUT_TRADE_NO_USED"
SAME_NUMBER = "订单号重复"  # INVALID_REQUEST with this text means the same
LINK_SECONDS = 240  # an h5_url can be opened for five minutes
BUSY, BAD_CODE = "-1", "40029"  # error codes of the sign-in
UNKNOWN_ORDER = ("ORDER_NOT_EXIST", "ORDERNOTEXIST")
PAID_ALREADY = ("ORDERPAID", "ORDER_PAID")
CLOSED_ALREADY = ("ORDER_CLOSED", "ORDERCLOSED")
REFUNDS = "v3/refund/domestic/refunds"
REFUND_STATES = {
    "SUCCESS": State.PAID,
    "PROCESSING": State.OPEN,
    "CLOSED": State.FAILED,
    "ABNORMAL": State.STUCK,
}
REFUND_DETAILS = {
    State.FAILED: N_("the refund is closed at WeChat Pay"),
    State.STUCK: N_("the payer's card or account does not accept the refund: complete it in WeChat Pay's console"),
}
UNKNOWN_REFUND = "RESOURCE_NOT_EXISTS"
REASON_BYTES = 80
# Error codes that refuse a refund permanently. With all others the same request may succeed later: after a recharge
# (NOT_ENOUGH), at another time (SYSTEM_ERROR, FREQUENCY_LIMITED, and RESOURCE_NOT_EXISTS, which paid orders get
# occasionally), or once an operator corrects the keys or the permissions (SIGN_ERROR, NO_AUTH, MCH_NOT_EXISTS).
REFUND_REFUSALS = frozenset({"USER_ACCOUNT_ABNORMAL", "INVALID_REQUEST", "PARAM_ERROR"})
# The same is true if their text asks to try again later, or names the balance or the configured key.
NO_REFUND_REFUSAL = re.compile("稍后|再试|重试|重新发起|频率|频繁|处理中|余额不足|Wechatpay-Serial")

BILLS = "v3/bill/"
NO_BILL, BILL_IN_PROGRESS = "NO_STATEMENT_EXIST", "STATEMENT_CREATING"
BILL_HOSTS = ("mch.weixin.qq.com",)  # with its subdomains: the API and its second address
FLOW = Flow(time="记账时间", balance="账户结余(元)", amount="收支金额(元)", direction="收支类型")


def _rsa_only(text: str) -> None:
    if not all(isinstance(each.public_key(), RSAPublicKey) for each in certificates(text)):
        raise ValidationError(N_("The certificate must contain an RSA key."))


class WechatpayConfig(WithBills):
    """A merchant's account, and the keys that verify responses and notices.

    These are WeChat Pay's public key with its id, or its platform certificates; both during a change.
    """

    mchid = fields.String(
        required=True,
        validate=number(1, 32),
        metadata=texts(N_("Merchant number"), N_("mchid, 商户号: 账户中心 → 商户信息.")),
    )
    appid = fields.String(
        required=True,
        validate=number(1, 32),
        metadata=texts(
            N_("Application"), N_("AppID of an application linked to the merchant number: 产品中心 → AppID账号管理.")
        ),
    )
    serial_no = fields.String(
        required=True,
        validate=validate.Regexp(r"[0-9A-Fa-f]{1,40}\Z", error=N_("Must be the certificate's serial number in hex.")),
        metadata=texts(N_("Certificate serial number"), N_("证书序列号 of your API certificate, in hex.")),
    )
    private_key = PrivateKey(
        required=True,
        validate=validate.Length(min=1, error=N_("Must not be empty.")),
        metadata=texts(
            N_("Your private key"), N_("Private key of your API certificate: the file apiclient_key.pem."), secret=True
        ),
    )
    apiv3_key = fields.String(
        required=True,
        validate=validate.Regexp(r"[!-~]{32}\Z", error=N_("Must be 32 ASCII characters.")),
        metadata=texts(
            N_("APIv3 key"), N_("APIv3密钥, the 32 characters that you set: 账户中心 → API安全."), secret=True
        ),
    )
    public_key_id = fields.String(
        load_default="",
        validate=validate.Regexp(r"(PUB_KEY_ID_[0-9A-Za-z]{1,64})?\Z", error=N_("Must look like PUB_KEY_ID_0123.")),
        metadata=texts(N_("WeChat Pay public key ID"), N_("PUB_KEY_ID_...: 账户中心 → API安全 → 微信支付公钥.")),
    )
    public_key = PublicKey(
        load_default="",
        metadata=texts(
            N_("WeChat Pay public key"),
            N_("The file pub_key.pem, together with its ID. Or enter the certificates below instead."),
        ),
    )
    platform_certificates = Certificates(
        several=True,
        load_default="",
        validate=_rsa_only,
        metadata=texts(
            N_("Platform certificates"), N_("For older accounts: 平台证书, one or more in one PEM file."), more=True
        ),
    )
    jsapi = fields.Boolean(
        load_default=False,
        metadata=texts(
            N_("Pay inside WeChat (JSAPI)"),
            N_(
                "Payers who open the page in WeChat pay there, without a QR code. Needs JSAPI支付, a service account "
                "(服务号) as application, and its AppSecret."
            ),
        ),
    )
    app_secret = fields.String(
        load_default="",
        validate=validate.Regexp(r"([0-9A-Za-z]{16,64})?\Z", error=N_("Must be the AppSecret of the application.")),
        metadata=texts(
            N_("AppSecret"),
            N_("For JSAPI: AppSecret of the service account, in its own console: 设置与开发 → 基本配置."),
            secret=True,
        ),
    )
    domain_file = fields.String(
        load_default="",
        validate=validate.Regexp(
            r"(MP_verify_[0-9A-Za-z]{8,40}\.txt)?\Z", error=N_("Must look like MP_verify_0123456789abcdef.txt.")
        ),
        metadata=texts(
            N_("Domain file"),
            N_(
                "For JSAPI: the name of the file MP_verify_....txt, with which WeChat verifies your domain. "
                "This service then serves it."
            ),
        ),
    )
    h5 = fields.Boolean(
        load_default=False,
        metadata=texts(
            N_("Pay from a phone's browser (H5)"),
            N_(
                "Payers who open the page in a phone's browser pay in the WeChat app. Needs H5支付, which sole "
                "proprietors cannot get."
            ),
        ),
    )
    sign_in_url = Address(
        load_default="https://open.weixin.qq.com",
        metadata=texts(N_("Sign-in page"), N_("For JSAPI. Change it only for your own relay."), more=True),
    )
    sign_in_api = Address(
        load_default="https://api.weixin.qq.com",
        metadata=texts(N_("Sign-in API"), N_("For JSAPI. Change it only for your own relay."), more=True),
    )
    base_url = Address(
        load_default="https://api.mch.weixin.qq.com",
        metadata=texts(
            N_("Address"), N_("Change it only for a different WeChat Pay host or your own relay."), more=True
        ),
    )

    @validates_schema
    def _can_sign_in(self, data: dict[str, Any], **_: Any) -> None:
        if data.get("jsapi") and not data.get("app_secret"):
            raise ValidationError({"app_secret": [N_("Required for JSAPI.")]})

    @validates_schema
    def _can_verify(self, data: dict[str, Any], **_: Any) -> None:
        pair = [name for name in ("public_key_id", "public_key") if not data.get(name)]
        if len(pair) == 1:
            raise ValidationError({pair[0]: [N_("Required: public_key and public_key_id must both be set.")]})
        if pair and not data.get("platform_certificates"):
            raise ValidationError({name: [N_("Required, unless platform_certificates is set.")] for name in pair})


class _Message(Schema):
    """WeChat Pay's messages, with numbers as text; unknown fields are ignored."""

    class Meta:
        unknown = EXCLUDE


class _Transaction(_Message):
    mchid = fields.String(required=True)
    appid = fields.String(required=True)
    out_trade_no = fields.String(required=True)
    trade_state = fields.String(required=True, validate=validate.OneOf(STATES))


class _Amount(_Message):
    total = fields.String(required=True, validate=validate.Regexp(r"[0-9]{1,12}\Z"))
    currency = fields.String(required=True, validate=validate.Equal("CNY"))


class _Paid(_Message):
    transaction_id = fields.String(required=True, validate=number(1, 64))
    amount = fields.Nested(_Amount, required=True)


class _RefundedAmount(_Amount):
    refund = fields.String(required=True, validate=validate.Regexp(r"[0-9]{1,12}\Z"))


class _NotifiedAmount(_Message):
    refund = fields.String(required=True, validate=validate.Regexp(r"[0-9]{1,12}\Z"))


class _Refund(_Message):
    out_refund_no = fields.String(required=True, validate=validate.Regexp(r"[!-~]{1,64}\Z"))
    refund_id = fields.String(required=True, validate=number(1, 64))
    transaction_id = fields.String(required=True)
    status = fields.String(required=True)
    amount = fields.Nested(_RefundedAmount, required=True)


class _NotifiedRefund(_Message):
    mchid = fields.String(required=True)
    out_trade_no = fields.String(required=True)
    transaction_id = fields.String(load_default="", validate=validate.Length(max=64))
    out_refund_no = fields.String(required=True, validate=validate.Regexp(r"[!-~]{1,64}\Z"))
    refund_id = fields.String(required=True, validate=number(1, 64))
    refund_status = fields.String(required=True)
    amount = fields.Nested(_NotifiedAmount, required=True)


class _Resource(_Message):
    algorithm = fields.String(required=True, validate=validate.Equal("AEAD_AES_256_GCM"))
    nonce = fields.String(required=True)
    ciphertext = fields.String(required=True)
    associated_data = fields.String(load_default="", allow_none=True)


class _Event(_Message):
    event_type = fields.String(required=True)
    resource = fields.Nested(_Resource, required=True)


_transaction, _paid, _event = _Transaction(), _Paid(), _Event()
_refund, _notified_refund = _Refund(), _NotifiedRefund()


def _read(schema: Schema, text: bytes) -> dict[str, Any]:
    """Return the JSON object that the schema accepts. Raises ValueError, whose text repeats none of the input."""
    try:
        found: dict[str, Any] = schema.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except (ValidationError, ValueError, RecursionError):
        raise ValueError(N_("the fields are invalid")) from None
    return found


def _refund_report(status: str, refund: Mapping[str, Any]) -> Report | None:
    """Return the report on a refund with this status, None if the status is unknown."""
    state = REFUND_STATES.get(status)
    if state is None:
        return None
    detail = REFUND_DETAILS.get(state, "")
    return Report(state, int(refund["amount"]["refund"]), refund["refund_id"], detail=detail)


def _serial(text: str) -> str:
    """Normalize a key's number for comparison: certificates are numbered, so leading zeros have no meaning."""
    return text.upper().lstrip("0")


@dataclass(frozen=True)
class _Answer:
    """A genuine response, or an unsigned error with its `code` and a `text` for the history."""

    reply: Reply
    code: str = ""
    text: str = ""


class WechatpayDriver(Driver):
    """The merchant's key signs requests, WeChat Pay's signs responses and notices. Notices are also encrypted."""

    name = "wechatpay"
    title = N_("WeChat Pay (API v3)")
    about = N_("Deposits directly into your WeChat Pay merchant account, by QR code or in the app. No payouts.")
    config_schema = WechatpayConfig
    methods = ("wxpay",)
    products = {"wechat": "jsapi", "mobile": "h5"}
    account_fields = ("mchid", "appid")
    longest_expiry = 2 * 3_600  # its codes
    closes_for_good = True
    refunds = True
    refund_days = 365
    statement = Layout(
        number=("商户订单号",),
        reference=("微信订单号",),
        amount=("订单金额", "总金额", "应结订单金额"),
        refund=("申请退款金额", "退款金额"),
        refund_number=("商户退款单号",),
        settled=("应结订单金额",),
        refund_status=("退款状态",),
        refund_settled=("退款金额",),
        fee=("手续费",),
        fee_sign="+",
        status=("交易状态",),
        time=("交易时间",),
        paid=frozenset({"SUCCESS"}),
        failed=frozenset({"REVOKED"}),
        refunded=frozenset({"REFUND"}),
    )

    def __init__(self, config: Mapping[str, Any]):
        super().__init__(config)
        self._upstream = Upstream(config["base_url"], config["proxy"])
        self._sign_in = Upstream(config["sign_in_api"], config["proxy"])
        self._private_key = private_key(config["private_key"])
        # The keys to verify with, by number.
        found = certificates(config["platform_certificates"])
        self._keys: dict[str, Any] = {_serial(f"{each.serial_number:X}"): each.public_key() for each in found}
        if config["public_key_id"]:
            self._keys[_serial(config["public_key_id"])] = public_key(config["public_key"])

    def _verify(self, headers: Mapping[str, str], body: bytes) -> None:
        """Verify the signature and the time. Raises ValueError, whose text repeats none of the input."""
        names = ("Timestamp", "Nonce", "Serial", "Signature")
        stamp, nonce, serial, signature = (headers.get(f"Wechatpay-{name}", "") for name in names)
        key = self._keys.get(_serial(serial))
        if key is None:
            raise ValueError(N_("signed with an unknown key"))
        text = f"{stamp}\n{nonce}\n".encode() + body + b"\n"
        if not is_signature(key, text, signature):
            raise ValueError("bad signature")
        if not re.fullmatch(r"[0-9]{1,12}", stamp) or abs(time.time() - int(stamp)) > CLOCKS_DIFFER:
            raise ValueError(N_("too old, or a clock is wrong"))

    def _signed(self, method: str, address: str, body: bytes = b"") -> dict[str, str]:
        """Return the headers of a request, with its signature."""
        target = urlsplit(address)._replace(scheme="", netloc="").geturl()
        stamp, nonce = str(int(time.time())), secrets.token_hex(16)
        text = f"{method}\n{target}\n{stamp}\n{nonce}\n".encode() + body + b"\n"
        authorization = {
            "mchid": self.config["mchid"],
            "nonce_str": nonce,
            "signature": sign(self._private_key, text),
            "timestamp": stamp,
            "serial_no": self.config["serial_no"],
        }
        headers = {
            "Authorization": f"{SCHEME} " + ",".join(f'{name}="{value}"' for name, value in authorization.items()),
            "Accept": "application/json",
            "Content-Type": "application/json",
        }
        if self.config["public_key_id"]:  # requests responses that are signed with this key
            headers["Wechatpay-Serial"] = self.config["public_key_id"]
        return headers

    def _call(
        self, method: str, path: str, query: Mapping[str, str] | None = None, fields: Mapping[str, Any] | None = None
    ) -> _Answer:
        """Make one signed call.

        Raises:
            ChannelUnknown: the response is neither genuine nor an explicit error, which is a 4xx with a code.
        """
        body = json.dumps(fields, ensure_ascii=False).encode() if fields else b""
        headers = self._signed(method, self._upstream.address(path, query), body)
        reply = self._upstream.call(method, path, query=query, body=body, headers=headers)
        is_error, is_signed = not 200 <= reply.status < 300, "Wechatpay-Signature" in reply.headers
        if not is_error and not is_signed:
            raise reply.not_the_api("no signature")
        if is_signed:
            try:
                self._verify(reply.headers, reply.body)
            except ValueError as error:
                why = N_("the response is not authentic: %(error)s") % {"error": error}
                raise ChannelUnknown(why, problem=Problem.NOT_AUTHENTIC) from None
        if not is_error:
            return _Answer(reply)
        answer = reply.json()
        code = str(answer.get("code"))
        if not re.fullmatch(r"[A-Z][A-Z0-9_]{2,63}", code):
            raise reply.not_the_api(N_("no code in the response"))
        why = printable(f"{answer.get('message', '')} ({code})")
        # The documents differ in the status of the codes about bills.
        is_about_bill = path.startswith(BILLS) and code in (NO_BILL, BILL_IN_PROGRESS)
        if (not 400 <= reply.status < 500 or reply.status == 429) and not is_about_bill:
            raise ChannelUnknown(why)
        return _Answer(reply, code, why)

    @property
    def domain_files(self) -> Mapping[str, str]:
        """The domain file; its text is the middle of its name."""
        name = self.config["domain_file"]
        return {name: name.removeprefix("MP_verify_").removesuffix(".txt")} if name else {}

    def needs_sign_in(self, browser: str) -> bool:
        return self.way(browser) == "jsapi"

    def sign_in_url(self, back: str, state: str) -> str:
        # In the order of WeChat's documentation: its page refuses another one.
        query = {
            "appid": self.config["appid"],
            "redirect_uri": back,
            "response_type": "code",
            "scope": "snsapi_base",
            "state": state,
        }
        return f"{self.config['sign_in_url']}/connect/oauth2/authorize?{urlencode(query)}#wechat_redirect"

    def _openid(self, code: str) -> dict[str, Any]:
        query = {
            "appid": self.config["appid"],
            "secret": self.config["app_secret"],
            "code": code,
            "grant_type": "authorization_code",
        }
        return self._sign_in.get("sns/oauth2/access_token", query).json()

    def payer_id(self, code: str) -> str:
        answer = self._openid(code)
        if "openid" not in answer:
            text = _sign_in_error(answer)
            raise ChannelUnknown(text) if answer.get("errcode") == BUSY else ChannelRefused(text)
        if not re.fullmatch(r"[0-9A-Za-z_-]{1,128}", str(answer["openid"])):
            raise ChannelUnknown(N_("the response has no usable openid"))
        return str(answer["openid"])

    def open_payment(self, payment: Payment) -> Opened:
        payer = payment.payer or Payer("", "pc")
        way = self.way(payer.browser) or "native"
        order = {
            "appid": self.config["appid"],
            "mchid": self.config["mchid"],
            "description": payment.subject,
            "out_trade_no": payment.order_no,
            # The same to the second in every call: with another time the same number would be another order.
            "time_expire": in_china(payment.expires_at).isoformat(),
            "notify_url": payment.notify_url,
            "amount": {"total": payment.amount, "currency": "CNY"},
            **({"payer": {"openid": payer.id}} if way == "jsapi" else {}),
            **({"scene_info": {"payer_client_ip": payer.address, "h5_info": {"type": "Wap"}}} if way == "h5" else {}),
        }
        answer = self._call("POST", f"{TRANSACTIONS}/{way}", fields=order)
        if answer.code == NUMBER_TAKEN or SAME_NUMBER in answer.text:
            raise NumberTaken(answer.text)
        if answer.code in MAYBE_OPEN:
            raise ChannelUnknown(answer.text)
        if answer.code:
            raise ChannelRefused(answer.text)
        found = answer.reply.json()
        if way == "native":
            code_url = str(found.get("code_url"))
            if not re.fullmatch(r"[a-z]+://[!-~]{1,500}", code_url):
                raise ChannelUnknown(N_("the response has no usable code_url"))
            return Opened(qr=code_url)
        if way == "h5":
            link = web_address(str(found.get("h5_url")))
            return Opened(redirect=f"{link}&redirect_url={quote(payment.pay_url, safe='')}", seconds=LINK_SECONDS)
        prepay_id = str(found.get("prepay_id"))
        if not re.fullmatch(r"[!-~]{1,64}", prepay_id):
            raise ChannelUnknown(N_("the response has no usable prepay_id"))
        signed = {
            "appId": self.config["appid"],
            "timeStamp": str(int(time.time())),
            "nonceStr": secrets.token_hex(16),
            "package": f"prepay_id={prepay_id}",
        }
        text = "".join(f"{value}\n" for value in signed.values())
        return Opened(bridge=signed | {"signType": "RSA", "paySign": sign(self._private_key, text.encode())})

    def query(self, payment: Payment) -> Report:
        path = f"{TRANSACTIONS}/out-trade-no/{payment.order_no}"
        answer = self._call("GET", path, query={"mchid": self.config["mchid"]})
        if answer.code in UNKNOWN_ORDER:
            return Report(State.ABSENT)
        if answer.code:
            raise ChannelUnknown(answer.text, problem=Problem.REJECTED, why=answer.text)
        try:
            order_no, report = self._read_report(answer.reply.body)
        except ValueError as error:
            raise ChannelUnknown(N_("the response is invalid: %(error)s") % {"error": error}) from None
        if order_no != payment.order_no:
            raise ChannelUnknown(N_("the response is about another order"))
        return report

    def clock(self) -> list[Finding]:
        return [self._upstream.clock()]

    def check(self, payments: Sequence[Payment]) -> list[Finding]:
        """Check the keys, the sign-in and the clock."""
        found = super().check(payments)
        if self.config["jsapi"]:
            try:
                answer = self._openid("0")  # with a wrong code WeChat refuses a wrong AppSecret first
            except ChannelUnknown as error:
                found.append(replace(error.finding(), about="jsapi"))
            else:
                if answer.get("errcode") == BAD_CODE:
                    found.append(Finding("jsapi", True, N_("WeChat accepts the AppSecret.")))
                else:
                    text = N_("WeChat rejects the sign-in: %(why)s. Check AppID and AppSecret.")
                    found.append(Finding("jsapi", False, text, {"why": _sign_in_error(answer)}))
        return [*found, *self.clock()]

    def close(self, payment: Payment) -> bool:
        path = f"{TRANSACTIONS}/out-trade-no/{payment.order_no}/close"
        answer = self._call("POST", path, fields={"mchid": self.config["mchid"]})
        if answer.reply.status == 204 or answer.code in CLOSED_ALREADY:
            return True
        if answer.code in UNKNOWN_ORDER:
            return False  # the request that creates it may still be in progress, so a later status check is needed
        if answer.code in PAID_ALREADY:
            raise ChannelRefused(answer.text)
        raise ChannelUnknown(answer.text or f"status {answer.reply.status}")

    def refund(self, request: RefundRequest) -> Report:
        fields = {
            "transaction_id": request.reference,
            "out_refund_no": request.refund_no,
            "notify_url": request.notify_url,
            "amount": {"refund": request.amount, "total": request.total, "currency": "CNY"},
        }
        reason = request.reason.encode()[:REASON_BYTES].decode(errors="ignore")  # without half a character at its end
        answer = self._call("POST", REFUNDS, fields=fields | ({"reason": reason} if reason else {}))
        if answer.code in REFUND_REFUSALS and not NO_REFUND_REFUSAL.search(answer.text):
            # It may follow a request whose response was lost: then the refund exists, and this refuses a second one.
            found = self.query_refund(request)
            if found.state is State.ABSENT:
                raise ChannelRefused(answer.text)
            return found
        return self._read_refund(answer, request)

    def query_refund(self, request: RefundRequest) -> Report:
        answer = self._call("GET", f"{REFUNDS}/{request.refund_no}")
        if answer.code == UNKNOWN_REFUND:
            return Report(State.ABSENT)
        return self._read_refund(answer, request)

    def _read_refund(self, answer: _Answer, request: RefundRequest) -> Report:
        """Return the report in a response to a refund or its status check. Raises ChannelUnknown."""
        if answer.code:
            raise ChannelUnknown(answer.text, problem=Problem.REJECTED, why=answer.text)
        try:
            found = _read(_refund, answer.reply.body)
        except ValueError as error:
            raise ChannelUnknown(N_("the response is invalid: %(error)s") % {"error": error}) from None
        if (found["out_refund_no"], found["transaction_id"]) != (request.refund_no, request.reference):
            raise ChannelUnknown(N_("the response is about another refund"))
        if int(found["amount"]["refund"]) != request.amount:
            raise ChannelUnknown(N_("the channel has another amount under the refund's number"), has_it=True)
        report = _refund_report(found["status"], found)
        if report is None:
            raise ChannelUnknown(
                N_("the channel reports status %(status)s") % {"status": printable(found["status"])}, has_it=True
            )
        return report

    def _read_report(self, text: bytes) -> tuple[str, Report]:
        """Return the order's number and its report. Raises ValueError, whose text repeats none of the input."""
        found = _read(_transaction, text)
        if (found["mchid"], found["appid"]) != (self.config["mchid"], self.config["appid"]):
            raise ValueError(N_("it is for another merchant or application"))
        state = STATES[found["trade_state"]]
        if state not in (State.PAID, State.RETURNED):
            return found["out_trade_no"], Report(
                state, detail=N_("closed at WeChat Pay") if state is State.FAILED else ""
            )
        paid = _read(_paid, text)
        return found["out_trade_no"], Report(state, int(paid["amount"]["total"]), paid["transaction_id"])

    def read_notice(self, incoming: Incoming) -> Notice:
        if incoming.method != "POST":
            raise BadNotice(N_("not a POST"))
        try:
            self._verify(incoming.headers, incoming.body)
            event = _read(_event, incoming.body)
            about_refund = event["event_type"].startswith("REFUND.")
            if event["event_type"] != "TRANSACTION.SUCCESS" and not about_refund:
                raise ValueError(N_("it does not report a payment or a refund"))
            resource, key = event["resource"], AESGCM(self.config["apiv3_key"].encode())
            try:
                nonce, ciphertext = resource["nonce"].encode(), b64decode(resource["ciphertext"], validate=True)
                told = key.decrypt(nonce, ciphertext, (resource["associated_data"] or "").encode())
            except (InvalidTag, ValueError):
                raise ValueError(N_("decryption failed: check apiv3_key")) from None
            if about_refund:
                return self._read_refund_notice(event["event_type"], told)
            order_no, report = self._read_report(told)
            if report.state not in (State.PAID, State.RETURNED):  # open or closed
                raise ValueError(N_("it does not report a payment"))
        except ValueError as error:
            raise BadNotice(str(error)) from None
        return Notice(order_no, report)

    def _read_refund_notice(self, event_type: str, text: bytes) -> Notice:
        """Read the fact of a refund notice, also of a refund made in WeChat Pay's console, which has another number.

        Raises ValueError, whose text repeats none of the input.
        """
        found = _read(_notified_refund, text)
        if found["mchid"] != self.config["mchid"]:
            raise ValueError(N_("it is for another merchant"))
        status = found["refund_status"]
        # If it is unclear, the notice is accepted, as it would be sent again; a status check then finds the result.
        report = _refund_report(status, found) if event_type == f"REFUND.{status}" else None
        return Notice(found["out_trade_no"], None, found["out_refund_no"], report, found["transaction_id"])

    def fetch_statement(self, day: date) -> bytes | None:
        return self._bill("tradebill", {"bill_date": str(day), "bill_type": "ALL", "tar_type": "GZIP"})

    def fetch_balance(self, day: date) -> int | None:
        flow = self._bill("fundflowbill", {"bill_date": str(day), "account_type": "BASIC", "tar_type": "GZIP"})
        return FLOW.closing_balance(flow) if flow is not None else None

    def _bill(self, kind: str, query: Mapping[str, str]) -> bytes | None:
        """Return the unpacked file of a bill, as `fetch_statement` does.

        The response that names the file is signed, the file itself is not: its hash proves it.
        """
        answer = self._call("GET", f"{BILLS}{kind}", query=query)
        if answer.code == NO_BILL:
            return None
        if answer.code == BILL_IN_PROGRESS:
            raise StatementNotReady(answer.text)
        if answer.code:
            raise ChannelUnknown(answer.text, problem=Problem.REJECTED, why=answer.text)
        told = answer.reply.json()
        if told.get("hash_type") != "SHA1":
            raise ChannelUnknown(N_("unknown type of hash: %(type)s") % {"type": printable(told.get("hash_type"))})
        address = self._upstream.file_address(str(told.get("download_url")).strip(), BILL_HOSTS)
        file = gunzipped(self._upstream.download(address, self._signed("GET", address)))
        digest = hashlib.sha1(file, usedforsecurity=False).hexdigest()
        if digest != str(told.get("hash_value")).lower():
            raise ChannelUnknown(DAMAGED)
        return file

    def acknowledge(self, accepted: bool) -> Acknowledgement:
        if accepted:
            return Acknowledgement("", 204)
        refused = {"code": "FAIL", "message": N_("the notice was refused")}
        return Acknowledgement(json.dumps(refused), 400, "application/json")


def _sign_in_error(answer: Mapping[str, Any]) -> str:
    """Return WeChat's message and code for a refused sign-in."""
    return printable(f"{answer.get('errmsg', '')} ({answer.get('errcode', '')})")
