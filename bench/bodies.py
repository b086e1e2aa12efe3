"""Signed requests, made just before they are sent: a nonce is valid once, a timestamp for 300 s (docs/signing.md)."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import random
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
SECRETS = {"demo": "demo-secret", "other": "other-secret"}
BUY = {"order_type": 1, "cny_amount": "100.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
SELL = {"order_type": 2, "cny_amount": "20.00", "paychannel_id": 2, "paychannel_paymethod": "bank"}
NUMBER, NONCE = "@number@", "@nonce@"  # placeholders in a template
NEW_ORDER = BUY | {"merchant_order_no": f"B-{NUMBER}"}


def _template(endpoint: str, fields: dict[str, Any], key: str) -> tuple[str, str]:
    """Return the text to sign and the start of the body, both with placeholders. Fields are not nested."""
    sent = {**fields, "api_key": key, "timestamp": int(time.time()), "nonce": NONCE}
    text = "\n".join([endpoint, *(f"{name}={sent[name]}" for name in sorted(sent))])
    return text, json.dumps(sent)[:-1]


def signed(endpoint: str, count: int, kinds: Sequence[dict[str, Any]] = ({},), key: str = "demo") -> Iterator[str]:
    """Yield `count` bodies for the endpoint, with each of the `kinds` of fields in turn."""
    templates = itertools.cycle([_template(endpoint, fields, key) for fields in kinds])
    secret, run = SECRETS[key].encode(), secrets.token_hex(4)
    for number, (text, body) in zip(range(count), templates, strict=False):
        # Random like merchants' nonces, so that inserts hit the whole index of nonces.
        nonce, own = f"{random.getrandbits(64):016x}", f"{run}-{number:08d}"
        text = text.replace(NONCE, nonce).replace(NUMBER, own)
        body = body.replace(NONCE, nonce).replace(NUMBER, own)
        yield f'{body}, "signature": "{hmac.digest(secret, text.encode(), "sha256").hex()}"}}'


def buys(count: int, channel: int = 2, key: str = "demo") -> Iterator[str]:
    """Yield `count` deposits for `createOrder`, each with its own `merchant_order_no`."""
    return signed("createOrder", count, [NEW_ORDER | {"paychannel_id": channel}], key)


def sells(count: int) -> Iterator[str]:
    """Yield `count` withdrawals for `createOrder`, to the merchant's payout account on file."""
    return signed("createOrder", count, [SELL | {"merchant_order_no": f"B-{NUMBER}"}])


def request(method: str, path: str, body: str = "", media: str = JSON, **headers: str) -> str:
    """Return a complete HTTP request; `X_Forwarded_For="..."` adds a header."""
    sent = {"Host": "bench", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if body:
        sent |= {"Content-Type": media, "Content-Length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n{body}"


def posts(path: str, texts: Iterable[str], media: str = JSON) -> Iterator[str]:
    """Yield a complete request for each body."""
    return (request("POST", path, text, media) for text in texts)


def epay_payments(pid: str, key: str) -> Callable[[int], Iterator[str]]:
    """Return what yields forms for mapi.php, each with its own `out_trade_no` (docs/epay-inbound.md)."""
    fields = {"pid": pid, "type": "wxpay", "out_trade_no": NUMBER, "notify_url": "http://127.0.0.1/n"}
    fields |= {"return_url": "http://127.0.0.1/r", "name": "Order", "money": "100.00", "clientip": "127.0.0.1"}
    text = "&".join(f"{name}={fields[name]}" for name in sorted(fields))
    form = urlencode(fields, safe="@")

    def make(count: int) -> Iterator[str]:
        run = secrets.token_hex(4)
        for number in range(count):
            own = f"B-{run}-{number:08d}"
            signature = hashlib.md5((text.replace(NUMBER, own) + key).encode()).hexdigest()
            yield f"{form.replace(NUMBER, own)}&sign={signature}&sign_type=MD5"

    return make
