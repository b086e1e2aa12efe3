"""A loopback epay platform: version 1 with MD5 and version 2 with RSA, on the same records."""

from __future__ import annotations

import hashlib
import json
import re
import time
from base64 import b64decode, b64encode
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, urlencode

from Cryptodome.Hash import SHA256
from Cryptodome.Signature import PKCS1_v1_5
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.upstreams.loopback import Loopback, Sent, imported, key_pair

PID, KEY = "1001", "an-epay-key-of-version-1"
ORDER_NO = re.compile(r"[A-Za-z0-9._\-|]+")
KINDS = ("alipay", "wxpay", "bank", "qqpay")


def _to_sign(fields: dict[str, str]) -> str:
    """The platform's reading of the rule, independent of the driver's."""
    names = [name for name, value in fields.items() if value != "" and name not in ("sign", "sign_type")]
    return "&".join("=".join((name, fields[name])) for name in sorted(names, key=str.encode))


class EpayPlatform(Loopback):
    """One merchant's account. `gives` is the form of a new payment: qrcode, payurl (jump), urlscheme or html."""

    def __init__(self, server: HTTPServer, prefix: str = "epay", key: str = KEY):
        super().__init__(server, prefix)
        self.key = key
        self.merchant_private, self.merchant_public = key_pair("epay merchant")
        self.private, self.public = key_pair(f"epay platform {key}")
        self.gives, self.can_close, self.balance = "qrcode", True, Decimal(100_000)
        self.orders: dict[str, dict[str, str]] = {}
        self.payouts: dict[str, dict[str, str]] = {}
        self.transfers_end = "1"  # a transfer's status at a status check
        self.merchant_state = 1  # 0: closed, 2: under review
        self.pays_out = True
        self.clock_off = 0  # seconds by which the time of its responses is wrong
        self.barred: set[str] = set()  # payers' addresses that may not pay any more today
        self.is_old = False  # its responses about transfers contain no number
        self.knows_by = ("out_biz_no", "biz_no")  # the numbers that identify a transfer
        self.adds: dict[str, Any] = {}  # additional fields of its response to a new order
        self.jump_url = ""  # the address at which the receiver of a transfer confirms it
        self.page = ""  # HTML instead of the response to a new order
        self.absent: Response | None = None  # its response about an unknown order
        self.has_query = True  # it has api.php
        self.kinds = KINDS  # its names of payment methods
        # Refunds: those that it stored, by its own number; the sum by order; and what its own upstream refunded.
        self.refunds: dict[str, dict[str, str]] = {}
        self.refunded: dict[str, Decimal] = {}
        self.at_upstream: dict[str, Decimal] = {}
        self.success_of_refunds = "0"  # version 1's code: monlor/Epay's, or 1
        self.tells_sums = False  # version 1 reports the refunded sum of an order
        self.refusal: str | None = None  # its error for each refund
        self.upstream_error = ""  # what its upstream responds, although it makes the refund

    def config(self, version: str, **more: str) -> dict[str, str]:
        """The config of a channel for this account."""
        keys = (
            {"key": self.key} if version == "1" else {"private_key": self.merchant_private, "platform_key": self.public}
        )
        return {"base_url": self.url, "version": version, "pid": PID, **keys, **more}

    # --- signatures

    def _md5(self, fields: dict[str, str]) -> str:
        return hashlib.md5((_to_sign(fields) + self.key).encode()).hexdigest()

    def _rsa(self, fields: dict[str, str]) -> str:
        digest = SHA256.new(_to_sign(fields).encode())
        return b64encode(PKCS1_v1_5.new(imported(self.private)).sign(digest)).decode()

    def _holds(self, fields: dict[str, str]) -> bool:
        if fields.get("sign_type") == "RSA":
            digest = SHA256.new(_to_sign(fields).encode())
            given = b64decode(fields.get("sign", ""))
            return PKCS1_v1_5.new(imported(self.merchant_public)).verify(digest, given) is True
        return fields.get("sign") == self._md5(fields)

    # --- the protocol

    def answer(self, path: str, request: Request) -> Response:
        if path == "api.php" and self.has_query:
            query = request.args.to_dict()
            if query["act"] == "query":
                return self._json(self._merchant_v1(query))
            if query["act"] == "refund":
                return self._json(self._refund_v1(request.form.to_dict()))
            return self._unless_absent(query, self._json(self._query_v1(query)))
        fields = dict(parse_qsl(request.get_data().decode(), keep_blank_values=True)) or request.args.to_dict()
        if self.page and path in ("mapi.php", "api/pay/create"):
            return Response(self.page, content_type="text/html; charset=utf-8")
        if path in ("mapi.php", "submit.php"):
            return self._create_v1(path, fields)
        if not path.startswith("api/"):
            return Response("<html>404 page not found</html>", 404)
        said = self._json(self._v2(path.removeprefix("api/"), fields))
        return self._unless_absent(fields, said) if path == "api/pay/query" else said

    def _unless_absent(self, fields: dict[str, str], said: Response) -> Response:
        there = self._find(fields)
        return said if there or self.absent is None else self.absent

    @staticmethod
    def _json(said: dict[str, Any]) -> Response:
        return Response(json.dumps(said, ensure_ascii=False), content_type="text/html; charset=utf-8")

    def _create_v1(self, path: str, fields: dict[str, str]) -> Response:
        said = self._new_order(fields)
        if path == "submit.php":
            return Response(f"<html>pay {said}</html>", content_type="text/html")
        if "trade_no" in said:
            name = {"jump": "payurl", "rooted": "payurl", "script": "payurl", "image": "qrcode"}.get(
                self.gives, self.gives
            )
            info = self._pay_info(said["trade_no"], self.gives)
            shown = {name: info} if info else {}
            said = {"code": 1, "msg": "", "trade_no": said["trade_no"], **shown, **self.adds}
        return self._json(said)

    @staticmethod
    def _pay_info(trade_no: str, gives: str) -> str:
        return {
            "": "",
            "qrcode": f"weixin://wxpay/bizpayurl?pr={trade_no}",
            "jump": f"https://pay.example.com/pay/{trade_no}/",
            "rooted": f"/pay/qrcode/{trade_no}/?d=1",
            "urlscheme": f"weixin://dl/business/?t={trade_no}",
            "html": "<form action='https://pay.example.com/'></form>",
            "script": "javascript:alert(1)",
            "image": f"data:image/png;base64,{'A' * 4000}",
        }[gives]

    def _new_order(self, fields: dict[str, str]) -> dict[str, Any]:
        needed = ("pid", "type", "out_trade_no", "notify_url", "return_url", "name", "money")
        if fields.get("pid") != PID:
            return {"code": -3, "msg": "商户ID不存在"}
        if not self._holds(fields):
            return {"code": -1, "msg": "签名校验失败"}
        if any(not fields.get(name) for name in needed) or not ORDER_NO.fullmatch(fields["out_trade_no"]):
            return {"code": -1, "msg": "参数错误"}
        if fields["type"] not in self.kinds or "?" in fields["notify_url"] or len(fields["name"].encode()) > 127:
            return {"code": -1, "msg": "参数错误"}
        if fields.get("clientip") in self.barred:
            return {"code": -1, "msg": "你今天已无法再发起支付，请明天再试"}
        there = self.orders.get(fields["out_trade_no"])
        if there and (there["status"] != "0" or there["money"] != fields["money"]):
            return {"code": -1, "msg": "该订单号已存在，请返回来源地重新发起请求"}
        if not there:
            there = {"status": "0", "trade_no": f"EP{len(self.orders) + 1:015d}", "pid": PID} | {
                name: fields[name] for name in ("out_trade_no", "type", "name", "money", "notify_url")
            }
            self.orders[fields["out_trade_no"]] = there
        return {"code": 0, "trade_no": there["trade_no"]}

    def _shown(self, order: dict[str, str]) -> dict[str, Any]:
        shown = {name: value for name, value in order.items() if name != "notify_url"}
        return shown | {"addtime": "2026-05-01 12:00:00"}

    def _query_v1(self, query: dict[str, str]) -> dict[str, Any]:
        if query.get("pid") != PID or query.get("key") != self.key:
            return {"code": -3, "msg": "商户密钥错误"}
        order = self._find(query)
        if order is None:
            return {"code": -1, "msg": "订单号不存在"}
        # Numbers as in PHP, and money as the database's decimal.
        numbers = {name: int(order[name]) for name in ("status", "pid")}
        back = self._refunded_of(order) if self.tells_sums else {}
        return {"code": 1, "msg": "succ", **self._shown(order), **numbers, **back}

    def _refunded_of(self, order: dict[str, str]) -> dict[str, str]:
        back = self.refunded.get(order["trade_no"])
        return {"refundmoney": f"{back:.2f}"} if back else {}

    def _find(self, fields: dict[str, str]) -> dict[str, str] | None:
        """The order with this number: the platform's, or the merchant's."""
        if fields.get("trade_no"):
            return next((each for each in self.orders.values() if each["trade_no"] == fields["trade_no"]), None)
        return self.orders.get(fields.get("out_trade_no", ""))

    # --- refunds

    def _refund_v1(self, form: dict[str, str]) -> dict[str, Any]:
        if form.get("pid") != PID or form.get("key") != self.key:
            return {"code": -3, "msg": "商户密钥错误"}
        said = self._refund(form)
        if said["code"] != 0 or self.success_of_refunds == "0":
            return said
        return {"code": 1, "msg": "退款成功", "money": said["money"]}

    def _refund_v2(self, fields: dict[str, str]) -> dict[str, Any]:
        there = next((each for each in self.refunds.values() if each["out_refund_no"] == fields["out_refund_no"]), None)
        if there and there["status"] == "1":
            return {"code": 0, "msg": "已存在相同退款单号！", **there}
        return self._refund(fields)

    def _refund(self, fields: dict[str, str]) -> dict[str, Any]:
        """As monlor/Epay does it: the refund is stored, and the number known, once the upstream succeeded."""
        order = self._find(fields)
        if self.refusal is not None:
            return {"code": -1, "msg": self.refusal}
        if order is None:
            return {"code": -1, "msg": "当前订单不存在！"}
        number, whole, money = order["trade_no"], Decimal(order["money"]), Decimal(fields["money"])
        if money > whole:
            return {"code": -1, "msg": "退款金额不能大于订单金额"}
        if self.refunded.get(number, 0) >= whole:
            return {"code": -1, "msg": "该订单已全额退款！"}
        if money > self.balance:
            return {"code": -1, "msg": "商户余额不足，请先充值"}
        if self.at_upstream.get(number, 0) + money > whole:
            return {"code": -1, "msg": "退款失败：退款金额超出"}
        self.at_upstream[number] = self.at_upstream.get(number, Decimal(0)) + money
        if self.upstream_error:
            return {"code": -1, "msg": f"退款失败：{self.upstream_error}"}
        self.refunded[number] = self.refunded.get(number, Decimal(0)) + money
        order["status"] = "2"
        refund_no = f"RF{len(self.refunds) + 1:017d}"
        self.refunds[refund_no] = {
            "refund_no": refund_no,
            "out_refund_no": fields.get("out_refund_no", refund_no),
            "trade_no": number,
            "money": fields["money"],
            "reducemoney": fields["money"],
            "status": "1",
        }
        return {"code": 0, "msg": "退款成功！", **self.refunds[refund_no]}

    def _ask_refund(self, fields: dict[str, str]) -> dict[str, Any]:
        found = [each for each in self.refunds.values() if each["out_refund_no"] == fields.get("out_refund_no")]
        return {"code": 0, **found[0]} if found else {"code": -1, "msg": "退款记录不存在"}

    def _merchant_v1(self, query: dict[str, str]) -> dict[str, Any]:
        if query.get("pid") != PID or query.get("key") != self.key:
            return {"code": -3, "msg": "商户密钥错误"}
        return {"code": 1, "pid": int(PID), "active": self.merchant_state, "money": "1000.00"}

    def _merchant_v2(self, fields: dict[str, str]) -> dict[str, Any]:
        return {"code": 0, "pid": int(PID), "status": 1, "pay_status": self.merchant_state, "money": "1000.00"}

    def _balance(self, fields: dict[str, str]) -> dict[str, Any]:
        if not self.pays_out:
            return {"code": -1, "msg": "商户未开启代付API接口"}
        return {"code": 0, "available_money": f"{self.balance:.2f}", "transfer_rate": "0.5"}

    def _v2(self, path: str, fields: dict[str, str]) -> dict[str, Any]:
        if fields.get("pid") != PID or not self._holds(fields):
            return {"code": -1, "msg": "RSA签名校验失败"}
        if abs(time.time() - int(fields.get("timestamp", "0"))) > 300:
            return {"code": -1, "msg": "时间戳字段不正确"}
        verbs = {
            "pay/create": self._create_v2,
            "pay/submit": self._new_order,
            "pay/query": self._query_v2,
            "pay/close": self._close_v2,
            "merchant/info": self._merchant_v2,
            "merchant/orders": self._list_v2,
            "pay/refund": self._refund_v2,
            "pay/refundquery": self._ask_refund,
            "transfer/balance": self._balance,
            "transfer/submit": self._transfer,
            "transfer/query": self._ask_transfer,
        }
        said = verbs[path](fields)
        if said["code"] != 0:
            return said  # errors are unsigned
        stamp = str(int(time.time()) + self.clock_off)
        texts = {name: str(value) for name, value in said.items() if not isinstance(value, list)}  # as in PHP
        texts |= {"timestamp": stamp}
        return {**said, "timestamp": stamp, "sign": self._rsa(texts), "sign_type": "RSA"}

    def _create_v2(self, fields: dict[str, str]) -> dict[str, Any]:
        if fields.get("method") not in ("web", "jump") or not fields.get("clientip"):
            return {"code": -1, "msg": "参数错误"}
        said = self._new_order(fields)
        if said["code"] != 0:
            return said
        gives = "jump" if fields["method"] == "jump" else self.gives
        kind = {"rooted": "jump", "script": "jump", "image": "qrcode"}.get(gives, gives)
        return said | {"pay_type": kind, "pay_info": self._pay_info(said["trade_no"], gives), **self.adds}

    def _query_v2(self, fields: dict[str, str]) -> dict[str, Any]:
        order = self._find(fields)
        if order is None:
            return {"code": -1, "msg": "订单号不存在"}
        return {"code": 0, **self._shown(order), **self._refunded_of(order)}

    def _list_v2(self, fields: dict[str, str]) -> dict[str, Any]:
        """A page of the orders, newest first; `addtime` is that of an order, if it has one."""
        begin, most = int(fields["offset"]), min(int(fields["limit"]), 50)
        newest = list(self.orders.values())[::-1]
        page = [self._shown(each) | each | self._refunded_of(each) for each in newest[begin : begin + most]]
        return {"code": 0, "data": page}

    def _close_v2(self, fields: dict[str, str]) -> dict[str, Any]:
        order = self.orders.get(fields.get("out_trade_no", ""))
        if not self.can_close or order is None or order["status"] != "0":
            return {"code": -1, "msg": "该支付插件不支持关闭订单"}
        order["closed"] = "1"
        return {"code": 0, "msg": "succ"}

    def _transfer(self, fields: dict[str, str]) -> dict[str, Any]:
        number = fields.get("out_biz_no", "")
        if not re.fullmatch(r"[0-9]{19}", number) or fields.get("type") not in KINDS or not fields.get("account"):
            return {"code": -1, "msg": "参数错误"}
        if number in self.payouts:
            return {"code": -1, "msg": "该交易号已存在"}
        if Decimal(fields["money"]) > self.balance:
            return {"code": -1, "msg": "需支付金额大于可转账余额"}
        self.balance -= Decimal(fields["money"])
        sent = {name: fields.get(name, "") for name in ("type", "account", "name", "money")}
        self.payouts[number] = {**sent, "biz_no": f"BZ{number}", "status": "0", "errmsg": ""}
        if self.is_old:
            return {"code": 0, "msg": "succ", "status": 0, "orderid": f"BANK{number}"}
        confirm = {"jumpurl": self.jump_url} if self.jump_url else {}
        return {"code": 0, "msg": "succ", "status": 0, "biz_no": f"BZ{number}", "out_biz_no": number, **confirm}

    def _ask_transfer(self, fields: dict[str, str]) -> dict[str, Any]:
        number = next((fields[name] for name in self.knows_by if fields.get(name)), "")
        payout = self.payouts.get(number)
        if payout is None:
            return {"code": -1, "msg": "转账交易号不存在"}
        payout["status"] = self.transfers_end
        failed = {"errmsg": "收款方账户异常"} if self.transfers_end == "2" else {}
        facts = {"status": int(payout["status"])}
        if not self.is_old:
            facts |= {"biz_no": payout["biz_no"], "out_biz_no": number}
        return {"code": 0, "msg": "succ", **facts, "amount": payout["money"], **failed}

    # --- actions of people

    def pay(self, order_no: str, money: str = "") -> None:
        """The payer pays the order's amount or another one."""
        paid = {"status": "1", "endtime": "2026-05-01 12:00:00"}
        self.orders[order_no] |= paid | {"money": money or self.orders[order_no]["money"]}

    def has_after_all(self, other: EpayPlatform, order_no: str, money: str = "", status: str = "1") -> None:
        """It has a payment for an order that it refused, before a group passed the order on to another platform."""
        facts = {"out_trade_no": order_no, "trade_no": f"AFTER{order_no[-8:]}", "status": status}
        passed_on = other.orders[f"{order_no}_2"]
        self.orders[order_no] = passed_on | facts | {"money": money or passed_on["money"]}

    def posted(self, order_no: str, **changed: str) -> Sent:
        """The same notice of version 1 as a form, as some platforms send it."""
        body = self.notice(order_no, "1", **changed).query.encode()
        return Sent("POST", body, {"Content-Type": "application/x-www-form-urlencoded"})

    def notice(self, order_no: str, version: str = "1", **changed: str) -> Sent:
        """The notice to the notify address once the order is paid; `changed` before it is signed."""
        order = self.orders[order_no]
        fields = {name: order[name] for name in ("pid", "trade_no", "out_trade_no", "type", "name", "money")}
        fields |= {"trade_status": "TRADE_SUCCESS", **changed}
        if version == "2":
            fields |= {"timestamp": str(int(time.time())), "endtime": "2026-05-01 12:00:00"}
        signed = {"sign": self._md5(fields) if version == "1" else self._rsa(fields)}
        return Sent("GET", b"", {}, urlencode(fields | signed | {"sign_type": "MD5" if version == "1" else "RSA"}))
