"""What is sent: endless series of complete HTTP requests for a server (`Wrk.requests`).

Requests are signed just before they are sent: a nonce is valid once, a timestamp for 300 s (docs/signing.md).
"""

from __future__ import annotations

import json
import random
import re
import secrets
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import count, cycle, repeat
from typing import Any
from urllib.parse import urlencode

from bench.comparing import Failed
from gateways.epay_protocol import md5_signature
from services.security.signing import sign, string_to_sign

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
SECRETS = {"demo": "demo-secret", "other": "other-secret"}
NOTICE_SECRET = "sandbox-notice-secret"
BUY = {"order_type": 1, "cny_amount": "100.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
SELL = {"order_type": 2, "cny_amount": "20.00", "paychannel_id": 2, "paychannel_paymethod": "bank"}
REGIONS = "/addons/paychannel/channel.gatewaya/regionData"
STRANGER = "203.0.113.7"  # address of another caller, as reported by the proxy
PAGE = 100
FROM = 1_767_196_800 + 100 * 86_400  # a hundred days after the start of the seeded orders
NINETY_DAYS = {"start_time": FROM, "end_time": FROM + 90 * 86_400}


def request(method: str, path: str, body: str = "", media: str = JSON, **headers: str) -> str:
    """Return a complete HTTP request; `X_Forwarded_For="..."` adds a header."""
    sent = {"Host": "bench", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if body:
        sent |= {"Content-Type": media, "Content-Length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n{body}"


def signed(endpoint: str, fields: dict[str, Any], key: str = "demo") -> dict[str, Any]:
    """Return the body of one call."""
    # Random like merchants' nonces, so that inserts hit the whole index of nonces.
    nonce = f"{random.getrandbits(64):016x}"
    sent = fields | {"api_key": key, "timestamp": int(time.time()), "nonce": nonce}
    return sent | {"signature": sign(SECRETS[key], string_to_sign(endpoint, sent))}


def calls(endpoint: str, bodies: Iterable[dict[str, Any]], key: str = "demo", **headers: str) -> Iterator[str]:
    """Yield a signed request to an endpoint for merchants for each of the bodies."""
    for fields in bodies:
        yield request("POST", f"/merchant/{endpoint}", json.dumps(signed(endpoint, fields, key)), **headers)


def own_numbers() -> Iterator[str]:
    """Yield a merchant's own order numbers, unique in all runs."""
    run = secrets.token_hex(4)
    return (f"B-{run}-{number:08d}" for number in count())


def orders(service: Any, key: str = "demo", **headers: str) -> Iterator[str]:
    """Deposits, each with its own `merchant_order_no`, on the channel that the service's setup has made, if any."""
    new = BUY | {"paychannel_id": service.known.get("id", 2)}
    return calls("createOrder", (new | {"merchant_order_no": number} for number in own_numbers()), key, **headers)


def withdrawals(service: Any) -> Iterator[str]:
    """Withdrawals to the merchant's payout account on file."""
    new = SELL | {"paychannel_id": service.known.get("id", 2)}
    return calls("createOrder", (new | {"merchant_order_no": number} for number in own_numbers()))


def echoes(server: Any) -> Iterator[str]:
    """The bodies of `orders`, for the bare echo."""
    for number in own_numbers():
        yield request("POST", "/echo", json.dumps(signed("createOrder", BUY | {"merchant_order_no": number})))


def empties(server: Any) -> Iterator[str]:
    """Requests for the empty view."""
    return repeat(request("GET", "/"))


def epay_orders(service: Any) -> Iterator[str]:
    """Forms for mapi.php, each with its own `out_trade_no` (docs/epay-inbound.md)."""
    fields = {"pid": service.known["pid"], "type": "wxpay", "name": "Order", "money": "100.00", "clientip": "127.0.0.1"}
    fields |= {"notify_url": "http://127.0.0.1/n", "return_url": "http://127.0.0.1/r"}
    for number in own_numbers():
        sent = fields | {"out_trade_no": number}
        sent |= {"sign": md5_signature(sent, service.known["key"]), "sign_type": "MD5"}
        yield request("POST", "/mapi.php", urlencode(sent), FORM)


def notice(order_no: str) -> str:
    """The notice of the sandbox's upstream that an order was paid."""
    body = json.dumps({"order_no": order_no, "state": "paid", "amount": 10_000, "reference": f"R{order_no}"})
    path = f"/addons/paychannel/notify/{order_no}"
    return request("POST", path, body, X_Sandbox_Signature=sign(NOTICE_SECRET, body))


def notices(service: Any, key: str = "demo") -> Iterator[str]:
    """Notices for a merchant's orders, each once, the newest first."""
    for page in count(1):
        found = service.call("orderQueryList", {"page": page, "limit": PAGE}, key)["list"]
        yield from (notice(order["order_no"]) for order in found)
        if len(found) < PAGE:
            return


def placed(service: Any) -> int:
    """The number of the merchant's orders."""
    return service.call("orderQueryList", {})["total"]


def completed(service: Any) -> int:
    """The number of the merchant's completed orders."""
    return service.call("orderQueryList", {"status": "completed"})["total"]


def pay_channels(service: Any) -> Iterator[str]:
    """getPayChannels."""
    return calls("getPayChannels", repeat({}))


def lists(service: Any, **query: Any) -> Iterator[str]:
    """orderQueryList with this query."""
    return calls("orderQueryList", repeat(query))


def deep_lists(service: Any, page: int = 5000) -> Iterator[str]:
    """A page of orderQueryList, or the last one if there are fewer."""
    return lists(service, page=min(page, -(-placed(service) // 20)))


last_lists = partial(deep_lists, page=sys.maxsize)


def known_orders(service: Any) -> list[dict[str, Any]]:
    """A few hundred of the merchant's orders, a page from each part of the file."""
    last = placed(service) // PAGE
    pages = range(1, last + 1, max(1, last // 5))
    return [one for page in pages for one in service.call("orderQueryList", {"page": page, "limit": PAGE})["list"]]


def details(service: Any) -> Iterator[str]:
    """orderQueryDetail by order number."""
    return calls("orderQueryDetail", cycle([{"order_no": order["order_no"]} for order in known_orders(service)]))


def lists_by_rare_text(service: Any) -> Iterator[str]:
    """orderQueryList by a text that is in one order."""
    orders = known_orders(service)
    return lists(service, merchant_order_no=orders[len(orders) // 2]["merchant_order_no"][-7:])


def regions(service: Any) -> Iterator[str]:
    """The region tree, compressed."""
    return repeat(request("GET", REGIONS, Accept_Encoding="gzip"))


def known_regions(service: Any) -> Iterator[str]:
    """The region tree, by callers that have it. Raises Failed if the response isn't 304."""
    headers = {"Accept-Encoding": "gzip"}
    headers["If-None-Match"] = service.http.get(service.url + REGIONS, headers=headers).headers["ETag"]
    if (status := service.http.get(service.url + REGIONS, headers=headers).status_code) != 304:
        raise Failed(f"regionData returns {status} instead of 304")
    return repeat(request("GET", REGIONS, **headers))


def views(service: Any, page: str = "index", **headers: str) -> Iterator[str]:
    """Views of one payment page."""
    path = f"/addons/paychannel/pay/{page}?order_no={service.call('createOrder', BUY)['order_no']}"
    return repeat(request("GET", path, **headers))


page_views = partial(views, X_Forwarded_For=STRANGER)  # by another caller
polls = partial(views, page="status")  # the status check that an open page repeats


def sign_ins(service: Any) -> Iterator[str]:
    """Sign-ins to the console with a wrong password, ten from each address."""
    page = service.http.get(f"{service.url}/console/login").text
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page)
    if token is None:
        raise Failed("the console has no form to sign in")
    cookie = "; ".join(f"{name}={value}" for name, value in service.http.cookies.items())
    for number in count():
        form = f"csrf_token={token[1]}&name=demo&password=guess-number-{number}"
        address = f"198.51.{number // 2560 % 256}.{number // 10 % 256}"
        yield request("POST", "/console/login", form, FORM, Cookie=cookie, X_Forwarded_For=address)


def searches(service: Any) -> Iterator[str]:
    """Searches by two characters, by the merchant that has most of the orders in the file."""
    return calls("orderQueryList", repeat({"merchant_order_no": "zq"}), X_Forwarded_For=STRANGER)


def bad_signatures(service: Any) -> Iterator[str]:
    """Orders with a wrong signature."""
    for one in orders(service, X_Forwarded_For=STRANGER):
        yield re.sub(r'"signature": "[0-9a-f]{8}', '"signature": "00000000', one)
