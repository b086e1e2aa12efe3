"""The demo merchant's server: `/sandbox/inbox` receives and shows callbacks, payers return to `/sandbox/return`."""

from __future__ import annotations

import time
from typing import Any

from flask import Response, render_template, request, url_for
from flask_babel import gettext
from marshmallow import ValidationError

from blueprints.api.envelope import ok
from blueprints.sandbox.access import done, form_of, sandbox, wants_json
from models.tables.order import Order
from models.tables.outbox import Callback
from runtime.state import current
from schemas.sandbox.forms import ANSWERS, CallbackForm, FailureForm
from services.callbacks import delivery
from services.errors import N_, ApiError, Code
from services.sandbox import simulator
from services.sandbox.inbox import (
    FIELD_MISSING,
    LONG_HEAD,
    RETURN_FIELDS,
    SLOW,
    Behaviour,
    fault_of_return,
    inbox,
    signed_content,
)
from services.sandbox.seeding import INBOX

LABELS = {
    "200": N_("200 OK"),
    "400": N_("400 Bad request"),
    "410": N_("410 Gone (no more retries)"),
    "429": N_("429 Too many requests, with Retry-After"),
    "500": N_("500 Internal error"),
    "503": N_("503 Unavailable, with Retry-After"),
    "redirect": N_("302 Redirect"),
    "slow": N_("200 OK after a delay"),
    "long_head": N_("200 OK with 40 KiB of headers"),
    "hang_up": N_("Connection closed mid-response"),
}


@sandbox.post("/inbox")
def receive() -> Response:
    """Receive and store a callback; respond as the tester chose."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    try:
        behaviour = inbox().receive(headers, request.get_data())
    except ValueError:  # including Malformed
        raise ValidationError({"body": [N_("Must be a callback.")]}) from None
    if behaviour.answer == "slow":
        time.sleep(behaviour.seconds or SLOW)
    if behaviour.answer in ("200", "slow"):
        return ok(None)
    if behaviour.answer == "hang_up":
        # A body that is shorter than its length makes the HTTP server close the connection.
        return Response(iter(()), 444, {"Content-Length": "1"})
    response = Response("the inbox was told to answer this\n", content_type="text/plain")
    if behaviour.answer == "redirect":
        response.status_code, response.headers["Location"] = 302, url_for("sandbox.show_inbox")
    elif behaviour.answer == "long_head":
        response.headers["X-Long"] = "x" * LONG_HEAD
    else:
        response.status_code = int(behaviour.answer)
    if behaviour.answer in ("429", "503"):
        response.headers["Retry-After"] = str(behaviour.seconds or 30)
    return response


@sandbox.get("/inbox")
def show_inbox() -> Any:
    """Show the received callbacks, newest first, as a page or as JSON. `?order_no=` filters by order."""
    order_no = request.args.get("order_no", "")
    if wants_json():
        return as_json()
    now = inbox().behaviour
    return render_template(
        "sandbox/inbox.html",
        items=inbox().arrivals(order_no),
        elsewhere=[merchant for merchant in simulator.merchants() if merchant.callback_url != INBOX],
        order_no=order_no,
        url=f"{current().settings.public_url}/sandbox/inbox",
        behaviour=now,
        label=gettext(LABELS[now.answer]),
        labels={name: gettext(LABELS[name]) for name in ANSWERS},
    )


@sandbox.get("/inbox.json")
def as_json() -> Response:
    """Return the received callbacks as JSON. `?order_no=` and `?webhook_id=` filter them."""
    found = inbox().arrivals(request.args.get("order_no", ""), request.args.get("webhook_id", ""))
    return ok({"list": [each.for_scripts() for each in found], "total": len(found)})


@sandbox.get("/inbox/<int:number>")
def one(number: int) -> Any:
    """Show one callback: request, signature check, response, other attempts."""
    arrival = inbox().find(number)
    if arrival is None:
        raise ApiError(Code.PATH_NOT_FOUND)
    if wants_json():
        return ok(arrival.for_scripts())
    return render_template(
        "sandbox/inbox_one.html",
        item=arrival,
        tries=inbox().arrivals(webhook_id=arrival.webhook_id),
        why=gettext(arrival.why) if arrival.why else "",
        labels={name: gettext(LABELS[name]) for name in ANSWERS},
        order=Order.find(arrival.order_no),
        callback=Callback.get_or_none(Callback.webhook_id == arrival.webhook_id),
    )


@sandbox.post("/inbox/answers")
def answers() -> Any:
    """Choose the response to the next callbacks: `answer`, `times`, `seconds`."""
    behaviour = Behaviour(**form_of(FailureForm()))
    inbox().behave(behaviour)
    return done(vars(behaviour), "sandbox.show_inbox")


@sandbox.route("/inbox", methods=["DELETE"])
@sandbox.post("/inbox/clear")
def clear() -> Any:
    """Delete all received callbacks."""
    inbox().clear()
    return done(None, "sandbox.show_inbox")


@sandbox.post("/inbox/again")
def again() -> Any:
    """Redeliver a callback."""
    delivery.redeliver(form_of(CallbackForm())["webhook_id"])
    return done(None, "sandbox.show_inbox")


@sandbox.get("/return")
def show_return() -> Any:
    """Show the fields with which a payer returned and whether they are genuine, as a page or as JSON."""
    fields = {name: request.args[name] for name in RETURN_FIELDS if name in request.args}
    fault = fault_of_return(fields)
    if wants_json():
        return ok({"verified": not fault, "why": fault, **fields})
    return render_template(
        "sandbox/returned.html",
        fields=fields,
        why=gettext(fault) if fault else "",
        signed=signed_content(fields) if fault != FIELD_MISSING else "",
    )
