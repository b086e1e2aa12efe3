"""A loopback WeChat Pay: payments and refunds of the API v3, signed in both directions, and the sign-in."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import secrets
import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlencode, urlsplit

from Cryptodome.Cipher import AES
from Cryptodome.Hash import SHA256
from Cryptodome.Signature import PKCS1_v1_5
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.upstreams.loopback import Loopback, Sent, imported, key_pair

APP_SECRET = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
APPID, MCHID = "wx0123456789abcdef", "1900000109"
MERCHANT_SERIAL = "5157F09EFDC096DE15EBE81A47057A7200000001"
KEY_ID = "PUB_KEY_ID_0119000001092026050100000000000001"
CERTIFICATE_SERIAL = "05C0FFEE00000000000000000000000000000B0B"  # with a leading zero, as some have
SCHEME = "WECHATPAY2-SHA256-RSA2048"
AUTHORIZATION = re.compile(
    r'WECHATPAY2-SHA256-RSA2048 mchid="(?P<mchid>[^"]*)",nonce_str="(?P<nonce>[^"]*)",'
    r'signature="(?P<signature>[^"]*)",timestamp="(?P<timestamp>[0-9]*)",serial_no="(?P<serial>[^"]*)"'
)
TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+08:00"


@cache
def apiv3_key(name: str = "") -> str:
    """A key of 32 characters; the same for the same name during the tests."""
    return secrets.token_hex(16)


@cache
def certificate() -> str:
    """The platform's key in a certificate, as PEM."""
    key = serialization.load_pem_private_key(key_pair("wechatpay certificate")[0].encode(), None)
    owner = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a platform")])
    made = (
        x509.CertificateBuilder(owner, owner, key.public_key(), int(CERTIFICATE_SERIAL, 16))  # type: ignore[arg-type]
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .sign(key, hashes.SHA256())  # type: ignore[arg-type]
    )
    return made.public_bytes(serialization.Encoding.PEM).decode()


def is_signature(public: str, text: bytes, signature: str) -> bool:
    """The platform's check of a signature, independent of the driver's."""
    return PKCS1_v1_5.new(imported(public)).verify(SHA256.new(text), b64decode(signature)) is True


class WechatPay(Loopback):
    """One merchant's account. `prefix` ends in v3, as all addresses of this protocol begin with it.

    `signs_by`: "key" or "certificate"; `clock_off`: seconds by which its signatures' clock is wrong; `balance`: the
    fen that refunds may use; `refunds_begin`: the status of a new refund.
    """

    def __init__(self, server: HTTPServer, prefix: str = "v3"):
        super().__init__(server, prefix)
        self.merchant_private, self.merchant_public = key_pair("wechatpay merchant")
        self.signs_by, self.clock_off = "key", 0
        self.signs_errors = False
        self.code_url = "weixin://wxpay/bizpayurl?pr={}"
        self.h5_url = "https://wx.tenpay.com/cgi-bin/mmpayweb-bin/checkmweb?prepay_id=wx26{0}&package=1{0}"
        self.orders: dict[str, dict[str, Any]] = {}
        self.refunds: dict[str, dict[str, Any]] = {}  # by the merchant's number, also those made in the console
        self.balance, self.refunds_begin = 100_000_000, "PROCESSING"
        # The unpacked files of bills and flows, by day such as 2026-05-01; `bill` changes the response that names one,
        # and `packs` how it is sent.
        self.bills: dict[str, bytes] = {}
        self.flows: dict[str, bytes] = {}
        self.bill: dict[str, str] = {}
        self.packs: Callable[[bytes], bytes] = gzip.compress
        self._files: dict[str, bytes] = {}  # by token
        self.refuses: list[tuple[int, Any]] = []  # status and body of the next responses, instead of the right ones

    @property
    def base_url(self) -> str:
        """The beginning of the protocol's addresses."""
        return self.url.removesuffix("/v3")

    def config(self, by: str = "key", **more: str) -> dict[str, str]:
        """The config of a channel for this account, which verifies `by` key, certificate or both."""
        whom = {}
        if by in ("key", "both"):
            whom |= {"public_key_id": KEY_ID, "public_key": key_pair("wechatpay platform")[1]}
        if by in ("certificate", "both"):
            whom |= {"platform_certificates": certificate()}
        own = {"private_key": self.merchant_private, "serial_no": MERCHANT_SERIAL, "apiv3_key": apiv3_key()}
        return {"base_url": self.base_url, "appid": APPID, "mchid": MCHID, **own, **whom, **more}

    # --- signatures

    def signed(self, body: bytes, stamp: str = "") -> dict[str, str]:
        """The headers of a response or a notice; `stamp` replaces its time."""
        private, serial = {
            "key": (key_pair("wechatpay platform")[0], KEY_ID),
            "certificate": (key_pair("wechatpay certificate")[0], CERTIFICATE_SERIAL),
        }[self.signs_by]
        stamp, nonce = stamp or str(int(time.time()) + self.clock_off), secrets.token_hex(16)
        digest = SHA256.new(b"\n".join([stamp.encode(), nonce.encode(), body, b""]))
        return {
            "Wechatpay-Timestamp": stamp,
            "Wechatpay-Nonce": nonce,
            "Wechatpay-Serial": serial,
            "Wechatpay-Signature": b64encode(PKCS1_v1_5.new(imported(private)).sign(digest)).decode(),
            "Wechatpay-Signature-Type": SCHEME,
        }

    def _is_the_merchant(self, request: Request) -> bool:
        """Return whether the request's Authorization is valid for this request, including prefix and query."""
        given = AUTHORIZATION.fullmatch(request.headers.get("Authorization", ""))
        if given is None or (given["mchid"], given["serial"]) != (MCHID, MERCHANT_SERIAL):
            return False
        asked = urlsplit(request.environ["REQUEST_URI"])
        target = f"{asked.path}?{asked.query}" if asked.query else asked.path
        text = "\n".join([request.method, target, given["timestamp"], given["nonce"], ""]).encode()
        fresh = abs(time.time() - int(given["timestamp"])) <= 300
        return fresh and is_signature(self.merchant_public, text + request.get_data() + b"\n", given["signature"])

    # --- the protocol

    def answer(self, path: str, request: Request) -> Response:
        if self.refuses:
            return self._error(*self.refuses.pop(0))
        if not self._is_the_merchant(request) or request.headers.get("Accept") != "application/json":
            return self._error(401, {"code": "SIGN_ERROR", "message": "签名错误，请检查后再试"})
        if request.headers.get("Wechatpay-Serial", KEY_ID) != KEY_ID:
            return self._error(400, {"code": "PARAM_ERROR", "message": "平台证书序列号Wechatpay-Serial错误"})
        if path in ("bill/tradebill", "bill/fundflowbill"):
            return self._bill(path.removeprefix("bill/"), request.args.to_dict())
        if path == "billdownload/file":
            file = self._files.pop(request.args.get("token", ""), None)
            if file is None:
                return self._error(400, {"code": "INVALID_REQUEST", "message": "请求的token无效"})
            return Response(self.packs(file), content_type="application/x-gzip")
        if path == "refund/domestic/refunds" and request.method == "POST":
            return self._refund(json.loads(request.get_data()))
        if path.startswith("refund/domestic/refunds/"):
            refund_no = path.removeprefix("refund/domestic/refunds/")
            if refund_no not in self.refunds:
                return self._error(404, {"code": "RESOURCE_NOT_EXISTS", "message": "退款单不存在"})
            return self._genuine(self.told_of_refund(refund_no))
        found = re.fullmatch(
            r"pay/transactions/(?:(native|jsapi|h5)|out-trade-no/([0-9A-Za-z_|*-]{6,32})(/close)?)", path
        )
        if found is None:
            return self._error(404, {"code": "RESOURCE_NOT_EXISTS", "message": "无效的URL"})
        way, number, closes = found.groups()
        if number is None:
            return self._create(way, json.loads(request.get_data()))
        asker = json.loads(request.get_data()) if closes else request.args
        if asker.get("mchid") != MCHID:
            return self._error(400, {"code": "MCH_NOT_EXISTS", "message": "商户号不存在"})
        if number not in self.orders:
            return self._error(404, {"code": "ORDER_NOT_EXIST", "message": "订单不存在"})
        return self._close(number) if closes else self._genuine(self.told(number))

    def _bill(self, kind: str, asked: dict[str, str]) -> Response:
        """Name the file of a bill, by a token for one download."""
        day, packed = asked.pop("bill_date"), asked.pop("tar_type")
        assert (kind, asked) in (("tradebill", {"bill_type": "ALL"}), ("fundflowbill", {"account_type": "BASIC"}))
        assert packed == "GZIP"
        file = (self.bills if kind == "tradebill" else self.flows).get(day)
        if file is None:
            return self._error(400, {"code": "NO_STATEMENT_EXIST", "message": "账单文件不存在"})
        token = secrets.token_urlsafe(32)
        self._files[token] = file
        said = {"hash_type": "SHA1", "hash_value": hashlib.sha1(file).hexdigest()}
        said["download_url"] = f"{self.url}/billdownload/file?token={token}"
        return self._genuine(said | self.bill)

    def _error(self, status: int, said: Any) -> Response:
        """An error, signed only if it `signs_errors`; as JSON if `said` is not a text."""
        text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        headers = self.signed(text.encode()) if self.signs_errors else {}
        return Response(text, status, headers, content_type="application/json")

    def _genuine(self, said: dict[str, Any] | None) -> Response:
        body = json.dumps(said, ensure_ascii=False).encode() if said else b""
        return Response(body, 200 if said else 204, self.signed(body), content_type="application/json")

    @staticmethod
    def _is_well_formed(order: dict[str, Any]) -> bool:
        amount, notify = order.get("amount", {}), urlsplit(order.get("notify_url", ""))
        return (
            (order.get("appid"), order.get("mchid"), amount.get("currency")) == (APPID, MCHID, "CNY")
            and type(amount.get("total")) is int
            and amount["total"] > 0
            and notify.scheme in ("http", "https")
            and not notify.query
            and 0 < len(order.get("description", "").encode()) <= 127
            and re.fullmatch(r"[0-9A-Za-z_|*-]{6,32}", order.get("out_trade_no", "")) is not None
            and re.fullmatch(TIME, order.get("time_expire", "")) is not None
        )

    @staticmethod
    def _fits(way: str, order: dict[str, Any]) -> bool:
        scene = order.get("scene_info", {})
        if way == "h5":
            ip_address(scene.get("payer_client_ip", ""))
        return ("openid" in order.get("payer", {}), scene.get("h5_info", {}).get("type", "")) == {
            "native": (False, ""),
            "jsapi": (True, ""),
            "h5": (False, "Wap"),
        }[way]

    def _create(self, way: str, order: dict[str, Any]) -> Response:
        if (
            not self._is_well_formed(order)
            or not self._fits(way, order)
            or datetime.fromisoformat(order["time_expire"]).timestamp() < time.time()
        ):
            return self._error(400, {"code": "PARAM_ERROR", "message": "参数错误"})
        there = self.orders.setdefault(order["out_trade_no"], {"asked": order, "way": way, "trade_state": "NOTPAY"})
        if there["trade_state"] != "NOTPAY":
            paid = there["trade_state"] == "SUCCESS"
            said = ("ORDERPAID", "该订单已支付") if paid else ("ORDER_CLOSED", "该订单已关闭")
            return self._error(400, dict(zip(("code", "message"), said, strict=True)))
        if (there["way"], there["asked"]) != (way, order):
            return self._error(400, {"code": "INVALID_REQUEST", "message": "201 商户订单号重复"})
        short = order["out_trade_no"][-9:]
        said = {
            "native": {"code_url": self.code_url.format(short)},
            "jsapi": {"prepay_id": f"wx26112209580621e9b071c00d9e093b00{short}"},
            "h5": {"h5_url": self.h5_url.format(short)},
        }
        return self._genuine(said[way])

    def told(self, number: str) -> dict[str, Any]:
        """The facts of an order in responses."""
        order = self.orders[number]
        told = {"appid": APPID, "mchid": MCHID, "out_trade_no": number, "trade_state": order["trade_state"]}
        amount = {"payer_currency": "CNY", "total": order.get("total", order["asked"]["amount"]["total"])}
        if order["trade_state"] in ("SUCCESS", "REFUND"):
            amount |= {"currency": "CNY", "payer_total": amount["total"]}
            told |= {
                "transaction_id": f"42000{number[-20:]}",
                "trade_type": "MWEB" if order["way"] == "h5" else order["way"].upper(),
                "bank_type": "OTHERS",
            }
            told |= {"success_time": "2026-05-01T12:00:00+08:00", "payer": {"openid": "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o"}}
        return told | {"amount": amount, "trade_state_desc": "说明", **order.get("changed", {})}

    def _close(self, number: str) -> Response:
        state = self.orders[number]["trade_state"]
        if state == "SUCCESS":
            return self._error(400, {"code": "ORDERPAID", "message": "该订单已支付"})
        if state == "CLOSED":
            return self._error(400, {"code": "ORDER_CLOSED", "message": "该订单已关闭"})
        self.orders[number]["trade_state"] = "CLOSED"
        return self._genuine(None)

    def _refund(self, asked: dict[str, Any]) -> Response:
        """A refund: the same number is the same refund, and another one must fit what is left and the balance."""
        amount, notify = asked["amount"], urlsplit(asked.get("notify_url", ""))
        if (
            not set(asked) <= {"transaction_id", "out_refund_no", "reason", "notify_url", "amount"}
            or set(amount) != {"refund", "total", "currency"}
            or not (type(amount["refund"]) is type(amount["total"]) is int and 0 < amount["refund"] <= amount["total"])
            or amount["currency"] != "CNY"
            or not re.fullmatch(r"[0-9A-Za-z_|*@-]{1,64}", asked["out_refund_no"])
            or not 0 < len(asked.get("reason", "-").encode()) <= 80
            or notify.scheme not in ("http", "https")
            or notify.query
        ):
            return self._error(400, {"code": "PARAM_ERROR", "message": "参数错误"})
        paid = {self.told(each).get("transaction_id"): each for each in self.orders}
        order_no = paid.get(asked["transaction_id"])
        if order_no is None:
            return self._error(404, {"code": "RESOURCE_NOT_EXISTS", "message": "订单不存在"})
        same = self.refunds.get(asked["out_refund_no"])
        left = self.told(order_no)["amount"]["total"] - self._refunded(order_no)
        if amount["total"] != self.told(order_no)["amount"]["total"] or (same and same["refund"] != amount["refund"]):
            differs = "订单金额或退款金额与之前请求不一致，请核实后再试"
            return self._error(400, {"code": "INVALID_REQUEST", "message": differs})
        if same is None:
            if amount["refund"] > left:
                why = "refund_fee大于可退金额" if left else "订单已全额退款"
                return self._error(400, {"code": "INVALID_REQUEST", "message": why})
            if amount["refund"] > self.balance:
                why = "基本账户余额不足，请充值后重新发起"
                return self._error(403, {"code": "NOT_ENOUGH", "message": why})
            self._accept(order_no, asked["out_refund_no"], amount["refund"], self.refunds_begin)
        return self._genuine(self.told_of_refund(asked["out_refund_no"]))

    def _refunded(self, order_no: str) -> int:
        counting = (each for each in self.refunds.values() if each["order_no"] == order_no)
        return sum(each["refund"] for each in counting if each["status"] != "CLOSED")

    def _accept(self, order_no: str, refund_no: str, fen: int, status: str) -> None:
        refund_id = f"5030000038{len(self.refunds):019d}"
        new = {"order_no": order_no, "refund": fen, "status": status, "refund_id": refund_id}
        self.refunds[refund_no] = new
        self.orders[order_no]["trade_state"] = "REFUND"
        self.balance -= fen

    def told_of_refund(self, refund_no: str) -> dict[str, Any]:
        """The facts of a refund in responses; its `changed` overrides some."""
        refund = self.refunds[refund_no]
        order = self.told(refund["order_no"])
        sums = {"total": order["amount"]["total"], "refund": refund["refund"]}
        told = {
            "refund_id": refund["refund_id"],
            "out_refund_no": refund_no,
            "transaction_id": order["transaction_id"],
            "out_trade_no": refund["order_no"],
            "channel": "ORIGINAL",
            "user_received_account": "招商银行信用卡0403",
            "create_time": "2026-05-01T12:00:00+08:00",
            "status": refund["status"],
            "amount": sums | {"payer_total": sums["total"], "payer_refund": sums["refund"], "currency": "CNY"},
        }
        return told | refund.get("changed", {})

    # --- actions of people

    def end_refund(self, refund_no: str, status: str = "SUCCESS") -> None:
        """A refund gets this status; a closed one returns its amount to the balance."""
        self.refunds[refund_no]["status"] = status
        if status == "CLOSED":
            self.balance += self.refunds[refund_no]["refund"]

    def refund_in_console(self, order_no: str, fen: int, refund_no: str = "50000000382019052709732678859") -> None:
        """Make a refund in the merchant console, under a number that the service does not know."""
        self._accept(order_no, refund_no, fen, "SUCCESS")

    def pay(self, order_no: str, total: int | None = None) -> None:
        """The payer pays the order's amount or another one, in fen."""
        self.orders[order_no]["trade_state"] = "SUCCESS"
        if total is not None:
            self.orders[order_no]["total"] = total

    def encrypted(self, text: bytes, key: str = "", data: str | None = "transaction") -> dict[str, Any]:
        """The `resource` of a notice; `data` is the associated data."""
        nonce = secrets.token_hex(6)
        cipher = AES.new((key or apiv3_key()).encode(), AES.MODE_GCM, nonce=nonce.encode())
        cipher.update((data or "").encode())
        text, tag = cipher.encrypt_and_digest(text)
        named = {} if data is None else {"associated_data": data}
        sealed = {"algorithm": "AEAD_AES_256_GCM", "ciphertext": b64encode(text + tag).decode(), "nonce": nonce}
        return {"original_type": "transaction", **sealed, **named}

    def notice(
        self, order_no: str, *, event: dict[str, Any] | None = None, resource: dict[str, Any] | None = None, **told: Any
    ) -> Sent:
        """The notice to the notify address of a paid order, signed now.

        `told` overrides the transaction before it is encrypted, `resource` and `event` the objects around it.
        """
        sealed = self.encrypted(json.dumps(self.told(order_no) | told, ensure_ascii=False).encode())
        whole = {
            "id": secrets.token_hex(16),
            "create_time": "2026-05-01T12:00:00+08:00",
            "resource_type": "encrypt-resource",
            "event_type": "TRANSACTION.SUCCESS",
            "summary": "支付成功",
            "resource": sealed | (resource or {}),
        }
        return self.sent(json.dumps(whole | (event or {}), ensure_ascii=False).encode())

    def refund_notice(self, refund_no: str, *, event: dict[str, Any] | None = None, **told: Any) -> Sent:
        """The notice about a refund that has ended, signed now; `told` and `event` override as in `notice`."""
        facts = self.told_of_refund(refund_no)
        status = facts.pop("status")
        amount = {name: value for name, value in facts["amount"].items() if name != "currency"}
        for name in ("channel", "create_time"):
            del facts[name]
        facts |= {"mchid": MCHID, "refund_status": status, "amount": amount}
        facts |= {"success_time": "2026-05-01T12:05:00+08:00"} if status == "SUCCESS" else {}
        sealed = self.encrypted(json.dumps(facts | told, ensure_ascii=False).encode(), data="refund")
        whole = {
            "id": secrets.token_hex(16),
            "create_time": "2026-05-01T12:05:00+08:00",
            "resource_type": "encrypt-resource",
            "event_type": f"REFUND.{status}",
            "summary": "退款结果",
            "resource": sealed | {"original_type": "refund"},
        }
        return self.sent(json.dumps(whole | (event or {}), ensure_ascii=False).encode())

    def sent(self, body: bytes) -> Sent:
        """These bytes as a notice, signed now."""
        return Sent("POST", body, {"Content-Type": "application/json", **self.signed(body)})


class WechatSignIn(Loopback):
    """WeChat's sign-in for one application; `openid` is the payer whose phone follows its links."""

    def __init__(self, server: HTTPServer, prefix: str = "sign-in"):
        super().__init__(server, prefix)
        self.openid = "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o"
        self.codes: dict[str, str] = {}  # openids by the code that was not exchanged yet
        self.errors: list[tuple[int, str]] = []

    def config(self, **more: str) -> dict[str, str]:
        """The fields of a channel's config."""
        return {"jsapi": "true", "app_secret": APP_SECRET, "sign_in_url": self.url, "sign_in_api": self.url, **more}

    def answer(self, path: str, request: Request) -> Response:
        asked = request.args.to_dict()
        if path == "connect/oauth2/authorize":
            assert list(asked) == ["appid", "redirect_uri", "response_type", "scope", "state"]
            assert re.fullmatch("[0-9A-Za-z]{1,128}", asked["state"]), "its documents allow no other characters"
            assert (asked["appid"], asked["response_type"], asked["scope"]) == (APPID, "code", "snsapi_base")
            code = secrets.token_hex(16)
            self.codes[code] = self.openid
            mark = "&" if "?" in asked["redirect_uri"] else "?"
            more = urlencode({"code": code, "state": asked["state"]})
            return Response(status=302, headers={"Location": f"{asked['redirect_uri']}{mark}{more}"})
        assert path == "sns/oauth2/access_token"
        if self.errors:
            return self._error(*self.errors.pop(0))
        if (asked["appid"], asked["secret"], asked["grant_type"]) != (APPID, APP_SECRET, "authorization_code"):
            return self._error(40125, "invalid appsecret")
        openid = self.codes.pop(asked["code"], "")
        if not openid:
            return self._error(40029, "invalid code")
        token = {"access_token": secrets.token_hex(32), "expires_in": 7200, "refresh_token": secrets.token_hex(32)}
        return self._said(token | {"openid": openid, "scope": "snsapi_base"})

    def _error(self, code: int, text: str) -> Response:
        return self._said({"errcode": code, "errmsg": f"{text}, rid: 6543-21"})

    @staticmethod
    def _said(said: dict[str, Any]) -> Response:
        return Response(json.dumps(said), content_type="text/plain")
