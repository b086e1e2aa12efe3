"""The epay driver (易支付): version 1 signs with MD5, version 2 with RSA and also pays out (docs/epay.md)."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urljoin

from marshmallow import ValidationError, fields, validate, validates_schema

from gateways import money
from gateways.base import (
    METHODS,
    BadNotice,
    ChannelError,
    ChannelRefused,
    ChannelUnknown,
    Driver,
    Finding,
    Incoming,
    Notice,
    Opened,
    Payment,
    Payout,
    Report,
    State,
)
from gateways.config import (
    N_,
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
from gateways.epay_responses import (
    about_order,
    answer_of,
    asked_for,
    in_its_words,
    knows_no_order,
    knows_no_payout,
    may_collect,
    may_pay_out,
    not_known,
    opened,
    refusal,
)
from gateways.signatures import holds, sign
from gateways.statement import DEPOSIT, Layout
from gateways.upstream import Reply, Upstream, app_link, is_for_a_code, printable, read_form, web_address

KEYS = {"1": ("key",), "2": ("private_key", "platform_key")}
DEPOSITS = {"0": State.OPEN, "1": State.PAID}
REFUNDED, FROZEN = "2", "3"
PAID_BY = ("endtime", "api_trade_no", "bill_trade_no", "buyer")  # a platform fills one of them once it is paid
WAITS_FOR_STAFF = "3"
PAYOUTS = {"0": State.OPEN, "1": State.PAID, "2": State.FAILED, WAITS_FOR_STAFF: State.OPEN}
CLOCKS_DIFFER = 300  # seconds


class EpayConfig(UpstreamConfig):
    """A merchant's account on an epay platform.

    `redirect`: the payer is sent to the platform's own page, instead of seeing its QR code on ours.
    """

    base_url = Address(
        required=True,
        plain=True,
        metadata=texts(
            N_("Platform's address"), N_("接口地址, such as https://pay.example.com: without submit.php or api/.")
        ),
    )
    version = fields.String(
        load_default="1",
        validate=validate.OneOf(list(KEYS)),
        metadata=texts(N_("Version"), N_("1 signs with MD5, 2 with RSA and also pays out. Take 2 where there is one.")),
    )
    pid = fields.String(
        required=True,
        validate=number(1, 32),
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
            N_("Version 2: 商户私钥, as 生成商户 RSA 密钥对 showed it once. PEM or the bare text."),
            secret=True,
            when=("version", "2"),
        ),
    )
    platform_key = PublicKey(
        load_default="",
        metadata=texts(
            N_("Platform's public key"), N_("Version 2: 平台公钥. PEM or the bare text."), when=("version", "2")
        ),
    )
    redirect = fields.Boolean(
        load_default=False,
        metadata=texts(
            N_("Redirect"), N_("The payer is sent to the platform's own page, instead of seeing its QR code on ours.")
        ),
    )
    device = fields.String(
        load_default="pc",
        validate=validate.OneOf(["pc", "mobile", "qq", "wechat", "alipay", "jump"]),
        metadata=texts(N_("Device"), N_("What the platform makes the payment for. Some give a QR code for pc only.")),
    )
    clientip = fields.String(
        load_default="127.0.0.1",
        validate=ip_address,
        metadata=texts(
            N_("Payer's address"),
            N_("What the platform is told, as nobody knows the payer's when an order is made. Some refuse some."),
        ),
    )

    @validates_schema
    def _has_its_keys(self, data: dict[str, Any], **_: Any) -> None:
        version = data.get("version", "1")
        missing = [name for name in KEYS.get(version, ()) if not data.get(name)]
        if missing:
            raise ValidationError({name: [N_("This version needs it.")] for name in missing})


def signed_text(fields: Mapping[str, Any]) -> str:
    """What is signed: all that is filled, but for the signature, by name; values as they are, not URL-encoded."""
    given = {name: str(value) for name, value in fields.items() if not isinstance(value, (dict, list, type(None)))}
    return "&".join(
        f"{name}={given[name]}" for name in sorted(given) if name not in ("sign", "sign_type") and given[name].strip()
    )


def md5_signature(fields: Mapping[str, Any], key: str) -> str:
    """Version 1's: lowercase hex."""
    return hashlib.md5((signed_text(fields) + key).encode(), usedforsecurity=False).hexdigest()


class EpayDriver(Driver):
    """What both versions share; its config's `version` chooses between them."""

    name = "epay"
    title = "epay (易支付)"
    about = N_(
        "A platform with the epay interface: WeChat, Alipay and bank. The platform has the money until it settles."
    )
    config_schema = EpayConfig
    account_fields = ("base_url", "version", "pid")
    depends_on_browser = True
    statement = Layout(
        number=("商户订单号", "out_trade_no"),
        reference=("系统订单号", "平台订单号", "trade_no"),
        amount=("商品金额", "订单金额", "money"),
        refunded_of=("已退款金额",),
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

    @property
    def opens_locally(self) -> bool:  # type: ignore[override]
        """The link or form that leads to the platform's page is made here."""
        return bool(self.config["redirect"])

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Driver:
        return {"1": EpayV1, "2": EpayV2}[config["version"]](config)

    def _signed(self, fields: Mapping[str, str]) -> dict[str, str]:
        raise NotImplementedError

    def _genuine(self, fields: Mapping[str, Any]) -> bool:
        raise NotImplementedError

    def _order(self, payment: Payment) -> dict[str, str]:
        return {
            "pid": self.config["pid"],
            "type": payment.method,
            "out_trade_no": payment.order_no,
            "notify_url": payment.notify_url,
            "return_url": payment.pay_url,
            "name": payment.subject,
            "money": money.yuan(payment.amount),
        }

    def _payer(self, payment: Payment) -> dict[str, str]:
        """The payer's address as sent to the platform: that of the page view, or the one in the config."""
        if payment.payer is None:
            return {"clientip": self.config["clientip"], "device": self.config["device"]}
        device = "jump" if self.config["device"] == "jump" else payment.payer.browser
        return {"clientip": payment.payer.address or self.config["clientip"], "device": device}

    def check(self, payments: Sequence[Payment]) -> list[Finding]:
        """Also what the merchant may do, and which payment methods are on: an unpaid order is made for each."""
        found = [*super().check(payments), *self._rights()]
        found += [self._is_on(payment) for payment in payments]
        return [*found, self._upstream.clock(), self._version()]

    def _rights(self) -> list[Finding]:
        """What the merchant may do at the platform."""
        raise NotImplementedError

    def _version(self) -> Finding:
        """Which version of the protocol the channel uses."""
        raise NotImplementedError

    def _is_on(self, payment: Payment) -> Finding:
        """Whether a payment method can be used."""
        if self.config["redirect"]:
            return Finding(payment.method, None, N_("not tried: the platform's own page shows it"))
        try:
            self.open_payment(payment)
        except ChannelError as error:
            told = {"amount": money.yuan(payment.amount), "why": str(error)}
            good = False if isinstance(error, ChannelRefused) else None
            return Finding(payment.method, good, N_("an order of %(amount)s is not accepted: %(why)s"), told)
        self.close(payment)
        return Finding(
            payment.method, True, N_("an order of %(amount)s is accepted"), {"amount": money.yuan(payment.amount)}
        )

    def _page(self, address: str) -> str:
        """A page of the platform, as a browser on its site would open it. Raises ChannelUnknown.

        Plugins of such platforms give addresses that begin with a slash: at the root of the host, even if the
        platform itself is in a folder.
        """
        try:
            return web_address(urljoin(self.config["base_url"], address) if address.startswith("/") else address)
        except ValueError:
            raise ChannelUnknown(f"it gave an address that can't be opened: {printable(address)}") from None

    def _opened(self, answer: Mapping[str, Any], payment: Payment, qr: Any, address: Any, link: Any) -> Opened:
        """What a payment that the platform opened gives the payer: the text of a QR code, a page, an app's link.

        Where the payer has to pay another sum than the order's, only the platform's page says so.

        Raises:
            ChannelRefused: nothing of it can be shown here.
            ChannelUnknown: an address that can't be opened.
        """
        page = self._page(str(address)) if address else ""
        asked = asked_for(answer, payment.amount)
        if asked and not page:
            raise ChannelRefused(f"it asks the payer for {asked}: set redirect=true")
        if asked:
            return Opened(redirect=page)
        if not (qr or page or link) or (qr and not is_for_a_code(str(qr))):
            raise ChannelRefused("it gave nothing that a payer could be shown: set redirect=true")
        return Opened(qr=str(qr or ""), redirect=page, scheme=app_link(str(link)) if link else "")

    def read_notice(self, incoming: Incoming) -> Notice:
        fields = read_form(incoming.query if incoming.method == "GET" else incoming.body)
        if not self._genuine(fields):
            raise BadNotice("bad signature")
        if fields.get("pid") != self.config["pid"]:
            raise BadNotice("it is for another merchant")
        if fields.get("trade_status") != "TRADE_SUCCESS" or not fields.get("trade_no"):
            raise BadNotice("it tells of no payment")
        try:
            amount = money.fen(fields.get("money", ""))
        except ValueError:
            raise BadNotice("it names no amount in whole fen") from None
        return Notice(fields.get("out_trade_no", ""), Report(State.PAID, amount, fields["trade_no"]))

    def _deposit(self, answer: Mapping[str, Any], payment: Payment) -> Report:
        """What an answer says of a deposit, once it is sure to be about this one."""
        if str(answer.get("out_trade_no")) != payment.order_no or str(answer.get("pid")) != self.config["pid"]:
            raise ChannelUnknown("the answer is about another order")
        status, reference = str(answer.get("status")), printable(answer.get("trade_no", ""))
        try:
            amount = money.fen(str(answer.get("money")))
            returned = money.fen(str(answer.get("refundmoney") or "0"))
        except ValueError as error:
            raise ChannelUnknown(printable(error)) from None
        if status == REFUNDED and not returned:
            # Version 1 names the whole amount and no refund. On some platforms status 2 is an order that expired.
            was_paid = any(str(answer.get(name) or "").strip("0-: ") for name in PAID_BY)
            return Report(State.RETURNED if was_paid else State.ENDED, amount, reference)
        if status == REFUNDED and returned < amount:
            return Report(State.PAID, amount - returned, reference, returned=returned)
        if status == REFUNDED:
            detail = "it was paid and refunded at the channel"
            return Report(State.FAILED, reference=reference, detail=detail, returned=returned)
        if status == FROZEN:
            raise ChannelUnknown("the platform froze this payment (status 3): ask its staff why, and until when")
        if status not in DEPOSITS:
            raise ChannelUnknown(f"the channel gives status {printable(status)}")
        return Report(DEPOSITS[status], amount, reference)


class EpayV1(EpayDriver):
    """MD5: mapi.php (or submit.php, in the payer's browser) and api.php, whose responses are not signed."""

    def _signed(self, fields: Mapping[str, str]) -> dict[str, str]:
        return {**fields, "sign": md5_signature(fields, self.config["key"]), "sign_type": "MD5"}

    def _genuine(self, fields: Mapping[str, Any]) -> bool:
        given = fields.get("sign", "").lower()
        return hmac.compare_digest(md5_signature(fields, self.config["key"]).encode(), given.encode())

    def open_payment(self, payment: Payment) -> Opened:
        order = self._order(payment)
        if self.config["redirect"]:
            return Opened(redirect=self._upstream.address("submit.php", self._signed(order)))
        answer = opened(self._upstream.post("mapi.php", self._signed(order | self._payer(payment))))
        if str(answer["code"]) != "1":
            raise ChannelRefused(in_its_words(answer))
        return self._opened(answer, payment, *(answer.get(name) for name in ("qrcode", "payurl", "urlscheme")))

    def query(self, payment: Payment) -> Report:
        who = {"pid": self.config["pid"], "key": self.config["key"]}
        query = {"act": "order", **who, "out_trade_no": payment.order_no}
        answer = about_order(self._upstream.get("api.php", query))
        if knows_no_order(answer, "1"):
            return Report(State.ABSENT)
        if str(answer.get("code")) != "1":
            raise ChannelUnknown(refusal(answer))
        return self._deposit(answer, payment)

    def _rights(self) -> list[Finding]:
        try:
            query = {"act": "query", "pid": self.config["pid"], "key": self.config["key"]}
            answer = answer_of(self._upstream.get("api.php", query))
        except ChannelUnknown as silence:
            return [not_known("collect", silence)]
        return [may_collect(answer, "1", answer.get("active"))]

    def _version(self) -> Finding:
        try:
            newer = "code" in self._upstream.post("api/pay/query", {}).json()
        except ChannelUnknown:
            newer = False
        return Finding("version", None, N_("1; the platform also has version 2, which is safer") if newer else "1")


class EpayV2(EpayDriver):
    """RSA: everything under api/, requests and answers signed; errors are not."""

    @property
    def payout_methods(self) -> tuple[str, ...]:  # type: ignore[override]
        """Not over plain http: anybody on the way could say that a payout is not there."""
        return METHODS if is_private(self.config["base_url"]) else ()

    def __init__(self, config: Mapping[str, Any]):
        super().__init__(config)
        self._private_key = private_key(config["private_key"])
        self._platform_key = public_key(config["platform_key"])

    def _signed(self, fields: Mapping[str, str]) -> dict[str, str]:
        stamped = {**fields, "pid": self.config["pid"], "timestamp": str(int(time.time()))}
        return {**stamped, "sign": sign(self._private_key, signed_text(stamped).encode()), "sign_type": "RSA"}

    def _genuine(self, fields: Mapping[str, Any]) -> bool:
        return holds(self._platform_key, signed_text(fields).encode(), fields.get("sign", ""))

    def _ask(
        self, path: str, fields: Mapping[str, str], read: Callable[[Reply], dict[str, Any]] = answer_of
    ) -> dict[str, Any]:
        """A successful answer whose signature holds, or an error, which is believed as little as need be."""
        answer = read(self._upstream.post(f"api/{path}", self._signed(fields)))
        if str(answer["code"]) == "0" and not (self._genuine(answer) and _is_fresh(answer)):
            raise ChannelUnknown("an answer whose signature doesn't hold")
        return answer

    def open_payment(self, payment: Payment) -> Opened:
        order = self._order(payment)
        if self.config["redirect"]:  # not method=jump, which is refused where a security check is demanded
            return Opened(redirect=self._upstream.address("api/pay/submit"), fields=self._signed(order))
        answer = self._ask("pay/create", order | {"method": "web"} | self._payer(payment), opened)
        if str(answer["code"]) != "0":
            raise ChannelRefused(in_its_words(answer))
        shown = {str(answer.get("pay_type")): answer.get("pay_info")}
        return self._opened(answer, payment, *(shown.get(kind) for kind in ("qrcode", "jump", "urlscheme")))

    def query(self, payment: Payment) -> Report:
        answer = self._ask("pay/query", {"out_trade_no": payment.order_no}, about_order)
        if knows_no_order(answer, "2"):
            return Report(State.ABSENT)
        if str(answer["code"]) != "0":
            raise ChannelUnknown(refusal(answer))
        return self._deposit(answer, payment)

    def close(self, payment: Payment) -> bool:
        # Newer platforms only, not for all payment methods. The order was unpaid just now; its status is checked later.
        try:
            return str(self._ask("pay/close", {"out_trade_no": payment.order_no})["code"]) == "0"
        except ChannelUnknown:
            return False

    def _rights(self) -> list[Finding]:
        found = []
        for about, path in (("collect", "merchant/info"), ("pay_out", "transfer/balance")):
            try:
                answer = self._ask(path, {})
            except ChannelUnknown as silence:
                found.append(not_known(about, silence))
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
            "money": money.yuan(payout.amount),
            "out_biz_no": payout.number,
        }
        answer = self._ask("transfer/submit", fields)
        if str(answer["code"]) != "0":
            # Also the response to a payout that exists already: nothing here is known to be a failure.
            raise ChannelUnknown(refusal(answer))
        return self._payout(answer, payout)

    def query_payout(self, payout: Payout) -> Report:
        answer = self._ask("transfer/query", {"out_biz_no": payout.number})
        if knows_no_payout(answer):
            # A platform takes a number of this form as its own, too, and some know a payout by that alone.
            answer = self._ask("transfer/query", {"biz_no": payout.number})
        if knows_no_payout(answer):
            return Report(State.ABSENT, detail=refusal(answer))
        if str(answer["code"]) != "0":
            # Some look a payout up that waits for their staff at no bank at all, and fail: 支付通道不存在.
            raise ChannelUnknown(refusal(answer), has_it=str(answer.get("out_biz_no")) == payout.number)
        return self._payout(answer, payout)

    def _payout(self, answer: Mapping[str, Any], payout: Payout) -> Report:
        state, reference = PAYOUTS.get(str(answer.get("status"))), answer.get("biz_no") or answer.get("orderid")
        # Older platforms don't repeat the number; the answer is signed, and fresh.
        if str(answer.get("out_biz_no") or payout.number) != payout.number:
            raise ChannelUnknown(f"the answer is about another payout than {payout.number}")
        if state is None:
            raise ChannelUnknown(f"status {printable(answer.get('status'))}, which means nothing here", has_it=True)
        try:
            amount = money.fen(str(answer["amount"])) if answer.get("amount") else payout.amount
        except ValueError as error:
            raise ChannelUnknown(printable(error)) from None
        return Report(state, amount, printable(reference or ""), detail=_detail(answer, state))


def _detail(answer: Mapping[str, Any], state: State) -> str:
    """Why a payout failed, or what it waits for: the platform's staff, or its receiver at an address."""
    if state is State.FAILED:
        return printable(answer.get("errmsg") or "")
    if state is not State.OPEN:
        return ""
    if str(answer.get("status")) == WAITS_FOR_STAFF:
        return "it waits for the platform's staff to approve it"
    try:
        return f"the receiver must confirm it at {web_address(str(answer.get('jumpurl') or ''))}"
    except ChannelUnknown:
        return ""


def _is_fresh(answer: Mapping[str, Any]) -> bool:
    try:
        return abs(time.time() - int(str(answer.get("timestamp")))) <= CLOCKS_DIFFER
    except ValueError:
        return False
