"""Notices of the sandbox's upstream that report orders as paid, and the number settled in a second."""

from __future__ import annotations

import hashlib
import hmac
import json

from bench import bodies, load
from bench.context import Bench, Compared, spent
from bench.load import Failed, Load
from bench.processes import Service

SECRET = b"sandbox-notice-secret"
FEN = 10_000  # of each order
CONNECTIONS = 8
PAGE = 100


def _paid(order_no: str) -> tuple[str, str, str]:
    """Path, body and signature of the notice for an order that was paid."""
    report = {"order_no": order_no, "state": "paid", "amount": FEN, "reference": f"R{order_no}"}
    body = json.dumps(report)
    return f"/addons/paychannel/notify/{order_no}", body, hmac.digest(SECRET, body.encode(), hashlib.sha256).hex()


def report_paid(service: Service, order_no: str) -> None:
    """Send the notice for one order. Raises Failed."""
    path, body, signature = _paid(order_no)
    headers = {"X-Sandbox-Signature": signature}
    response = service.http.post(service.url + path, body.encode(), headers=headers, timeout=60)
    if response.status_code != 200:
        raise Failed(f"a notice: {response.status_code} {response.text[:200]}")


def settle_newest(bench: Bench, service: Service, count: int, key: str = "demo") -> Load:
    """Send the notices for a merchant's newest orders, each once. Raises Failed."""
    pages = range(1, -(-count // PAGE) + 1)
    lists = [service.call("orderQueryList", {"page": page, "limit": PAGE}, key)["list"] for page in pages]
    notices = [_paid(order["order_no"]) for orders in lists for order in orders][:count]
    requests = (bodies.request("POST", path, body, X_Sandbox_Signature=signature) for path, body, signature in notices)
    return load.run(service.url, CONNECTIONS, 280, requests, bench.work)


def settling(bench: Bench) -> Compared:
    """Notices that settle an order each, against createOrder: per second over 8 connections.

    Each round creates orders on a new service and then settles them. Callbacks are recorded and have no address.
    """
    created, settled = [], []
    for number in range(bench.rounds):
        service = Service(bench.work / f"notices-{number}")
        service.flask("seed")
        service.flask("merchant", "set", "demo", "--callback-url", "")
        with service:
            url = f"{service.url}/merchant/createOrder"
            warm = bench.load(url, CONNECTIONS, bodies.buys, 1)  # the first responses are slower
            settle_newest(bench, service, min(PAGE, warm.responses))
            created.append(bench.load(url, CONNECTIONS, bodies.buys))
            settled.append(settle_newest(bench, service, created[-1].responses))
            completed = service.call("orderQueryList", {"status": "completed"})["total"]
        if completed < settled[-1].responses:
            raise Failed(f"{settled[-1].responses} notices completed {completed} orders")
    return Compared([one.rate for one in settled], [one.rate for one in created], "a second", spent(*created))
