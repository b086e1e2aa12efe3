"""What the tests of all drivers know about each one: its signatures, its answers, and what it must not believe.

An adapter is a channel's events (`tests/upstreams/money_moves.py`, `payout_moves.py`) with tables of cases by name:

- `refused_notices`: `(adapter, order_no)` makes a notice that changes nothing; and the beginning of the recorded reason
- `refusals`: `(adapter, patch)` lets the upstream refuse the next payment; and its reason in the history
- `unclear`: `(adapter, patch)` lets its next response to a new payment be one that proves nothing
- `odd_reports`: `(adapter, order_no)` changes its report on a paid order to one that proves nothing
- `false_responses`: `(adapter)` changes all its responses to status checks from now on to some that prove nothing
- `states`: `(adapter, order_no)` changes the state of an unpaid order there; and the order's status here after a check
- `mistakes`: wrong values of a config ("-" leaves a field out), and the fields that the error names
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

from werkzeug import Response

from gateways.sandbox import records
from tests.upstreams import money_moves, payout_moves
from tests.upstreams.alipay import SELLER_ID, curved
from tests.upstreams.epay import KEY, EpayPlatform
from tests.upstreams.loopback import Sent, key_pair
from tests.upstreams.wechatpay import KEY_ID, MERCHANT_SERIAL, apiv3_key, certificate

ANOTHER = "1" * 24  # a number of no order
BAD, NONSENSE = "bad signature", "the fields are invalid"
Made = tuple[Callable[[Any, str], Sent], str]


def wrong(**fields: list[str]) -> dict[str, Any]:
    """Mistakes in one field each."""
    return {f"{name}={value!r:.20}": ({name: value}, [name]) for name, values in fields.items() for value in values}


def changed(**facts: Any) -> Callable[[Any, str], Sent]:
    """Make a genuine notice with other facts."""
    return lambda adapter, order_no: adapter.notice(order_no, **facts)


def spoilt(change: Callable[[Any], Any], part: str = "body") -> Callable[[Any, str], Sent]:
    """Make a notice of which a part was changed after it was signed."""

    def make(adapter: Any, order_no: str) -> Sent:
        sent = adapter.notice(order_no)
        return replace(sent, **{part: change(getattr(sent, part))})

    return make


class Adapter(money_moves.Moves):
    """What is the same at most upstreams."""

    accepts, refuses = (200, "success"), (400, "fail")  # its notices are answered with
    closes = True  # it closes unpaid payments
    refused_notices: ClassVar[dict[str, Made]] = {}
    refusals: ClassVar[dict[str, Any]] = {}
    unclear: ClassVar[dict[str, Any]] = {}
    odd_reports: ClassVar[dict[str, Any]] = {}
    false_responses: ClassVar[dict[str, Any]] = {}
    states: ClassVar[dict[str, Any]] = {}
    mistakes: ClassVar[dict[str, Any]] = {}
    platform: Any = SimpleNamespace()

    def begin(self, order_no: str) -> None:
        """The payer begins to pay, without an effect on the order."""

    def false_notice(self, order_no: str) -> Sent:
        """A genuine notice about money that the upstream does not have."""
        return self.notice(order_no)


class Trial(money_moves.SandboxMoves, Adapter):
    """The sandbox's driver: its notices are signed with a secret, over the whole body."""

    def reference(self, order_no: str) -> str:
        return f"SB{order_no}"

    refused_notices: ClassVar = {
        "no signature": (spoilt(lambda _: {}, "headers"), BAD),
        "a signature of other letters": (spoilt(lambda _: {records.SIGNATURE_HEADER: "é" * 64}, "headers"), BAD),
        "another secret": (lambda adapter, order_no: adapter.signed(adapter.notice(order_no).body, "demo-secret"), BAD),
        "another amount": (spoilt(lambda body: body.replace(b"10000", b"10001")), BAD),
        "no body": (spoilt(lambda _: b""), BAD),
        "a GET": (lambda *_: Sent("GET", b"", {}), BAD),
        **{
            repr(body): (lambda adapter, _, body=body: adapter.signed(body), "makes no sense")
            for body in (b"", b"\xff", b"[]", b'{"order_no": "1"}')
        },
        **{
            repr(facts): (changed(**facts), "makes no sense")
            for facts in ({"state": "eaten"}, {"amount": "10000"}, {"amount": 10**30}, {"reference": None})
        },
    }
    states: ClassVar = {
        "nothing reported": (lambda adapter, order_no: None, "pending"),
        "failed": (lambda adapter, order_no: adapter.fail(order_no), "cancelled"),
    }


# --- epay


def error_page(text: str, title: str = "站点提示信息", body: str = '<body id="error-page">') -> str:
    """A page of such platforms: HTTP 200, with style, title and text."""
    style = "<style type='text/css'>html{background:#eee}</style>"
    return (
        f"\n    <!DOCTYPE html>\n<html><head><meta charset='utf-8'><title>{title}</title>{style}</head>"
        f"{body}<h3>{title}</h3>{text}<script>var x = 1 < 2;</script></body></html>"
    )


NO_TYPE = "支付方式(type)不存在"
REASONS = {
    NO_TYPE: NO_TYPE,
    "当前商户已超出订单并发量限制，请稍后再试": "当前商户已超出订单并发量限制，请稍后再试",
    "<center>单笔最小限额为<b>1</b>元</center>": "单笔最小限额为 1 元",
    "x" * 900: f"{'x' * 200}...",
}
OTHER_PAGES = {
    "a page without the mark": error_page(NO_TYPE, body="<body>"),
    "a page of a proxy": "<html><head><title>站点提示信息</title></head><body>Checking your browser</body></html>",
    "a page on an upgrade": "请先完成网站升级！<a href='/install/update.php'>点此升级</a>",
    "a page on the installation": error_page("<h2>检测到无 install.lock 文件</h2>如果您尚未安装本程序，请前往安装"),
    "a page on maintenance": error_page("网站维护中，请稍后再试"),
    "a page without text": error_page("", title="x"),
    "a line of text": "你还未安装",
    "a warning of PHP": '<br />\n<b>Warning</b>: mysqli in <b>/www/x.php</b><br />\n{"code":1,"qrcode":"weixin://x"}',
    "a long page of tags": error_page(NO_TYPE).replace("</html>", "<a " * 6_000 + "</html>"),
    "a long page of text": error_page(NO_TYPE).replace("</html>", "x" * 6_000 + "</html>"),
}


def gives(**facts: Any) -> Callable[[Any, Any], None]:
    """Let the platform have these properties."""
    return lambda adapter, patch: [patch.setattr(adapter.platform, name, value) for name, value in facts.items()]


def _with_status(status: int) -> Callable[[Any, Any], None]:
    return gives(answer=lambda path, request: Response(error_page(NO_TYPE), status))


def _elsewhere(adapter: Any, order_no: str) -> Sent:
    other = EpayPlatform(adapter.server, "elsewhere", "another-key-of-version-1")
    other.orders = adapter.platform.orders
    return other.notice(order_no, adapter.version)


class Epay(Adapter):
    """Both versions."""

    version: str

    def reference(self, order_no: str) -> str:
        return self.platform.orders[order_no]["trade_no"]

    def is_closed(self, order_no: str) -> bool:
        return "closed" in self.platform.orders[order_no]

    refused_notices: ClassVar = {
        "no query": (spoilt(lambda _: "", "query"), BAD),
        "another sum": (spoilt(lambda query: query.replace("money=100.00", "money=1.00"), "query"), BAD),
        "no signature": (spoilt(lambda query: query.replace("&sign=", "&sing="), "query"), BAD),
        "a field more": (spoilt(lambda query: f"{query}&param=1", "query"), BAD),
        "a field twice": (spoilt(lambda query: f"{query}&money=100.00", "query"), "a field is repeated"),
        "no UTF-8": (spoilt(lambda query: query.replace("name=Order", "name=%ff"), "query"), "it is not a valid form"),
        "another platform": (_elsewhere, BAD),
        "another merchant": (changed(pid="1002"), "it is for another merchant"),
        "another state": (changed(trade_status="TRADE_CLOSED"), "it does not report a payment"),
        "no number of the payment": (changed(trade_no=""), "it does not report a payment"),
        **{
            f"an amount of {amount!r}": (changed(money=amount), "the amount is missing or invalid")
            for amount in ("", "100.001")
        },
    }
    refusals: ClassVar = {
        "an error": (gives(_new_order=lambda fields: {"code": -3, "msg": "商户ID不存在"}), "商户ID不存在"),
        "nothing to show": (
            gives(gives="html"),
            "the platform returned no payment that can be shown: set redirect=true",
        ),
        "an image": (gives(gives="image"), "the platform returned no payment that can be shown: set redirect=true"),
        **{f"a page: {text:.20}": (gives(page=error_page(text)), why) for text, why in REASONS.items()},
        **{
            f"{amount!r} to pay by {kind}": (
                gives(gives=kind, adds={"payment_amount": amount}),
                f"the platform charges the payer {amount}: set redirect=true",
            )
            for kind in ("qrcode", "urlscheme")
            for amount in ("100.03", 100.004, "99", "a hundred")
        },
    }
    unclear: ClassVar = {
        "a script for an address": gives(gives="script"),
        **{name: gives(page=page) for name, page in OTHER_PAGES.items()},
        **{f"a page with status {status}": _with_status(status) for status in (403, 500, 502, 503)},
    }
    odd_reports: ClassVar = {
        repr(facts): (lambda adapter, order_no, facts=facts: adapter.platform.orders[order_no].update(facts))
        for facts in ({"status": "3"}, {"status": "7"}, {"money": "a lot"}, {"out_trade_no": ANOTHER}, {"pid": "1002"})
    }
    mistakes: ClassVar = wrong(
        base_url=["pay.example.com", "https://pay.example.com/?a=1"],
        pid=["10 01"],
        version=["3"],
        device=["fridge"],
        clientip=["here"],
        proxy=["socks5://127.0.0.1:1080", "http://127.0.0.1:99999", "https://127.0.0.1:3128"],
        redirect=["perhaps"],
        ask_again=["perhaps"],
        secret=["x"],
    )


class Epay1(money_moves.Epay1, Epay):
    """MD5; it can't close a payment."""

    closes = False
    secrets: ClassVar = [KEY]
    wrong_key: ClassVar = ({"key": "another-key"}, "商户密钥错误")
    mistakes: ClassVar = Epay.mistakes | wrong(key=[""])


class Epay2(money_moves.Epay2, Epay):
    """RSA, in responses too."""

    secrets: ClassVar = key_pair("epay merchant")[0].splitlines()[3:4]
    wrong_key: ClassVar = ({"private_key": key_pair("somebody")[0]}, "RSA签名校验失败")
    unclear: ClassVar = Epay.unclear | {
        "a response without a signature": gives(_rsa=lambda fields: "AAAA"),
        "an old response": gives(clock_off=-302),
    }
    false_responses: ClassVar = {
        "old ones": lambda adapter: setattr(adapter.platform, "clock_off", -302),
        "another's signatures": lambda adapter: setattr(adapter.platform, "private", key_pair("somebody")[0]),
    }
    mistakes: ClassVar = wrong(private_key=["", "MIIB"], platform_key=["nonsense"])


# --- WeChat Pay

UNKNOWN_KEY, OTHER_TIME = "signed with an unknown key", "too old, or a clock"
NO_PAYMENT, UNDECRYPTED = "it does not report a payment", "decryption failed"
OTHERS = "it is for another merchant or application"
HALF_A_LETTER = (
    b'{"event_type": "TRANSACTION.SUCCESS", "resource": '
    b'{"algorithm": "AEAD_AES_256_GCM", "ciphertext": "AAAA", "nonce": "\\ud800aaaaaaaaaaaa"}}'
)


def headers(**given: str) -> Callable[[Any, str], Sent]:
    """Make a notice with other headers and an unchanged signature; `Serial` is Wechatpay-Serial."""
    return spoilt(lambda sent: sent | {f"Wechatpay-{name}": value for name, value in given.items()}, "headers")


def _at(seconds: int) -> Callable[[Any, str], Sent]:
    def make(adapter: Any, order_no: str) -> Sent:
        adapter.platform.clock_off = seconds
        return adapter.notice(order_no)

    return make


def _renewed(adapter: Any, order_no: str) -> Sent:
    adapter.platform.clock_off = -400
    return headers(Timestamp=str(int(time.time())))(adapter, order_no)


def _by_another_key(adapter: Any, order_no: str) -> Sent:
    adapter.platform.signs_by = "certificate"
    return headers(Serial=KEY_ID)(adapter, order_no)


def _stamped(stamp: str) -> Callable[[Any, str], Sent]:
    def make(adapter: Any, order_no: str) -> Sent:
        sent = adapter.notice(order_no)
        return replace(sent, headers=sent.headers | adapter.platform.signed(sent.body, stamp))

    return make


def _raw(body: bytes) -> Callable[[Any, str], Sent]:
    return lambda adapter, _: adapter.platform.sent(body)


def _inside(text: bytes, **key: str) -> Callable[[Any, str], Sent]:
    return lambda adapter, order_no: adapter.notice(order_no, resource=adapter.platform.encrypted(text, **key))


def _answers(status: int, said: Any) -> Callable[[Any, Any], None]:
    """Let the next response be this one."""
    return lambda adapter, patch: adapter.platform.refuses.append((status, said))


def _error(status: int, code: Any, message: str = "不行") -> Callable[[Any, Any], None]:
    return _answers(status, {"code": code, "message": message})


def _told(**facts: Any) -> Callable[[Any, str], None]:
    return lambda adapter, order_no: adapter.platform.orders[order_no].update(changed=facts)


def _is(state: str) -> Callable[[Any, str], None]:
    return lambda adapter, order_no: adapter.platform.orders[order_no].update(trade_state=state)


class Wechat(money_moves.Wechat, Adapter):
    """RSA over headers and body; the fact of a notice is encrypted in it."""

    accepts, refuses = (204, ""), (400, '{"code": "FAIL", "message": "the notice was refused"}')
    own_address = "https://api.mch.weixin.qq.com"
    wrong_key: ClassVar = ({"private_key": key_pair("another merchant")[0]}, "SIGN_ERROR")
    secrets: ClassVar = [apiv3_key(), *key_pair("wechatpay merchant")[0].splitlines()[1:-1]]

    def false_notice(self, order_no: str) -> Sent:
        amount = {"total": 10_000, "currency": "CNY"}
        return self.notice(order_no, trade_state="SUCCESS", transaction_id="1", amount=amount)

    def reference(self, order_no: str) -> str:
        return f"42000{order_no[-20:]}"

    def is_closed(self, order_no: str) -> bool:
        return self.platform.orders[order_no]["trade_state"] == "CLOSED"

    refused_notices: ClassVar = {
        "a GET": (spoilt(lambda _: "GET", "method"), "not a POST"),
        "no headers": (spoilt(lambda _: {}, "headers"), UNKNOWN_KEY),
        "another key's number": (headers(Serial="PUB_KEY_ID_1"), UNKNOWN_KEY),
        "another key under the right number": (_by_another_key, BAD),
        "no signature": (headers(Signature=""), BAD),
        "WeChat Pay's own probe": (headers(Signature="WECHATPAY/SIGNTEST/abc"), BAD),
        "another nonce": (headers(Nonce="another"), BAD),
        "a byte more": (spoilt(lambda body: body + b" "), BAD),
        "an old one with a new time": (_renewed, BAD),
        "an old one": (_at(-302), OTHER_TIME),
        "one of tomorrow": (_at(86_400), OTHER_TIME),
        "a time that is none": (_stamped("soon"), OTHER_TIME),
        "a time of many digits": (_stamped("9" * 5000), OTHER_TIME),
        "no JSON": (_raw(b"paid"), NONSENSE),
        "no UTF-8": (_raw(b'{"event_type": "\xff"}'), NONSENSE),
        "too deep": (_raw(b"[" * 9_000), NONSENSE),
        "no resource": (changed(event={"resource": None}), NONSENSE),
        "another event": (changed(event={"event_type": "TRANSACTION.PAY_BACK"}), NO_PAYMENT),
        "a refund's event about a payment": (changed(event={"event_type": "REFUND.SUCCESS"}), NONSENSE),
        "another cipher": (changed(resource={"algorithm": "NONE"}), NONSENSE),
        "other associated data": (changed(resource={"associated_data": "other"}), UNDECRYPTED),
        "a short nonce": (changed(resource={"nonce": "1"}), UNDECRYPTED),
        "a nonce of half a letter": (_raw(HALF_A_LETTER), UNDECRYPTED),
        "no base64": (changed(resource={"ciphertext": "***"}), UNDECRYPTED),
        "another APIv3 key": (_inside(b"{}", key=apiv3_key("other")), UNDECRYPTED),
        "no JSON inside": (_inside(b"paid"), NONSENSE),
        "another merchant": (changed(mchid="1900000110"), OTHERS),
        "another application": (changed(appid="wx0"), OTHERS),
        "another order": (changed(out_trade_no=ANOTHER), "it is about another order"),
        "not paid": (changed(trade_state="NOTPAY"), NO_PAYMENT),
        "a state of its own": (changed(trade_state="GREAT"), NONSENSE),
        "no number of the payment": (changed(transaction_id=None), NONSENSE),
        "a number of the payment with a line break": (changed(transaction_id="1\n2"), NONSENSE),
        **{
            f"an amount: {name}": (changed(amount=amount), NONSENSE)
            for name, amount in {
                "none": None,
                "no currency": {"total": 10_000},
                "another currency": {"total": 10_000, "currency": "USD"},
                "a fraction": {"total": 10_000.0, "currency": "CNY"},
                "below zero": {"total": -10_000, "currency": "CNY"},
                "without end": {"total": 10**4_000, "currency": "CNY"},
                "digits of another script": {"total": "１００００", "currency": "CNY"},
            }.items()
        },
    }
    refusals: ClassVar = {
        code: (_error(403, code), f"不行 ({code})")
        for code in ("NO_AUTH", "PARAM_ERROR", "APPID_MCHID_NOT_MATCH", "SIGN_ERROR", "RULE_LIMIT")
    } | {
        "a key that it does not know": (
            gives(merchant_public=key_pair("another merchant")[1]),
            "签名错误，请检查后再试 (SIGN_ERROR)",
        )
    }
    unclear: ClassVar = {
        "a limit of calls": _error(429, "FREQUENCY_LIMITED"),
        "a limit of calls with another status": _error(403, "RATELIMIT_EXCEEDED"),
        "a limit of another kind": _error(429, "NO_AUTH"),
        "an error of its own": _error(500, "SYSTEM_ERROR"),
        "an error of its own with another status": _error(400, "SYSTEM_ERROR"),
        "an error of a bank": _error(500, "BANK_ERROR"),
        "it was paid": _error(400, "ORDERPAID"),
        "the number is used": _error(403, "OUT_TRADE_NO_USED"),
        "the number is used, in other words": _error(400, "INVALID_REQUEST", "201 商户订单号重复"),
        "a page": _answers(403, "<html>Forbidden</html>"),
        "a refusal without a code": _answers(400, {"message": "no"}),
        "a refusal with a number": _error(404, 404),
        "a redirect": _error(302, "NO_AUTH"),
        "an unsigned success": _answers(200, {"code_url": "weixin://wxpay/bizpayurl?pr=forged"}),
        "an old response": gives(clock_off=-302),
        "a response of tomorrow": gives(clock_off=302),
        "a response by another key": gives(signs_by="certificate"),
        **{
            f"a code of {code:.20}": gives(code_url=code)
            for code in ("", "no link", "weixin://a b", "weixin://\n{}", "weixin://" + "x" * 600, "é://{}")
        },
    }
    odd_reports: ClassVar = {
        "another merchant": _told(mchid="1900000110"),
        "another application": _told(appid="wx0"),
        "another order": _told(out_trade_no=ANOTHER),
        "another currency": _told(amount={"total": 10_000, "currency": "USD"}),
        "no currency": _told(amount={"total": 10_000}),
        "a fraction": _told(amount={"total": 10_000.5, "currency": "CNY"}),
        "no amount": _told(amount=None),
        "no number": _told(transaction_id=""),
        "a state of its own": _told(trade_state="GREAT"),
        "no state": _told(trade_state=None),
    }
    states: ClassVar = {state: (_is(state), "pending") for state in ("USERPAYING", "PAYERROR", "ACCEPT")} | {
        state: (_is(state), "cancelled") for state in ("CLOSED", "REVOKED")
    }
    mistakes: ClassVar = wrong(
        appid=["-"],
        mchid=["-", "19 00"],
        serial_no=["-", "No. 1"],
        private_key=["-", "", "MIIE", key_pair("wechatpay platform")[1]],
        apiv3_key=["-", "a" * 31, "a" * 33, "é" * 16],
        public_key_id=["-", MERCHANT_SERIAL],
        public_key=["-", "hello"],
        platform_certificates=["hello", curved("E", 7)],
        base_url=["http://api.example.com"],
        proxy=["squid"],
        pid=["1"],
    ) | {
        "nothing to verify with": ({"public_key_id": "-", "public_key": "-"}, ["public_key_id", "public_key"]),
        "no public key and a certificate": (
            {"public_key": "-", "platform_certificates": certificate()},
            ["public_key"],
        ),
        "two fields at once": ({"mchid": "?", "apiv3_key": "?"}, ["mchid", "apiv3_key"]),
        "JSAPI without the AppSecret": ({"jsapi": "true"}, ["app_secret"]),
    }


# --- Alipay

UNSIGNED_NOT_FOUND = ("40004", "ACQ.TRADE_NOT_EXIST", False)
CERTIFICATES = ["app_certificate", "alipay_certificate"]
WHOLE_RESPONSE = '{"alipay_trade_precreate_response": SIGNED, "sign": "SIGN"}'
WRONG_RESPONSES = {
    "nothing": "",
    "a list": "[]",
    "an empty object": "{}",
    "no signature": '{"alipay_trade_precreate_response": SIGNED}',
    "another's signature": '{"alipay_trade_precreate_response": SIGNED, "sign": "AAAA"}',
    "one signature for another text": '{"alipay_trade_precreate_response": {"code":"10000"}, "sign": "SIGN"}',
    "a response twice": WHOLE_RESPONSE.replace(" SIGNED,", ' SIGNED, "alipay_trade_precreate_response": {},'),
    "a response to something else": WHOLE_RESPONSE.replace("precreate", "query"),
    "no code": WHOLE_RESPONSE.replace("SIGNED", "{}"),
    "no colon": WHOLE_RESPONSE.replace(": SIGNED", " SIGNED"),
    "half": '{"alipay_trade_precreate_response": SIGNED, "sign"',
    "names that are none": '{[1]: SIGNED, "sign": "SIGN"}',
    "far too deep": '{"alipay_trade_precreate_response": ' + "[" * 20_000,
}


def responds(text: str) -> Callable[[Any, Any], None]:
    """Let each precreation have this response, with a valid one for SIGNED and its signature for SIGN."""

    def arrange(adapter: Any, patch: Any) -> None:
        def answer(_: str, request: Any) -> Response:
            number = json.loads(request.form["biz_content"])["out_trade_no"]
            signed = f'{{"code":"10000","out_trade_no":"{number}","qr_code":"https://qr.alipay.com/1"}}'
            return Response(text.replace("SIGNED", signed).replace("SIGN", adapter.platform.sign(signed)))

        patch.setattr(adapter.platform, "answer", answer)

    return arrange


def _errs(*error: Any) -> Callable[[Any, Any], None]:
    return lambda adapter, _: adapter.platform.errs(*error)


def _by_get(adapter: Any, order_no: str) -> Sent:
    return Sent("GET", b"", {}, adapter.notice(order_no).body.decode())


def _by_ourselves(adapter: Any, order_no: str) -> Sent:
    adapter.platform.private = adapter.platform.app_private
    return adapter.notice(order_no)


def _trade(**facts: str) -> Callable[[Any, str], None]:
    return lambda adapter, order_no: adapter.platform.trades[order_no].update(facts)


class Alipay(money_moves.AlipayMoves, Adapter):
    """Key mode: RSA over the fields; a trade exists only once the payer scanned its code."""

    own_address = "https://openapi.alipay.com/gateway.do"
    wrong_key: ClassVar = ({"private_key": key_pair("somebody")[0]}, "unsigned error: 验签出错")
    secrets: ClassVar = key_pair("alipay application")[0].splitlines()[1:-1]

    def false_notice(self, order_no: str) -> Sent:
        self.begin(order_no)
        return self.notice(order_no, trade_status="TRADE_SUCCESS")

    def begin(self, order_no: str) -> None:
        self.platform.scan(order_no)

    def reference(self, order_no: str) -> str:
        return self.platform.trades[order_no]["trade_no"]

    def is_closed(self, order_no: str) -> bool:
        return self.platform.trades[order_no]["trade_status"] == "TRADE_CLOSED"

    def _close_early(self, order_no: str) -> None:
        self.begin(order_no)
        _trade(trade_status="TRADE_CLOSED")(self, order_no)

    refused_notices: ClassVar = {
        "a GET": (_by_get, BAD),
        "our own key": (_by_ourselves, BAD),
        "no body": (spoilt(lambda _: b""), BAD),
        "no signature": (spoilt(lambda body: body[: body.index(b"&sign=")]), BAD),
        "no kind of signature": (spoilt(lambda body: body.replace(b"sign_type=RSA2&", b"")), BAD),
        "another kind of signature": (spoilt(lambda body: body.replace(b"sign_type=RSA2", b"sign_type=RSA")), BAD),
        "another amount": (spoilt(lambda body: body.replace(b"total_amount=100.00", b"total_amount=1000.00")), BAD),
        "a field more": (spoilt(lambda body: body + b"&more="), BAD),
        "a field less": (spoilt(lambda body: body.replace(b"&body=", b"")), BAD),
        "a field twice": (spoilt(lambda body: body + f"&seller_id={SELLER_ID}".encode()), "a field is repeated"),
        "no UTF-8": (spoilt(lambda body: body + b"&memo2=%FF"), BAD),
        "JSON": (spoilt(lambda body: b'{"trade_status": "TRADE_SUCCESS"}'), BAD),
        "another application": (changed(app_id="2021000000000002"), "it is for another application"),
        "another merchant": (changed(seller_id="2088000000000002"), "it is for another merchant"),
        "another order": (changed(out_trade_no=ANOTHER), "it is about another order"),
        "an unknown status": (changed(trade_status="TRADE_EATEN"), NONSENSE),
        "no status": (changed(trade_status=""), NONSENSE),
        "no number of the payment": (changed(trade_no=""), NONSENSE),
        **{f"an amount of {amount!r}": (changed(total_amount=amount), NONSENSE) for amount in ("", "100.001")},
    }
    refusals: ClassVar = {
        " ".join(error[:2]): (_errs(*error), f"业务处理失败 ({error[0]} {error[1]})")
        for error in (
            ("40004", "ACQ.TOTAL_FEE_EXCEED", True),
            ("40004", "ACQ.ACCESS_FORBIDDEN", True),
            ("40001", "isv.missing-method", False),
            ("40002", "isv.invalid-app-id", False),
            ("40003", "isv.missing-signature-config", False),
            ("40006", "isv.insufficient-isv-permissions", False),
        )
    }
    unclear: ClassVar = {
        **{
            " ".join(error[:2]): _errs(*error)
            for error in (
                ("20000", "isp.unknow-error", True),
                ("20000", "aop.unknow-error", False),
                ("20001", "aop.invalid-auth-token", False),
                ("40004", "isp.unknow-error", True),
                ("40004", "aop.unknow-error", True),
                ("40004", "ACQ.SYSTEM_ERROR", True),
                ("40004", "aop.ACQ.SYSTEM_ERROR", True),
                ("40004", "ACQ.TRADE_HAS_SUCCESS", True),
                ("40004", "ACQ.TRADE_HAS_CLOSE", True),
                ("40004", "ACQ.CONTEXT_INCONSISTENT", True),
                ("40005", "isv.app-call-limited", False),
                ("10003", "", True),
            )
        },
        **{name: responds(text) for name, text in WRONG_RESPONSES.items()},
        "a script for a code": gives(
            _yes=lambda **facts: {"code": "10000", **facts, "qr_code": "javascript:alert(1)"},
        ),
    }
    odd_reports: ClassVar = {
        "another order": _trade(out_trade_no=ANOTHER),
        "an unknown status": _trade(trade_status="TRADE_EATEN"),
        "no number": _trade(trade_no=""),
        "no amount": _trade(total_amount="a lot"),
    }
    false_responses: ClassVar = {
        "unsigned errors": lambda adapter: adapter.platform.errors.extend([UNSIGNED_NOT_FOUND] * 9),
    }
    states: ClassVar = {
        "scanned": (lambda adapter, order_no: adapter.begin(order_no), "pending"),
        "closed": (lambda adapter, order_no: adapter._close_early(order_no), "cancelled"),
    }
    mistakes: ClassVar = wrong(
        app_id=["-", "my shop"],
        seller_id=["-", "me@example.com", "2021000000000001"],
        private_key=["-", "", key_pair("alipay")[1]],
        alipay_public_key=["-", "MIIB", key_pair("alipay application")[1]],
        base_url=["http://openapi.alipay.com/gateway.do", "https://openapi.alipay.com/gateway.do?charset=utf-8"],
        key=["1"],
    )


class AlipayByCertificates(Alipay):
    """Certificate mode."""

    mode = "certificate"
    mistakes: ClassVar = wrong(
        alipay_root_certificates=["-", curved("E", 7)],
        app_certificate=[key_pair("alipay")[1]],
        alipay_certificate=[curved("E", 7)],
    ) | {
        "both modes": ({"alipay_public_key": key_pair("alipay")[1]}, [*CERTIFICATES, "alipay_root_certificates"]),
        "one certificate": ({"app_certificate": "", "alipay_certificate": "-"}, CERTIFICATES),
        "certificates of another key": ({"private_key": key_pair("alipay")[0]}, CERTIFICATES),
    }


DRIVERS = (Trial, Epay1, Epay2, Wechat, Alipay)
REMOTE = DRIVERS[1:]  # those with an upstream behind HTTP


# --- payouts


class EpayPayouts(payout_moves.EpayPayouts):
    """Version 2; a payout has a number of its own there."""

    in_progress, failed, why_failed = ("0", "3"), ("2",), "收款方账户异常"
    why_poor = "需支付金额大于可转账余额"

    def reference(self, order_no: str) -> str:
        return f"BZ{self._number(order_no)}"

    def becomes(self, order_no: str, status: str) -> None:
        """The platform gives it this status."""
        self.platform.ends[self._number(order_no)] = status

    def reports(self, order_no: str, **facts: Any) -> None:
        """Responses to status checks contain these facts, and that it was paid."""
        ask = self.platform._ask_transfer
        self.end(order_no, paid=True)
        self.platform._ask_transfer = lambda fields: ask(fields) | facts

    amount: ClassVar = {"amount": "99.00"}
    odd_reports: ClassVar = {
        "another payout": {"out_biz_no": "2026050112000000001"},
        "an unknown status": {"status": "9"},
        "no status": {"status": ""},
        "no amount": {"amount": "a lot"},
    }


class AlipayPayouts(payout_moves.AlipayPayouts):
    """Certificate mode."""

    in_progress, failed, why_failed = ("DEALING", "INIT", "WAIT_PAY"), ("FAIL", "CLOSED", "REFUND"), "账户已注销"
    why_poor = "付款方余额不足"

    def reference(self, order_no: str) -> str:
        return f"TR{order_no}"

    def becomes(self, order_no: str, status: str) -> None:
        self.platform.transfers[order_no] |= {
            "status": status, "error_code": "PAYEE_CLOSED", "fail_reason": self.why_failed
        }  # fmt: skip

    def reports(self, order_no: str, **facts: Any) -> None:
        self.platform.transfers[order_no] |= {"status": "SUCCESS", **facts}

    amount: ClassVar = {"trans_amount": "99.00"}
    odd_reports: ClassVar = {
        "another payout": {"out_biz_no": ANOTHER},
        "an unknown status": {"status": "EATEN"},
        "no amount": {"trans_amount": "a lot"},
    }


PAYOUTS = (EpayPayouts, AlipayPayouts)
