"""A loopback Alipay: one merchant's application on the OpenAPI gateway, with keys or with certificates."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from Cryptodome.Hash import SHA256
from Cryptodome.Signature import PKCS1_v1_5
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key, load_pem_public_key
from cryptography.x509.oid import NameOID
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.upstreams.loopback import Loopback, Sent, imported, key_pair

APP_ID, SELLER_ID = "2021000000000001", "2088000000000001"
CERT_SNS = ("app_cert_sn", "alipay_root_cert_sn")
PAGES = {"alipay.trade.wap.pay": "QUICK_WAP_WAY", "alipay.trade.page.pay": "FAST_INSTANT_TRADE_PAY"}
CHINA = timezone(timedelta(hours=8))
ISSUER = {"C": "CN", "O": "Loopback Financial", "OU": "Certification Authority"}
OIDS = dict(zip(("C", "O", "OU", "CN"), (NameOID.COUNTRY_NAME, NameOID.ORGANIZATION_NAME,
                NameOID.ORGANIZATIONAL_UNIT_NAME, NameOID.COMMON_NAME), strict=True))  # fmt: skip
# Braces, quotes and names of members inside a text: only a JSON parser finds the end of such a response.
STORE = '张三的“小店” }, "sign": "\\" {{ alipay_trade_query_response'
WRITTEN: dict[str, Callable[[dict[str, Any]], str]] = {
    "plain": lambda said: json.dumps(said, separators=(",", ":"), ensure_ascii=False),
    "pretty": lambda said: json.dumps(said, indent=2, ensure_ascii=False),
    "tricky": lambda said: json.dumps({"store_name": STORE, **said, "more": [{"a}": "{"}]}, ensure_ascii=False),
    "escaped": lambda said: json.dumps({"store_name": STORE, **said}).replace("/", "\\/"),
}


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(OIDS[part], value) for part, value in {**ISSUER, "CN": common}.items()])


def _certified(name: str, issuer: str, serial: int, key: Any, signer: Any) -> str:
    today = datetime.now(UTC)
    made = x509.CertificateBuilder(_name(issuer), _name(name), key, serial, today, today + timedelta(days=900))
    return made.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


@cache
def certificate(name: str, issuer: str, serial: int) -> str:
    """A certificate as PEM, of the key pair with this name and signed by the issuer's."""
    key: Any = load_pem_public_key(key_pair(name)[1].encode())
    return _certified(name, issuer, serial, key, load_pem_private_key(key_pair(issuer)[0].encode(), None))


@cache
def curved(name: str, serial: int) -> str:
    """A root certificate of a key on a curve."""
    key = ec.generate_private_key(ec.SECP384R1())
    return _certified(name, name, serial, key.public_key(), key)


def unreadable(pem: str) -> str:
    """An EC certificate like Alipay's: with an empty parameter of its algorithm, which `cryptography` refuses."""
    plain, odd = (bytes.fromhex(text) for text in ("300a06082a8648ce3d040302", "300c06082a8648ce3d0403020500"))
    der = bytearray(b64decode("".join(pem.splitlines()[1:-1])).replace(plain, odd))
    for at, more in ((2, 4), (6, 2)):  # the lengths of the whole and of the part that is signed
        der[at : at + 2] = (int.from_bytes(der[at : at + 2]) + more).to_bytes(2)
    lines = re.findall(".{1,64}", b64encode(der).decode())
    return "\n".join(("-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----\n"))


def _serial_number(issuer: str, serial: int) -> str:
    """Alipay's reading of the rule, from the facts in the certificate."""
    return hashlib.md5(f"CN={issuer},OU={ISSUER['OU']},O={ISSUER['O']},C={ISSUER['C']}{serial}".encode()).hexdigest()


def _joined(fields: dict[str, str], without: tuple[str, ...]) -> str:
    return "&".join("=".join(pair) for pair in sorted(fields.items()) if pair[0] not in without)


class Alipay(Loopback):
    """One application of one merchant. `written` is the format of responses: one of WRITTEN.

    `refunds_begin` is the status of a new refund: "" for one whose success only a later status check reports.
    """

    def __init__(self, server: HTTPServer, prefix: str = "alipay"):
        super().__init__(server, prefix)
        self.app_private, self.app_public = key_pair("alipay application")
        self.private, self.public = key_pair("alipay")
        self.written, self.balance = "tricky", Decimal(100_000)
        self.codes: dict[str, dict[str, str]] = {}  # precreated payments, by order number
        self.trades: dict[str, dict[str, str]] = {}  # their trades, once a payer scanned the code
        self.transfers: dict[str, dict[str, Any]] = {}
        self.transfers_end = "SUCCESS"
        self.refunds: dict[str, dict[str, Any]] = {}  # by request number, also those made in the console
        self.refunds_begin = "REFUND_SUCCESS"
        self.unpayable: dict[str, str] = {}  # the reason why a payee can't be paid, by account
        self.errors: deque[tuple[str, str, bool]] = deque()
        self.cert_serial = 3003  # of the certificate that signs responses
        # The archives by day such as 2026-05-01; `bill` changes the response that names one.
        self.bills: dict[str, bytes] = {}
        self.flows: dict[str, bytes] = {}
        self.bill: dict[str, str] = {}
        self._files: dict[str, bytes] = {}  # by token
        self.charset = "utf-8"  # of responses and notices, whatever a request asks for
        self.content_type = ""  # of responses; empty for the usual one with the charset

    @property
    def gateway(self) -> str:
        """The address."""
        return f"{self.url}/gateway.do"

    @property
    def certificates(self) -> dict[str, str]:
        """The three files of certificate mode; the roots as in Alipay's file, mixed with others."""
        root, curve = "Loopback Root R1", curved("Loopback Root E1", 1002)
        roots = [certificate(root, root, 1001), curve, unreadable(curve), certificate("G3", "G3", 1003)]
        return {
            "app_certificate": certificate("alipay application", root, 2002),
            "alipay_certificate": certificate("alipay", root, 3003) + certificate(root, root, 1001),
            "alipay_root_certificates": "\n".join(roots),
        }

    def config(self, mode: str, **more: str) -> dict[str, str]:
        """The config of a channel for this application, in mode `key` or `certificate`."""
        own = {"base_url": self.gateway, "app_id": APP_ID, "seller_id": SELLER_ID, "private_key": self.app_private}
        return own | ({"alipay_public_key": self.public} if mode == "key" else self.certificates) | more

    def errs(self, code: str, reason: str, signed: bool = True) -> None:
        """Let the next call have no effect and get this error; no response if the code is empty."""
        self.errors.append((code, reason, signed))

    # --- signatures

    def sign(self, text: str) -> str:
        """Alipay's own, over the bytes that it sends."""
        digest = SHA256.new(text.encode(self.charset))
        return b64encode(PKCS1_v1_5.new(imported(self.private)).sign(digest)).decode()

    def _sent(self, text: str) -> Response:
        content_type = self.content_type or f"text/html;charset={self.charset}"
        return Response(text.encode(self.charset), content_type=content_type)

    def _holds(self, fields: dict[str, str]) -> bool:
        digest = SHA256.new(_joined(fields, ("sign",)).encode())
        given = b64decode(fields.get("sign", ""))
        return PKCS1_v1_5.new(imported(self.app_public)).verify(digest, given) is True

    def _signed(self, name: str, said: dict[str, str], with_certificate: bool) -> Response:
        text = WRITTEN[self.written](said)
        serial = {"alipay_cert_sn": _serial_number("Loopback Root R1", self.cert_serial)} if with_certificate else {}
        rest = json.dumps(serial | {"sign": self.sign(text)})[1:-1]
        return self._sent(f'{{"{name}":{text},{rest}}}')

    # --- the protocol

    def answer(self, path: str, request: Request) -> Response:
        if path == "downloadBillFile.resource":
            file = self._files.pop(request.args.get("fileId", ""), None)
            return Response(file, content_type="application/octet-stream") if file else Response("expired", 403)
        form = parse_qsl(request.get_data().decode(), keep_blank_values=True)
        fields = dict(parse_qsl(request.query_string.decode(), keep_blank_values=True) + form)
        method = fields.get("method", "")
        name, with_certificate = f"{method.replace('.', '_')}_response", "app_cert_sn" in fields
        wrong = self._wrong_request(path, fields)
        if wrong:
            told = f"验签出错，网关生成的验签字符串为：{_joined(fields, ('sign', *CERT_SNS))}"  # as the real one does
            said = {"code": "40002", "msg": "Invalid Arguments", "sub_code": f"isv.{wrong}", "sub_msg": told}
            return self._sent(json.dumps({name: said}, ensure_ascii=False))  # these are unsigned
        code, reason, signed = self.errors.popleft() if self.errors else ("", "", True)
        if code:
            said = self._no(reason) | {"code": code}
            unsigned = self._sent(json.dumps({name: said}, ensure_ascii=False))
            return self._signed(name, said, with_certificate) if signed else unsigned
        verbs = {
            "alipay.trade.precreate": self._precreate,
            "alipay.trade.query": self._query,
            "alipay.trade.close": self._close,
            "alipay.trade.refund": self._refund,
            "alipay.trade.fastpay.refund.query": self._ask_refund,
            "alipay.data.dataservice.bill.downloadurl.query": self._bill,
            "alipay.fund.trans.uni.transfer": self._transfer,
            "alipay.fund.trans.common.query": self._ask_transfer,
        }
        content = json.loads(fields["biz_content"]) | {"notify_url": fields.get("notify_url", "")}
        if method in PAGES:
            return self._page(method, content | {"return_url": fields.get("return_url", "")})
        return self._signed(name, verbs[method](content), with_certificate)

    def _wrong_request(self, path: str, fields: dict[str, str]) -> str:
        now = datetime.now(CHINA).replace(tzinfo=None)
        if path != "gateway.do" or fields.get("app_id") != APP_ID:
            return "invalid-app-id"
        if fields.get("sign_type") != "RSA2" or not self._holds(fields):
            return "invalid-signature"
        if abs(now - datetime.strptime(fields["timestamp"], "%Y-%m-%d %H:%M:%S")) > timedelta(minutes=10):
            return "invalid-timestamp"
        if (fields["charset"], fields["version"], fields.get("format", "JSON")) != ("utf-8", "1.0", "JSON"):
            return "invalid-parameter"
        roots = "_".join(_serial_number(name, serial) for name, serial in (("Loopback Root R1", 1001), ("G3", 1003)))
        expected = (_serial_number("Loopback Root R1", 2002), roots)
        given = tuple(fields.get(name) for name in CERT_SNS)
        if given != expected and (any(given) or ".fund." in fields["method"]):
            return "invalid-app-cert-sn"
        return ""

    @staticmethod
    def _no(reason: str, told: str = "业务处理失败") -> dict[str, str]:
        return {"code": "40004", "msg": "Business Failed", "sub_code": reason, "sub_msg": told}

    @staticmethod
    def _yes(**facts: str) -> dict[str, str]:
        return {"code": "10000", "msg": "Success", **facts}

    def _precreate(self, content: dict[str, str]) -> dict[str, str]:
        number, there = content["out_trade_no"], self.codes.get(content["out_trade_no"])
        until = datetime.strptime(content["time_expire"], "%Y-%m-%d %H:%M:%S")
        if until <= datetime.now(CHINA).replace(tzinfo=None):
            return self._no("ACQ.NOW_TIME_AFTER_EXPIRE_TIME_ERROR")
        if self.trades.get(number, {}).get("trade_status") == "TRADE_SUCCESS":
            return self._no("ACQ.TRADE_HAS_SUCCESS", "交易已被支付")
        if there and there["total_amount"] != content["total_amount"]:
            return self._no("ACQ.CONTEXT_INCONSISTENT")
        qr_code = f"https://qr.alipay.com/bax{len(self.codes):08d}?t=1&s=2"
        self.codes.setdefault(number, {**content, "qr_code": qr_code})
        return self._yes(out_trade_no=number, qr_code=self.codes[number]["qr_code"])

    def _page(self, method: str, content: dict[str, str]) -> Response:
        """Alipay's own page, on which the payer opens the app, scans or signs in."""
        assert content["product_code"] == PAGES[method]
        assert "quit_url" in content or method == "alipay.trade.page.pay"
        assert not urlsplit(content["return_url"]).query, "its documents allow no parameters there"
        self.codes.setdefault(content["out_trade_no"], {**content, "way": method})
        return Response(f"<h1>{content['subject']}</h1><b>{content['total_amount']}</b>", content_type="text/html")

    def _query(self, content: dict[str, str]) -> dict[str, str]:
        trade = self.trades.get(content["out_trade_no"])
        return self._yes(**trade) if trade else self._no("ACQ.TRADE_NOT_EXIST", "交易不存在")

    def _close(self, content: dict[str, str]) -> dict[str, str]:
        trade = self.trades.get(content["out_trade_no"])
        if trade is None:
            return self._no("ACQ.TRADE_NOT_EXIST", "交易不存在")
        if trade["trade_status"] != "WAIT_BUYER_PAY":
            return self._no("ACQ.TRADE_STATUS_ERROR", "交易状态不合法")
        trade["trade_status"] = "TRADE_CLOSED"
        return self._yes(out_trade_no=trade["out_trade_no"], trade_no=trade["trade_no"])

    def _paid(self, trade_no: str) -> dict[str, str] | None:
        return next((each for each in self.trades.values() if each["trade_no"] == trade_no), None)

    def _refunded(self, trade_no: str) -> Decimal:
        counting = (each["amount"] for each in self.refunds.values() if each["trade_no"] == trade_no)
        return sum(counting, Decimal(0))

    def _accept(self, trade: dict[str, str], number: str, amount: Decimal, status: str) -> None:
        self.refunds[number] = {"trade_no": trade["trade_no"], "amount": amount, "status": status}
        self.balance -= amount
        if self._refunded(trade["trade_no"]) == Decimal(trade["total_amount"]):
            trade["trade_status"] = "TRADE_CLOSED"

    def _refund(self, content: dict[str, str]) -> dict[str, str]:
        """A refund: the same number is the same refund, and another one must fit what is left and the balance."""
        documented = {"trade_no", "refund_amount", "out_request_no", "refund_reason", "notify_url"}
        assert set(content) <= documented, "with other fields it may refund twice"
        number, amount = content["out_request_no"], Decimal(content["refund_amount"])
        trade, same = self._paid(content["trade_no"]), self.refunds.get(content["out_request_no"])
        if trade is None:
            return self._no("ACQ.TRADE_NOT_EXIST", "交易不存在")
        if same and same["amount"] != amount:
            return self._no("ACQ.DISCORDANT_REPEAT_REQUEST", "退款金额不一致")
        if same is None:
            states = {"WAIT_BUYER_PAY": "TRADE_STATUS_ERROR", "TRADE_CLOSED": "TRADE_HAS_CLOSE"}
            states |= {"TRADE_FINISHED": "TRADE_HAS_FINISHED"}
            if trade["trade_status"] in states:
                return self._no(f"ACQ.{states[trade['trade_status']]}", "交易状态不合法")
            if self._refunded(trade["trade_no"]) + amount > Decimal(trade["total_amount"]):
                return self._no("ACQ.REASON_TRADE_REFUND_FEE_ERR", "退款金额无效")
            if amount > self.balance:
                return self._no("ACQ.SELLER_BALANCE_NOT_ENOUGH", "卖家余额不足")
            self._accept(trade, number, amount, self.refunds_begin)
        facts = {name: trade[name] for name in ("trade_no", "out_trade_no", "buyer_logon_id")}
        change = "Y" if same is None and self.refunds_begin else "N"
        return self._yes(**facts, fund_change=change, refund_fee=f"{self._refunded(trade['trade_no']):.2f}")

    def _ask_refund(self, content: dict[str, str]) -> dict[str, str]:
        trade, refund = self._paid(content["trade_no"]), self.refunds.get(content["out_request_no"])
        if trade is None:
            return self._no("ACQ.TRADE_NOT_EXIST", "交易不存在")
        if refund is None or not refund["status"]:
            return self._yes()
        facts = {name: trade[name] for name in ("trade_no", "out_trade_no", "total_amount")}
        facts |= {"out_request_no": content["out_request_no"], "refund_amount": f"{refund['amount']:.2f}"}
        return self._yes(**facts | {"refund_status": refund["status"]} | refund.get("changed", {}))

    def _bill(self, content: dict[str, str]) -> dict[str, str]:
        """Name the archive of a bill, by a token for one download."""
        files = {"trade": self.bills, "signcustomer": self.flows}[content["bill_type"]]
        if content["bill_date"] not in files:
            return self._no("isp.bill_not_exist", "账单不存在")
        token = secrets.token_urlsafe(32)
        self._files[token] = files[content["bill_date"]]
        address = f"{self.url}/downloadBillFile.resource?bizType={content['bill_type']}&fileId={token}"
        return self._yes(**{"bill_download_url": address, **self.bill})

    def _transfer(self, content: dict[str, Any]) -> dict[str, str]:
        number, payee, amount = content["out_biz_no"], content["payee_info"], Decimal(content["trans_amount"])
        if (content["product_code"], content["biz_scene"]) != ("TRANS_ACCOUNT_NO_PWD", "DIRECT_TRANSFER"):
            return self._no("INVALID_PARAMETER")
        if payee["identity"] in self.unpayable:
            return self._no(self.unpayable[payee["identity"]], f"收款账号{payee['identity']}有误")
        if number not in self.transfers:
            if amount > self.balance:
                return self._no("PAYER_BALANCE_NOT_ENOUGH", "付款方余额不足")
            self.balance -= amount
            made = {"order_id": f"TR{number}", "status": self.transfers_end}
            self.transfers[number] = {"out_biz_no": number, "trans_amount": str(amount), "payee": payee, **made}
        said = {name: self.transfers[number][name] for name in ("out_biz_no", "order_id", "status")}
        return self._yes(**said, pay_fund_order_id=f"F{number}", trans_date="2026-05-01 12:00:00")

    def _ask_transfer(self, content: dict[str, str]) -> dict[str, str]:
        transfer = self.transfers.get(content["out_biz_no"])
        if transfer is None:
            return self._no("ORDER_NOT_EXIST", "转账订单不存在")
        shown = ("out_biz_no", "order_id", "status", "trans_amount", "error_code", "fail_reason")
        named = {name: transfer[name] for name in shown if name in transfer}
        if named["status"] != "SUCCESS":
            del named["trans_amount"]
        return self._yes(**named)

    # --- actions of people

    def scan(self, order_no: str) -> None:
        """The payer scans the code, which creates its trade."""
        code = self.codes[order_no]
        trade = {"trade_no": f"20260501220014{len(self.trades):014d}", "trade_status": "WAIT_BUYER_PAY"}
        named = {"out_trade_no": order_no, "total_amount": code["total_amount"], "buyer_logon_id": "zha***@example.com"}
        self.trades.setdefault(order_no, trade | named)

    def pay(self, order_no: str, money: str = "") -> None:
        """The payer scans and pays the order's amount or another one."""
        self.scan(order_no)
        trade = self.trades[order_no]
        trade |= {"trade_status": "TRADE_SUCCESS", "total_amount": money or trade["total_amount"]}

    def end_refund(self, number: str, status: str = "REFUND_SUCCESS") -> None:
        """A refund gets this status, which its status checks report from now on."""
        self.refunds[number]["status"] = status

    def refund_in_console(self, order_no: str, money: str, number: str = "RF20260501") -> None:
        """Make a refund in Alipay's console, under a number that the service does not know."""
        self._accept(self.trades[order_no], number, Decimal(money), "REFUND_SUCCESS")

    def refund_notice(self, order_no: str, number: str, **changed: str) -> Sent:
        """The notice about the payment that Alipay repeats after a refund."""
        so_far = f"{self._refunded(self.trades[order_no]['trade_no']):.2f}"
        after = {"gmt_refund": "2026-05-01 12:05:00.123", "refund_fee": so_far, "out_biz_no": number}
        return self.notice(order_no, **after | changed)

    def return_address(self, order_no: str) -> str:
        """The address to which its page sends the payer after a payment: with signed fields."""
        made = self.codes[order_no]
        told = {"charset": "utf-8", "out_trade_no": order_no, "method": f"{made['way']}.return", "version": "1.0"}
        told |= {"total_amount": made["total_amount"], "trade_no": "2026050122001400000000", "app_id": APP_ID}
        told |= {"auth_app_id": APP_ID, "seller_id": SELLER_ID, "timestamp": "2026-05-01 12:00:00"}
        signed = told | {"sign": self.sign(_joined(told, ())), "sign_type": "RSA2"}
        return f"{made['return_url']}?{urlencode(signed)}"

    def notice_fields(self, order_no: str, **changed: str) -> dict[str, str]:
        """The fields of a notice, without the signature."""
        now = datetime.now(CHINA).strftime("%Y-%m-%d %H:%M:%S")
        own = {
            "app_id": APP_ID,
            "auth_app_id": APP_ID,
            "seller_id": SELLER_ID,
            "subject": self.codes[order_no]["subject"],
        }
        always = {"notify_type": "trade_status_sync", "notify_time": now, "charset": self.charset, "version": "1.0"}
        lists = {
            "fund_bill_list": '[{"amount":"100.00","fundChannel":"ALIPAYACCOUNT"}]',
            "body": "",
            "memo": "谢谢 + &=",
        }
        return {**self.trades[order_no], **own, **always, **lists, **changed}

    def notice(self, order_no: str, **changed: str) -> Sent:
        """The notice to a trade's notify address; `changed` before it is signed."""
        fields = self.notice_fields(order_no, **changed)
        signature = {"sign_type": "RSA2", "sign": self.sign(_joined(fields, ()))}
        headers = {"Content-Type": f"application/x-www-form-urlencoded; charset={self.charset}"}
        return Sent("POST", urlencode(fields | signature, encoding=self.charset).encode(), headers)
