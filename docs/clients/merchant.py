"""Client of Tillbook, to copy. Needs Python 3.8 or newer and the standard library only."""

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
import time
import urllib.error
import urllib.request

URL = os.environ.get("MERCHANT_URL", "http://127.0.0.1:8000")  # with the API prefix, if there is one
API_KEY = os.environ.get("MERCHANT_KEY", "demo")
SECRET = os.environ.get("MERCHANT_SECRET", "demo-secret")
CALLBACK_SECRET = os.environ.get("MERCHANT_CALLBACK_SECRET", "")  # if empty, no callback is accepted


def leaves(value, path=""):
    if isinstance(value, (dict, list)):
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, f"{path}.{name}" if path else name)
    elif value is not None and value != "":
        yield path, value if isinstance(value, str) else json.dumps(value)


def string_to_sign(endpoint, fields):
    return "\n".join([endpoint] + [f"{path}={value}" for path, value in sorted(leaves(fields))])


def sign(endpoint, fields):
    return hmac.new(SECRET.encode(), string_to_sign(endpoint, fields).encode(), hashlib.sha256).hexdigest()


class NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None  # do not send a signed request to another address


opener = urllib.request.build_opener(NoRedirects)


def call(endpoint, fields, idempotency_key=""):
    """Return the response or refusal. OSError, ValueError: no response; send it again with the same key."""
    body = {**fields, "api_key": API_KEY, "timestamp": int(time.time()), "nonce": secrets.token_hex(16)}
    body["signature"] = sign(endpoint, body)
    headers = {"Content-Type": "application/json"}
    if idempotency_key:
        headers["Idempotency-Key"] = idempotency_key
    request = urllib.request.Request(f"{URL}/merchant/{endpoint}", json.dumps(body).encode(), headers)
    try:
        with opener.open(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refusal:
        return json.load(refusal)


def verified(headers, body):
    """Return whether a callback is genuine. `headers` ignore case; `body` is the raw bytes."""
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    webhook_id, timestamp, signatures = (headers.get(name) or "" for name in names)
    key = base64.b64decode(CALLBACK_SECRET.replace("whsec_", "", 1))
    if not key or not re.fullmatch("[0-9]{1,12}", timestamp) or abs(time.time() - int(timestamp)) > 300:
        return False
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    return any(hmac.compare_digest(expected, given.encode()) for given in signatures.split())


def verified_return(fields):
    """Return whether the fields of the address to which a payer returns are genuine. Credit on the callback only."""
    names = {"webhook-id": "order_no", "webhook-timestamp": "timestamp", "webhook-signature": "signature"}
    headers = {header: fields.get(name) for header, name in names.items()}
    return verified(headers, f"{fields.get('status', '')}.{fields.get('merchant_order_no', '')}".encode())


if __name__ == "__main__":
    number = f"A-{time.time_ns()}"  # your own order number
    order = {"order_type": 1, "cny_amount": "100.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
    created = call("createOrder", {**order, "merchant_order_no": number}, idempotency_key=number)
    print(json.dumps(created))
    if created["code"] == 1:
        print(json.dumps(call("orderQueryDetail", {"order_no": created["data"]["order_no"]})))
