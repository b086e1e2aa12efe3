"""Verification of callbacks: the function itself, and Flask, Django and FastAPI applications."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from datetime import datetime, timezone
from decimal import Decimal
from typing import Annotated

import django
import fastapi
import flask
import httpx
import pytest
from django.conf import settings
from django.test import Client as DjangoClient
from django.urls import path
from stand_in import ORDER, REFUND

from tillbook_client import BadSignature, Event, verify
from tillbook_client.django import callback as django_callback
from tillbook_client.fastapi import callback as fastapi_callback
from tillbook_client.flask import callback as flask_callback

SECRET, NEW = ("whsec_" + base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))
BODY = json.dumps({"type": "order.completed", "timestamp": "2026-11-21T03:40:00Z", "data": ORDER}).encode()
NOW = 1795232400


def signed(body=BODY, secret=SECRET, at=NOW):
    content = f"msg_1.{at}.".encode() + body
    mac = hmac.new(base64.b64decode(secret[6:]), content, hashlib.sha256).digest()
    signature = "v1," + base64.b64encode(mac).decode()
    return {"webhook-id": "msg_1", "webhook-timestamp": str(at), "webhook-signature": signature}


def test_the_callback_of_the_documentation_is_valid():
    headers = {
        "Webhook-Id": "msg_1",
        "WEBHOOK-TIMESTAMP": str(NOW),
        "webhook-signature": signed()["webhook-signature"],
    }
    event = verify(headers, BODY, SECRET, now=NOW)
    moment = datetime(2026, 11, 21, 3, 40, tzinfo=timezone.utc)
    assert (event.id, event.type, event.timestamp) == ("msg_1", "order.completed", moment)
    assert (event.order.cny_amount, event.order.merchant_actual_amount) == (Decimal("100.00"), 9940)


def test_during_a_rotation_any_pair_of_secrets_matches():
    both = signed() | {"webhook-signature": f"v1,AAAA {signed()['webhook-signature']}"}
    assert verify(both, BODY, [NEW, SECRET], now=NOW).id == "msg_1"


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (signed(), BODY + b" "),
        (signed(secret=NEW), BODY),
        (signed() | {"webhook-id": "msg_2"}, BODY),
        (signed() | {"webhook-timestamp": str(NOW + 1)}, BODY),
        (signed() | {"webhook-timestamp": "１"}, BODY),
        (signed() | {"webhook-signature": "v1,é"}, BODY),
        (signed(at=NOW - 301), BODY),
        (signed(at=NOW + 301), BODY),
        ({}, BODY),
    ],
)
def test_a_changed_callback_is_a_bad_signature(headers, body):
    with pytest.raises(BadSignature):
        verify(headers, body, SECRET, now=NOW)


@pytest.mark.parametrize("secret", ["demo-secret", "whsec_", "whsec_?", ""])
def test_a_value_that_is_not_a_callback_secret_is_refused(secret):
    with pytest.raises(ValueError, match="whsec_"):
        verify(signed(), BODY, secret, now=NOW)


def test_a_callback_of_a_refund_has_the_refund():
    body = json.dumps({"type": "refund.completed", "timestamp": "2026-11-22T03:40:00Z", "data": REFUND}).encode()
    event = verify(signed(body), body, SECRET, now=NOW)
    assert (event.type, event.refund.refund_no, event.refund.status) == (
        "refund.completed",
        REFUND["refund_no"],
        "completed",
    )
    assert (event.refund.cny_amount, event.refund.merchant_actual_amount) == (Decimal("30.00"), 2982)


def test_an_unknown_type_is_an_event_too():
    body = json.dumps({"type": "merchant.changed", "timestamp": "2026-11-21T03:40:00Z", "data": {}}).encode()
    assert verify(signed(body), body, SECRET, now=NOW).type == "merchant.changed"


SEEN: list[Event] = []


@django_callback(SECRET)
def django_hook(request, event):
    SEEN.append(event)


urlpatterns = [path("hook", django_hook)]


def in_flask():
    app = flask.Flask(__name__)

    @app.post("/hook")
    @flask_callback(SECRET)
    def hook(event):
        SEEN.append(event)

    return lambda body, headers: app.test_client().post("/hook", data=body, headers=headers).status_code


def in_django():
    if not settings.configured:
        settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="only a test's")
        django.setup()
    client = DjangoClient(enforce_csrf_checks=True)

    def post(body, headers):
        return client.post("/hook", body, content_type="application/json", headers=headers).status_code

    assert client.get("/hook").status_code == 405
    return post


def in_fastapi():
    app = fastapi.FastAPI()

    @app.post("/hook", status_code=204)
    def hook(event: Annotated[Event, fastapi.Depends(fastapi_callback(SECRET))]) -> None:
        SEEN.append(event)

    async def post(body, headers):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop") as client:
            return (await client.post("/hook", content=body, headers=headers)).status_code

    return lambda body, headers: asyncio.run(post(body, headers))


@pytest.mark.parametrize("framework", [in_flask, in_django, in_fastapi])
def test_a_framework_passes_genuine_callbacks_and_refuses_the_others(framework):
    post = framework()
    SEEN.clear()
    now = int(time.time())
    headers = {"Content-Type": "application/json"} | signed(at=now)
    assert post(BODY, headers) == 204
    assert [event.order.order_no for event in SEEN] == [ORDER["order_no"]]
    assert post(BODY + b" ", headers) == 401
    assert post(BODY, {"Content-Type": "application/json"}) == 401
    assert len(SEEN) == 1
