"""The epay driver (易支付): version 1 signs with MD5, version 2 with RSA and also pays out (docs/epay.md)."""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import Any
from urllib.parse import urljoin, urlsplit

from marshmallow import ValidationError, fields, validate, validates_schema

from gateways.base import (
    METHODS,
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
from gateways.config import (
    Address,
    PrivateKey,
    PublicKey,
    UpstreamConfig,
    ip_address,
    is_private,
    number,
    private_key,
    public_key,
    texts,
)
from gateways.epay_protocol import md5_signature, signed_text
from gateways.epay_responses import (
    PAID,
    REFUNDED,
    answer_of,
    knows_no_order,
    knows_no_payout,
    may_collect,
    may_pay_out,
    message_of,
    no_response,
    opened,
    order_response,
    other_amount,
    refund_done,
    refund_refusal,
    refunded_of,
    refunded_payment,
    refusal,
)
from gateways.signatures import is_signature, sign
from gateways.statement import DEPOSIT, Layout
from gateways.upstream import FILE_SECONDS, Reply, Upstream, app_link, is_for_a_code, printable, read_form, web_address
from net.http import MOST
from runtime import money
from runtime.texts import N_

KEYS = {"1": ("key",), "2": ("private_key", "platform_key")}
SUCCESS = {"1": "1", "2": "0"}  # the code, by version
DEPOSITS = {"0": State.OPEN, "1": State.PAID}
FROZEN = "3"
PAID_BY = ("endtime", "api_trade_no", "bill_trade_no", "buyer")  # a platform fills one of them once the order is paid
WAITS_FOR_STAFF = "3"
PAYOUTS = {"0": State.OPEN, "1": State.PAID, "2": State.FAILED, WAITS_FOR_STAFF: State.OPEN}
REFUND_FAILED, REFUND_DONE, REFUND_OPEN = "0", "1", "2"  # the last only at some platforms, such as this service
CLOCKS_DIFFER = 300  # seconds
# The pages of a platform's list of orders, newest first: orders that each may have, orders of the page before that each
# must repeat, the bytes of a page, and the pages of one list.
PAGE, OVERLAP, PAGE_BYTES, MOST_PAGES = 50, 10, 2**20, 250
LISTED = ("out_trade_no", "trade_no", "money", "refundmoney", "status", "addtime", "endtime")
RELATIVE = ("/", "./", "../")  # the beginnings of addresses on the platform's own site


class Types(fields.String):
    """The platform's names of payment methods, such as `alipay=usdt.trc20,wxpay=usdt.polygon`, without spaces."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **named: Any) -> str:
        text = "".join(super()._deserialize(value, attr, data, **named).split())
        pairs = [pair.partition("=") for pair in text.split(",")] if text else []
        methods = [method for method, _, _ in pairs]
        usable = all(re.fullmatch("[A-Za-z0-9._-]{1,32}", kind) for _, _, kind in pairs)
        if not usable or not set(methods) <= set(METHODS) or len(set(methods)) < len(methods):
            raise ValidationError(N_("Must look like alipay=usdt.trc20,wxpay=usdt.polygon."))
        return text


class EpayConfig(UpstreamConfig):
    """A merchant's account on an epay platform.

    `redirect`: send the payer to the platform's own page instead of showing its QR code on ours.
    """

    base_url = Address(
        required=True,
        plain=True,
        metadata=texts(
            N_("Platform URL"), N_("接口地址, for example https://pay.example.com, without submit.php or api/.")
        ),
    )
    version = fields.String(
        load_default="1",
        validate=validate.OneOf(list(KEYS)),
        metadata=texts(
            N_("Version"),
            N_("1 signs with MD5. 2 signs with RSA and supports payouts. Choose 2 if the platform offers it."),
        ),
    )
    pid = fields.String(
        required=True,
        validate=number(1, 64),
        metadata=texts(N_("Merchant number"), N_("商户 ID in the platform's merchant console.")),
    )
    key = fields.String(
        load_default="",
        validate=validate.Length(max=200),
        metadata=texts(N_("MD5 key"), N_("Version 1: 商户密钥."), secret=True, when=("version", "1")),
    )
    private_key = PrivateKey(
        load_default="",
        metadata=texts(
            N_("Your private key"),
            N_("Version 2: 商户私钥, shown once by 生成商户 RSA 密钥对. PEM or plain text."),
            secret=True,
            when=("version", "2"),
        ),
    )
    platform_key = PublicKey(
        load_default="",
        metadata=texts(
            N_("Platform's public key"), N_("Version 2: 平台公钥. PEM or plain text."), when=("version", "2")
        ),
    )
    redirect = fields.Boolean(
        load_default=False,
        metadata=texts(
            N_("Redirect"), N_("Sends the payer to the platform's page instead of showing its QR code."), more=True
        ),
    )
    types = Types(
        load_default="",
        metadata=texts(
            N_("Payment types"),
            N_("For platforms with other names of the payment methods, for example alipay=usdt.trc20."),
            more=True,
        ),
    )
    post = fields.Boolean(
        load_default=False,
        metadata=texts(
            N_("Submit by POST"),
            N_("With redirect: the payer's browser sends a form to submit.php instead of opening a link."),
            when=("version", "1"),
            more=True,
        ),
    )
    sitename = fields.String(
        load_default="",
        validate=validate.Length(max=100),
        metadata=texts(
            N_("Site name"),
            N_("Sent as sitename, for platforms that require it. Usually empty."),
            when=("version", "1"),
            more=True,
        ),
    )
    no_status_checks = fields.Boolean(
        load_default=False,
        metadata=texts(
            N_("No status checks"),
            N_(
                "For platforms without api.php. Unpaid deposits expire by time, and only a notice proves a payment. "
                "If a notice is lost, its payment is not found."
            ),
            when=("version", "1"),
            more=True,
        ),
    )
    no_refunds = fields.Boolean(
        load_default=False,
        metadata=texts(
            N_("No refunds"),
            N_("For platforms without refunds by API. Refund in the platform's merchant console instead."),
            more=True,
        ),
    )
    list_orders = fields.Boolean(
        load_default=False,
        metadata=texts(
            N_("List orders"),
            N_("For platforms that list orders by API: the service compares each day with its orders automatically."),
            when=("version", "2"),
            more=True,
        ),
    )
    query_url = Address(
        load_default="",
        plain=True,
        metadata=texts(
            N_("Status check URL"),
            N_("The address of api.php if it is not below the platform URL. Usually empty."),
            when=("version", "1"),
            more=True,
        ),
    )
    device = fields.String(
        load_default="pc",
        validate=validate.OneOf(["pc", "mobile", "qq", "wechat", "alipay", "jump"]),
        metadata=texts(
            N_("Device"),
            N_("Device type sent to the platform. Some platforms return a QR code for pc only."),
            more=True,
        ),
    )
    clientip = fields.String(
        load_default="127.0.0.1",
        validate=ip_address,
        metadata=texts(
            N_("Payer IP"),
            N_("Payer IP sent to the platform. Some platforms reject certain addresses."),
            more=True,
        ),
    )

    @validates_schema
    def _has_its_keys(self, data: dict[str, Any], **_: Any) -> None:
        version = data.get("version", "1")
        missing = [name for name in KEYS.get(version, ()) if not data.get(name)]
        if missing:
            raise ValidationError({name: [N_("Required for this version.")] for name in missing})
        if version == "1" and data.get("no_status_checks") and data.get("ask_again"):
            raise ValidationError({"ask_again": [N_("Needs status checks.")]})


class EpayDriver(Driver):
    """The common part of both versions; the config's `version` chooses between them."""

    name = "epay"
    title = N_("epay (易支付)")
    about = N_(
        "A platform with the epay API: WeChat Pay, Alipay and bank transfer. The platform keeps the "
        "money until it settles."
    )
    config_schema = EpayConfig
    account_fields = ("base_url", "version", "pid")
    longest_expiry = 86_400  # platforms delete older unpaid orders
    statement = Layout(
        number=("商户订单号", "out_trade_no"),
        reference=("系统订单号", "平台订单号", "trade_no"),
        amount=("商品金额", "订单金额", "money"),
        refunded_of=("已退款金额", "refundmoney"),
        payer_paid=("实际支付",),
        fee=("手续费",),
        status=("支付状态", "订单状态", "状态", "status"),
        time=("完成时间", "支付时间", "endtime"),
        created=("创建时间", "addtime"),
        text=("商品名称",),
        paid=frozenset({"已支付", "已完成", "支付成功", "1"}),
        failed=frozenset({"未支付", "0"}),
        refunded=frozenset({"已退款", "2"}),
        frozen=frozenset({"已冻结", "3"}),
        types=(DEPOSIT,),
    )

    def __init__(self, config: Mapping[str, Any]):
        super().__init__(config)
        self._upstream = Upstream(config["base_url"], config["proxy"])
        self._types = dict(pair.split("=") for pair in config["types"].split(",") if pair)

    @property
    def opens_locally(self) -> bool:  # type: ignore[override]
        """True if the link or form that leads to the platform's page is made here."""
        return bool(self.config["redirect"])

    def way(self, browser: str) -> str:
        return browser

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Driver:
        return {"1": EpayV1, "2": EpayV2}[config["version"]](config)

    @property
    def refunds(self) -> bool:  # type: ignore[override]
        """True if the platform refunds by API. False over plain http, where anyone could forge a refusal."""
        addresses = (self.config["base_url"], self.config["query_url"] or self.config["base_url"])
        return self.checks_status and not self.config["no_refunds"] and all(map(is_private, addresses))

    def _signed(self, fields: Mapping[str, str]) -> dict[str, str]:
        raise NotImplementedError

    def _genuine(self, fields: Mapping[str, Any]) -> bool:
        raise NotImplementedError

    def _order(self, payment: Payment) -> dict[str, str]:
        return {
            "pid": self.config["pid"],
            "type": self._types.get(payment.method, payment.method),
            "out_trade_no": payment.order_no,
            "notify_url": payment.notify_url,
            "return_url": payment.pay_url,
            "name": payment.subject,
            "money": money.hundredths(payment.amount),
        }

    def _payer(self, payment: Payment) -> dict[str, str]:
        """Return the payer's address for the platform: that of the page view, or the one in the config."""
        if payment.payer is None:
            return {"clientip": self.config["clientip"], "device": self.config["device"]}
        device = "jump" if self.config["device"] == "jump" else payment.payer.browser
        return {"clientip": payment.payer.address or self.config["clientip"], "device": device}

    def clock(self) -> list[Finding]:
        return [self._upstream.clock()]

    def check(self, payments: Sequence[Payment]) -> list[Finding]:
        """Also check the merchant's permissions and payment methods, by creating an unpaid order for each method."""
        found = [*super().check(payments), *self._rights()]
        for payment in payments:
            method, facts = payment.method, {"amount": money.hundredths(payment.amount)}
            if self.config["redirect"]:
                text = N_("Not tested. The platform's own page shows the payment.")
                found.append(Finding(method, None, text))
                continue
            try:
                self.open_payment(payment)
            except ChannelUnknown as silence:
                if silence.problem and not silence.was_reached and not self.checks_status:
                    raise  # no other call has reached the platform
                found.append(replace(silence.finding(), about=method))
            except ChannelRefused as refusal:
                text = N_("An order of %(amount)s was rejected: %(why)s")
                found.append(Finding(method, False, text, facts | {"why": str(refusal)}))
            else:
                self.close(payment)
                found.append(Finding(method, True, N_("An order of %(amount)s was accepted."), facts))
        return [*found, *self.clock(), self._version()]

    def _rights(self) -> list[Finding]:
        """Return findings on the merchant's permissions at the platform."""
        raise NotImplementedError

    def _version(self) -> Finding:
        """Return a finding on the protocol's version in use."""
        raise NotImplementedError

    def _page(self, address: str) -> str:
        """Resolve a page address of the platform as a browser on its site would. Raises ChannelUnknown.

        Plugins of such platforms return addresses that begin with a slash. They start at the root of the host, even if
        the platform is installed in a folder.
        """
        try:
            base = f"{self.config['base_url']}/"
            return web_address(urljoin(base, address) if address.startswith(RELATIVE) else address)
        except ValueError:
            raise ChannelUnknown(
                N_("the channel returned an invalid address: %(address)s") % {"address": printable(address)}
            ) from None

    def _opened(self, answer: Mapping[str, Any], payment: Payment, qr: Any, address: Any, link: Any) -> Opened:
        """Return what to show to the payer: the text of a QR code, a page, an app's link.

        If the amount to pay differs from the order's, only the platform's page shows it.

        Raises:
            ChannelRefused: none of it can be shown here.
            ChannelUnknown: an address that can't be opened.
        """
        page = self._page(str(address)) if address else ""
        code = str(qr or "")
        if code.startswith(RELATIVE):
            code = self._page(code)
        asked = other_amount(answer, payment.amount)
        if asked and not page:
            raise ChannelRefused(N_("the platform charges the payer %(amount)s: set redirect=true") % {"amount": asked})
        if asked:
            return Opened(redirect=page)
        if not (code or page or link) or (code and not is_for_a_code(code)):
            raise ChannelRefused(N_("the platform returned no payment that can be shown: set redirect=true"))
        return Opened(qr=code, redirect=page, scheme=app_link(str(link)) if link else "")

    def read_notice(self, incoming: Incoming) -> Notice:
        fields = read_form(incoming.query if incoming.method == "GET" else incoming.body)
        if not self._genuine(fields):
            raise BadNotice(N_("bad signature"))
        if fields.get("pid") != self.config["pid"]:
            raise BadNotice(N_("it is for another merchant"))
        if fields.get("trade_status") != "TRADE_SUCCESS" or not fields.get("trade_no"):
            raise BadNotice(N_("it does not report a payment"))
        try:
            amount = money.fen(fields.get("money", ""))
        except ValueError:
            raise BadNotice(N_("the amount is missing or invalid")) from None
        return Notice(fields.get("out_trade_no", ""), Report(State.PAID, amount, fields["trade_no"]))

    def _deposit(self, answer: Mapping[str, Any], payment: Payment) -> Report:
        """Return the report on a deposit, after checking that the response is about this deposit."""
        if str(answer.get("out_trade_no")) != payment.order_no or str(answer.get("pid")) != self.config["pid"]:
            raise ChannelUnknown(N_("the response is about another order"))
        status, reference = str(answer.get("status")), printable(answer.get("trade_no", ""))
        try:
            amount = money.fen(str(answer.get("money")))
            returned = money.fen(str(answer.get("refundmoney") or "0"))
        except ValueError as error:
            raise ChannelUnknown(printable(error)) from None
        if status == REFUNDED and not returned:
            # Version 1 reports the whole amount and no refund. On some platforms status 2 is an expired order.
            was_paid = any(str(answer.get(name) or "").strip("0-: ") for name in PAID_BY)
            return Report(State.RETURNED if was_paid else State.ENDED, amount, reference)
        if returned and status in (PAID, REFUNDED):  # after a part, some platforms keep the status of a paid order
            if returned < amount:
                return Report(State.PAID, amount - returned, reference, returned=returned)
            detail = N_("it was paid and refunded at the channel")
            return Report(State.FAILED, reference=reference, detail=detail, returned=returned)
        if status == FROZEN:
            raise ChannelUnknown(N_("the platform froze this payment (status 3): ask its staff"))
        if status not in DEPOSITS:
            raise ChannelUnknown(N_("the channel reports status %(status)s") % {"status": printable(status)})
        return Report(DEPOSITS[status], amount, reference)

    # --- refunds

    def repeats_refund(self, request: RefundRequest) -> bool:
        """Return whether a repeated request can't refund twice: only if it is the whole payment's first refund.

        The platform stores a refund after its own upstream made it. If that response is lost, the platform would pass
        on the same number again, as another refund. Only the payment's amount stops the upstream then.
        """
        return request.is_whole and request.refunded_before == 0

    def _refunded_order(self, numbers: Mapping[str, str]) -> dict[str, Any]:
        """Return the platform's response about the order with these numbers. Raises ChannelUnknown."""
        raise NotImplementedError

    def refunded_sum(self, request: RefundRequest) -> int | None:
        """Return what the platform has refunded of the payment; None if it shows a refund without its amount."""
        numbers = {"trade_no": request.reference, "out_trade_no": request.order_no}
        answer = self._refunded_order({name: number for name, number in numbers.items() if number})
        version = self.config["version"]
        if knows_no_order(answer, version):
            return None
        if str(answer["code"]) != SUCCESS[version]:
            raise ChannelUnknown(refusal(answer), problem=Problem.REJECTED, why=refusal(answer))
        return refunded_of(answer, request)

    def query_refund(self, request: RefundRequest) -> Report:
        """Compare what the platform has refunded of the payment with the sum before the first request."""
        now, before = self.refunded_sum(request), request.refunded_before
        if now is None:
            raise ChannelUnknown(N_("the platform does not report how much of this payment it has refunded"))
        if now == (before or 0):
            return Report(
                State.ABSENT,
                detail=N_("the platform has refunded %(amount)s of this payment") % {"amount": money.hundredths(now)},
            )
        if before is not None and now == before + request.amount:
            detail = N_("the platform has refunded %(amount)s of this payment") % {"amount": money.hundredths(now)}
            return Report(State.PAID, request.amount, detail=detail)
        known = N_("an unknown sum") if before is None else money.hundredths(before)
        text = N_("the platform has refunded %(amount)s of this payment, and %(before)s before this refund") % {
            "amount": money.hundredths(now),
            "before": known,
        }
        raise ChannelUnknown(text)


class EpayV1(EpayDriver):
    """MD5: mapi.php (or submit.php, in the payer's browser) and api.php, whose responses are not signed."""

    def __init__(self, config: Mapping[str, Any]):
        super().__init__(config)
        # The upstream and the path of api.php.
        self._api, self._api_path = self._upstream, "api.php"
        if config["query_url"]:
            address = urlsplit(config["query_url"])
            self._api = Upstream(f"{address.scheme}://{address.netloc}", config["proxy"])
            self._api_path = address.path

    @property
    def checks_status(self) -> bool:
        """False for a platform without api.php."""
        return not self.config["no_status_checks"]

    def _signed(self, fields: Mapping[str, str]) -> dict[str, str]:
        return {**fields, "sign": md5_signature(fields, self.config["key"]), "sign_type": "MD5"}

    def _genuine(self, fields: Mapping[str, Any]) -> bool:
        given = fields.get("sign", "").lower()
        return hmac.compare_digest(md5_signature(fields, self.config["key"]).encode(), given.encode())

    def open_payment(self, payment: Payment) -> Opened:
        order = self._order(payment)
        if self.config["sitename"]:
            order["sitename"] = self.config["sitename"]
        if self.config["redirect"] and self.config["post"]:
            return Opened(redirect=self._upstream.address("submit.php"), fields=self._signed(order))
        if self.config["redirect"]:
            return Opened(redirect=self._upstream.address("submit.php", self._signed(order)))
        answer = opened(self._upstream.post("mapi.php", self._signed(order | self._payer(payment))))
        if str(answer["code"]) != "1":
            raise ChannelRefused(message_of(answer))
        page = answer.get("payurl") or answer.get("payurl2")
        return self._opened(answer, payment, answer.get("qrcode"), page, answer.get("urlscheme"))

    def query(self, payment: Payment) -> Report:
        who = {"pid": self.config["pid"], "key": self.config["key"]}
        query = {"act": "order", **who, "out_trade_no": payment.order_no}
        answer = order_response(self._api.get(self._api_path, query))
        if knows_no_order(answer, "1"):
            return Report(State.ABSENT)
        if str(answer.get("code")) != "1":
            raise ChannelUnknown(refusal(answer), problem=Problem.REJECTED, why=refusal(answer))
        return self._deposit(answer, payment)

    def refund(self, request: RefundRequest) -> Report:
        form = {"pid": self.config["pid"], "key": self.config["key"], **refunded_payment(request)}
        form["money"] = money.hundredths(request.amount)
        answer = answer_of(self._api.call("POST", self._api_path, query={"act": "refund"}, form=form))
        # Most platforms succeed with code 1. monlor/Epay does with 0, which others use for errors.
        is_done = answer.get("refund_no") and answer.get("money")
        if str(answer["code"]) != "1" and not (str(answer["code"]) == "0" and is_done):
            raise refund_refusal(answer)
        return refund_done(answer, request)

    def _refunded_order(self, numbers: Mapping[str, str]) -> dict[str, Any]:
        who = {"pid": self.config["pid"], "key": self.config["key"]}
        return order_response(self._api.get(self._api_path, {"act": "order", **who, **numbers}))

    def clock(self) -> list[Finding]:
        return [self._api.clock()]

    def check(self, payments: Sequence[Payment]) -> list[Finding]:
        if self.config["redirect"] and not self.checks_status:  # then nothing else shows whether a platform is there
            reply = self._upstream.get("submit.php", {})
            if reply.status not in (200, 400):
                raise reply.not_the_api(N_("no payment page"))
        return super().check(payments)

    def _rights(self) -> list[Finding]:
        if not self.checks_status:
            return []  # the same api.php reports them
        try:
            query = {"act": "query", "pid": self.config["pid"], "key": self.config["key"]}
            answer = answer_of(self._api.get(self._api_path, query))
        except ChannelUnknown as silence:
            return [no_response("collect", silence)]
        return [may_collect(answer, "1", answer.get("active"))]

    def _version(self) -> Finding:
        try:
            newer = "code" in self._upstream.post("api/pay/query", {}).json()
        except ChannelUnknown:
            newer = False
        return Finding(
            "version", None, N_("1. The platform also supports version 2, which is more secure.") if newer else "1"
        )


class EpayV2(EpayDriver):
    """RSA: everything under api/. Requests and responses are signed; errors are not."""

    @property
    def payout_methods(self) -> tuple[str, ...]:  # type: ignore[override]
        """The payout methods. None over plain http, where an attacker could report that a payout does not exist."""
        return METHODS if is_private(self.config["base_url"]) else ()

    def __init__(self, config: Mapping[str, Any]):
        super().__init__(config)
        self._private_key = private_key(config["private_key"])
        self._platform_key = public_key(config["platform_key"])

    def _signed(self, fields: Mapping[str, str]) -> dict[str, str]:
        stamped = {**fields, "pid": self.config["pid"], "timestamp": str(int(time.time()))}
        return {**stamped, "sign": sign(self._private_key, signed_text(stamped).encode()), "sign_type": "RSA"}

    def _genuine(self, fields: Mapping[str, Any]) -> bool:
        return is_signature(self._platform_key, signed_text(fields).encode(), fields.get("sign", ""))

    def _call(
        self,
        path: str,
        fields: Mapping[str, str],
        read: Callable[[Reply], dict[str, Any]] = answer_of,
        most: int = MOST,
    ) -> dict[str, Any]:
        """Return a successful response with a valid signature, or an error, which proves little without one."""
        answer = read(self._upstream.call("POST", f"api/{path}", form=self._signed(fields), most=most))
        if str(answer["code"]) == "0" and not (self._genuine(answer) and _is_fresh(answer)):
            raise ChannelUnknown(N_("the signature of the response is invalid"), problem=Problem.NOT_AUTHENTIC)
        return answer

    def open_payment(self, payment: Payment) -> Opened:
        order = self._order(payment)
        if self.config["redirect"]:  # not method=jump, which is refused if a security check is required
            return Opened(redirect=self._upstream.address("api/pay/submit"), fields=self._signed(order))
        answer = self._call("pay/create", order | {"method": "web"} | self._payer(payment), opened)
        if str(answer["code"]) != "0":
            raise ChannelRefused(message_of(answer))
        shown = {str(answer.get("pay_type")): answer.get("pay_info")}
        return self._opened(answer, payment, *(shown.get(kind) for kind in ("qrcode", "jump", "urlscheme")))

    def query(self, payment: Payment) -> Report:
        answer = self._call("pay/query", {"out_trade_no": payment.order_no}, order_response)
        if knows_no_order(answer, "2"):
            return Report(State.ABSENT)
        if str(answer["code"]) != "0":
            raise ChannelUnknown(refusal(answer), problem=Problem.REJECTED, why=refusal(answer))
        return self._deposit(answer, payment)

    def refund(self, request: RefundRequest) -> Report:
        fields = {**refunded_payment(request), "money": money.hundredths(request.amount)}
        answer = self._call("pay/refund", {**fields, "out_refund_no": request.refund_no})
        if str(answer["code"]) != "0":
            raise refund_refusal(answer)
        return self._refund_report(answer, request)

    def _refund_report(self, answer: Mapping[str, Any], request: RefundRequest) -> Report:
        """Return the report on a refund by a signed response. Raises ChannelUnknown if it does not fit the request."""
        if str(answer.get("out_refund_no") or request.refund_no) != request.refund_no:
            raise ChannelUnknown(
                N_("the response is about another refund than %(number)s") % {"number": request.refund_no}
            )
        if not answer.get("refund_no") or not answer.get("money"):
            raise ChannelUnknown(N_("the response has no refund number or no amount"))
        return refund_done(answer, request)

    def _refunded_order(self, numbers: Mapping[str, str]) -> dict[str, Any]:
        return self._call("pay/query", numbers, order_response)

    def query_refund(self, request: RefundRequest) -> Report:
        """Check the refund by its number. If the platform has none, compare the refunded sums."""
        answer = self._call("pay/refundquery", {"out_refund_no": request.refund_no})
        if str(answer["code"]) != "0":
            return super().query_refund(request)
        report, status = self._refund_report(answer, request), str(answer.get("status"))
        if status in (REFUND_DONE, REFUND_OPEN):
            return report
        if status != REFUND_FAILED:
            raise ChannelUnknown(N_("unknown status %(status)s") % {"status": printable(status)})
        if super().query_refund(request).state is not State.ABSENT:
            raise ChannelUnknown(N_("the platform reports that the refund failed, but its refunded sum has grown"))
        detail = N_("the platform reports that the refund failed")
        return Report(State.FAILED, reference=report.reference, detail=detail)

    @property
    def fetches_statements(self) -> bool:
        """True if the merchant may list orders. False over plain http: the platform does not sign the list."""
        return bool(self.config["list_orders"]) and is_private(self.config["base_url"])

    def fetch_statement(self, day: date) -> bytes | None:
        """Return the orders that were placed on a day in China as CSV; never None. Raises ChannelUnknown."""
        table, seen, offset = [",".join(LISTED)], set[str](), 0
        ends = time.monotonic() + FILE_SECONDS
        for _ in range(MOST_PAGES):
            rows = self._listed(offset)
            new = [row for row in rows if row["trade_no"] not in seen]
            # New orders move the others to later pages, and platforms delete unpaid ones. A full page of known orders
            # is one again that was there before.
            if seen and (len(new) == len(rows) > 0 or (not new and len(rows) >= PAGE)):
                raise ChannelUnknown(N_("the list of orders changed while it was read"))
            if not new or max(row["addtime"] for row in new) < str(day):
                return "\n".join(table).encode()
            for row in new:
                seen.add(row["trade_no"])
                if row["addtime"][:10] == str(day):
                    table.append(",".join(row.values()))
            offset += max(len(rows) - OVERLAP, 1)
            if time.monotonic() > ends:
                break
        raise ChannelUnknown(N_("the list of orders is too long"))

    def _listed(self, offset: int) -> list[dict[str, str]]:
        """Return a page of the platform's list of orders, newest first. Raises ChannelUnknown."""
        answer = self._call("merchant/orders", {"offset": str(offset), "limit": str(PAGE)}, most=PAGE_BYTES)
        if str(answer["code"]) != "0":
            raise ChannelUnknown(refusal(answer), problem=Problem.REJECTED, why=refusal(answer))
        rows = answer.get("data")
        found = []
        for row in rows if isinstance(rows, list) else [None]:
            if not isinstance(row, dict) or str(row.get("pid")) != self.config["pid"] or not row.get("trade_no"):
                raise ChannelUnknown(N_("the response is invalid: %(error)s") % {"error": "data"})
            order = {name: str(row.get(name) or "") for name in LISTED}
            usable = re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}", order["addtime"])
            if not usable or not all(re.fullmatch("[0-9A-Za-z_.:| -]{0,64}", text) for text in order.values()):
                raise ChannelUnknown(N_("the response is invalid: %(error)s") % {"error": printable(order)})
            if order["refundmoney"].strip("0.") and order["status"] == PAID:  # refunded in part, at some platforms
                order["status"] = REFUNDED
            found.append(order)
        return found

    def close(self, payment: Payment) -> bool:
        # Only newer platforms support it, and not for all payment methods. The order was unpaid just now; its status is
        # checked later.
        try:
            return str(self._call("pay/close", {"out_trade_no": payment.order_no})["code"]) == "0"
        except ChannelUnknown:
            return False

    def _rights(self) -> list[Finding]:
        found = []
        for about, path in (("collect", "merchant/info"), ("pay_out", "transfer/balance")):
            try:
                answer = self._call(path, {})
            except ChannelUnknown as silence:
                found.append(no_response(about, silence))
                continue
            if about == "collect":
                found.append(may_collect(answer, "0", answer.get("status"), answer.get("pay_status")))
            else:
                found.append(may_pay_out(answer))
        return found

    def _version(self) -> Finding:
        return Finding("version", True, "2")

    def pay_out(self, payout: Payout) -> Report:
        account = payout.account
        fields = {
            "type": payout.method,
            "account": str(account.get("card_number", "")),
            "name": str(account.get("real_name", "")),
            "money": money.hundredths(payout.amount),
            "out_biz_no": payout.number,
        }
        answer = self._call("transfer/submit", fields)
        if str(answer["code"]) != "0":
            # A payout that exists already gets this response too, so it does not prove a failure.
            raise ChannelUnknown(refusal(answer))
        return self._payout(answer, payout)

    def query_payout(self, payout: Payout) -> Report:
        answer = self._call("transfer/query", {"out_biz_no": payout.number})
        if knows_no_payout(answer):
            # A platform also accepts a number of this form as its own; some find a payout only by that.
            answer = self._call("transfer/query", {"biz_no": payout.number})
        if knows_no_payout(answer):
            return Report(State.ABSENT, detail=refusal(answer))
        if str(answer["code"]) != "0":
            # Some look up a payout that awaits their staff's approval at no bank, and fail with 支付通道不存在.
            raise ChannelUnknown(refusal(answer), has_it=str(answer.get("out_biz_no")) == payout.number)
        return self._payout(answer, payout)

    def _payout(self, answer: Mapping[str, Any], payout: Payout) -> Report:
        state, reference = PAYOUTS.get(str(answer.get("status"))), answer.get("biz_no") or answer.get("orderid")
        # Older platforms don't repeat the number; the response is signed and fresh.
        if str(answer.get("out_biz_no") or payout.number) != payout.number:
            raise ChannelUnknown(N_("the response is about another payout than %(number)s") % {"number": payout.number})
        if state is None:
            raise ChannelUnknown(
                N_("unknown status %(status)s") % {"status": printable(answer.get("status"))}, has_it=True
            )
        try:
            amount = money.fen(str(answer["amount"])) if answer.get("amount") else payout.amount
        except ValueError as error:
            raise ChannelUnknown(printable(error)) from None
        detail = ""  # why it failed, or what it waits for
        if state is State.FAILED:
            detail = printable(answer.get("errmsg") or "")
        elif str(answer.get("status")) == WAITS_FOR_STAFF:
            detail = N_("it waits for the platform's staff to approve it")
        elif state is State.OPEN:
            with suppress(ChannelUnknown):  # no address
                detail = N_("the receiver must confirm it at %(address)s") % {
                    "address": web_address(str(answer.get("jumpurl") or ""))
                }
        return Report(state, amount, printable(reference or ""), detail=detail)


def _is_fresh(answer: Mapping[str, Any]) -> bool:
    try:
        return abs(time.time() - int(str(answer.get("timestamp")))) <= CLOCKS_DIFFER
    except ValueError:
        return False
