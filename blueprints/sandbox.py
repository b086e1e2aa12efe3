"""The sandbox's doors: `/sandbox/pay` plays an outcome, `/sandbox/inbox` is a merchant's receiver to look at."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import deque
from datetime import UTC, datetime
from typing import Any

from flask import Blueprint, Response, redirect, render_template, request, url_for
from marshmallow import ValidationError

import settings
from blueprints.cashier import POLICY
from blueprints.envelope import ok
from gateways.simulator import OUTCOMES
from models.order import Order
from schemas.strict_json import parse
from services import signing, simulation, vault
from services.errors import Refused

sandbox = Blueprint("sandbox", __name__, url_prefix="/sandbox")

KEPT = 100
FRESH = 300  # seconds, as Standard Webhooks has it
TIMESTAMP = re.compile(r"[0-9]{1,12}")
HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")
_inbox: deque[dict[str, Any]] = deque(maxlen=KEPT)
_lock = threading.Lock()


def forget() -> None:
    """Empty the inbox."""
    with _lock:
        _inbox.clear()


@sandbox.before_request
def _only_where_it_is() -> None:
    if not simulation.is_there():
        raise Refused(40404)


@sandbox.after_request
def _strict(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = POLICY
    return response


def _wants_page() -> bool:
    return request.accept_mimetypes.best_match(["application/json", "text/html"]) == "text/html"


@sandbox.post("/pay")
def pay() -> Any:
    """Form fields `order_no` and `outcome`; a browser goes back to the cashier, a script gets the order's state."""
    outcome = request.form.get("outcome", "")
    if outcome not in OUTCOMES:
        raise ValidationError({"outcome": [f"Must be one of: {', '.join(OUTCOMES)}."]})
    order = Order.get_or_none(Order.order_no == request.form.get("order_no", ""))
    driver = simulation.sandbox_driver(order) if order else None
    if order is None or driver is None:
        raise Refused(40401)
    simulation.play(order, driver, outcome)
    if order.is_buy and _wants_page():
        return redirect(url_for("pages.index", order_no=order.order_no, played=outcome), 303)
    return ok({"order_no": order.order_no, "outcome": outcome, "status": Order.get_by_id(order.id).status})


def _verified(headers: dict[str, str], body: str, order: Order | None) -> bool:
    stamp = headers["webhook-timestamp"]
    if order is None or not TIMESTAMP.fullmatch(stamp) or abs(time.time() - int(stamp)) > FRESH:
        return False
    return signing.webhook_holds(
        headers["webhook-signature"],
        vault.valid_secrets(order.merchant, "callback_secret"),
        headers["webhook-id"],
        int(stamp),
        body,
    )


@sandbox.post("/inbox")
def receive() -> Response:
    """Take a callback in, as a merchant's server would, and keep it to be looked at."""
    body = request.get_data()
    headers = {name: request.headers.get(name, "") for name in HEADERS}
    try:
        event = parse(body)
        order_no, kind = str(event["data"]["order_no"]), str(event["type"])
        pretty = json.dumps(json.loads(body), ensure_ascii=False, indent=2)
    except (ValueError, KeyError, TypeError):  # Malformed is a ValueError
        raise ValidationError({"body": ["Must be a callback."]}) from None
    order = Order.get_or_none(Order.order_no == order_no)
    verified = _verified(headers, body.decode(), order)
    with _lock:
        earlier = sum(item["webhook_id"] == headers["webhook-id"] for item in _inbox)
        _inbox.appendleft(
            {
                "received": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "webhook_id": headers["webhook-id"],
                "type": kind,
                "verified": verified,
                "headers": headers,
                "body": pretty,
                "order_no": order_no,
                "attempts": earlier + 1,
            }
        )
    return ok(None)


@sandbox.get("/inbox")
def inbox() -> str:
    """The page that shows what came in, newest first."""
    with _lock:
        items = list(_inbox)
    return render_template("inbox.html", items=items, url=f"{settings.active().public_url}/sandbox/inbox")
