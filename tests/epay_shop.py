"""A shop with an epay plug-in: its own implementation of the protocol, independent of the service's."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from typing import Any
from urllib.parse import urlencode

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests import rsa_keys

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def text_to_sign(fields: dict[str, str]) -> str:
    """All fields but `sign` and `sign_type` that are not empty, by name."""
    return "&".join(
        f"{name}={fields[name]}"
        for name in sorted(fields)
        if name not in ("sign", "sign_type") and fields[name].strip()
    )


def md5(fields: dict[str, str], key: str) -> str:
    return hashlib.md5((text_to_sign(fields) + key).encode()).hexdigest()


class Shop:
    """The merchant's shop. `keys` are the output of `tillbook epay enable` and `rotate --rsa`.

    It has a real HTTP server for notices: `notices` are the fields of each, `answers` and `status` what it responds.
    """

    def __init__(self, send: Any, web_server: HTTPServer, keys: dict[str, str]):
        self.send, self.pid, self.key = send, keys["pid"], keys["key"]
        self.private_key, self.platform_key = keys.get("private_key", ""), keys.get("platform_public_key", "")
        self.notices: list[dict[str, str]] = []
        self.answers = ["success"]
        self.status = 200
        self.methods: list[str] = []
        self._lock = threading.Lock()
        web_server.expect_request("/notify").respond_with_handler(self._receive)
        self.notify_url = web_server.url_for("/notify")
        self.return_url = "http://127.0.0.1/back?page=1"

    def _receive(self, request: Request) -> Response:
        with self._lock:
            self.notices.append(request.args.to_dict())
            self.methods.append(request.method)
            return Response(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0], self.status)

    def fields(self, **changed: str | None) -> dict[str, str]:
        """The fields of a payment; None leaves one out."""
        fields = {
            "pid": self.pid,
            "type": "alipay",
            "out_trade_no": "SHOP-1",
            "notify_url": self.notify_url,
            "return_url": self.return_url,
            "name": "会员 1 month",
            "money": "12.5",
            **changed,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def signed(self, version: int = 1, **changed: str | None) -> dict[str, str]:
        """The fields with a signature."""
        fields = self.fields(**changed)
        return self.with_rsa(fields) if version == 2 else fields | {"sign": md5(fields, self.key), "sign_type": "MD5"}

    def with_rsa(self, fields: dict[str, str]) -> dict[str, str]:
        stamped = {"timestamp": str(int(time.time()))} | fields
        key: Any = rsa_keys.load(base64.b64decode(self.private_key), None)
        signature = key.sign(text_to_sign(stamped).encode(), PKCS1v15(), SHA256())
        return stamped | {"sign": base64.b64encode(signature).decode(), "sign_type": "RSA"}

    def is_ours(self, fields: dict[str, Any]) -> bool:
        """Whether the platform signed these fields, by the version in their `sign_type`."""
        texts = {name: str(value) for name, value in fields.items() if not isinstance(value, list)}
        if texts["sign_type"] == "MD5":
            return texts["sign"] == md5(texts, self.key)
        key: Any = load_der_public_key(base64.b64decode(self.platform_key))
        key.verify(base64.b64decode(texts["sign"]), text_to_sign(texts).encode(), PKCS1v15(), SHA256())
        return True

    def post(self, path: str, fields: dict[str, str], headers: Any = None) -> Any:
        """A form as a payer's browser sends it, unless `headers` say otherwise."""
        return self.send("POST", path, urlencode(fields).encode(), FORM | BROWSER | (headers or {}))

    def get(self, path: str, fields: dict[str, str], headers: Any = None) -> Any:
        return self.send("GET", f"{path}?{urlencode(fields)}", b"", BROWSER | (headers or {}))

    def submit(self, **changed: str | None) -> Any:
        """A payer's browser at submit.php."""
        return self.get("/submit.php", self.signed(**changed))

    def mapi(self, **changed: str | None) -> dict[str, Any]:
        """The shop's server at mapi.php."""
        return json.loads(self.post("/mapi.php", self.signed(**changed)).text)

    def api(self, act: str, **fields: Any) -> dict[str, Any]:
        """The shop's server at api.php."""
        return json.loads(self.get("/api.php", {"act": act, "pid": self.pid, "key": self.key} | fields).text)

    def refund(self, money: str, **fields: str) -> dict[str, Any]:
        """The shop's server at api.php, as most plug-ins refund: `act` in the query, the rest in the form."""
        form = {"pid": self.pid, "key": self.key, "money": money} | fields
        answer: dict[str, Any] = json.loads(self.post("/api.php?act=refund", form).text)
        return answer

    def v2(self, path: str, **fields: str) -> dict[str, Any]:
        """The shop's server at an address of version 2; a success must have the platform's signature."""
        answer: dict[str, Any] = json.loads(self.post(f"/api/{path}", self.with_rsa({"pid": self.pid} | fields)).text)
        assert answer["code"] != 0 or self.is_ours(answer)
        return answer


def number_in(address: str) -> str:
    """The order number in the address of a payment page."""
    return address.partition("order_no=")[2]
