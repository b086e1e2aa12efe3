"""The callbacks to a merchant, their content, and their timing with each change of status."""

import base64
import json
import re
import time
from datetime import datetime

import pytest
from standardwebhooks import Webhook

from models.db.writer import transaction
from models.tables.order import Order
from services.callbacks import outbox
from tests.databases import raw

QUERY_FIELDS = {
    "order_no",
    "merchant_order_no",
    "order_type",
    "cny_amount",
    "merchant_actual_amount",
    "service_rate",
    "service_amount",
    "status",
    "createtime",
    "updatetime",
}


def bought(api, outcome="success", **more):
    """A deposit with this outcome in the sandbox."""
    order_no = api.buy(**more).data["order_no"]
    api.play(order_no, outcome)
    return order_no


def paid_out(api, flask, due, ahead):
    """A withdrawal from start to end."""
    order_no = api.sell("50.00").data["order_no"]
    flask("order", "accept", order_no)
    due.orders()
    ahead(10)
    due.orders()
    return order_no


def test_a_paid_deposit_arrives_as_a_signed_event(api, shop, due, flask_json):
    order_no = bought(api, merchant_order_no="SHOP-1 中文")
    bought(api)
    due.callbacks()
    got, other = sorted(shop.got, key=lambda got: got.event["data"]["order_no"] != order_no)
    assert (got.method, got.headers["Content-Type"].partition(";")[0]) == ("POST", "application/json")
    assert (set(got.event), got.event["type"]) == ({"type", "timestamp", "data"}, "order.completed")
    assert set(got.event["data"]) == QUERY_FIELDS
    assert got.event["data"] == api.detail(order_no=order_no).data
    text = got.event["timestamp"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", text), "RFC 3339"
    assert abs(datetime.fromisoformat(text).timestamp() - time.time()) < 60
    assert re.fullmatch(r"v1,[A-Za-z0-9+/]{43}=", got.headers["Webhook-Signature"])
    assert abs(int(got.headers["Webhook-Timestamp"]) - time.time()) < 60
    assert re.fullmatch(r"[A-Za-z0-9_-]{16,64}", got.webhook_id)
    assert other.webhook_id != got.webhook_id
    listed = [row for row in flask_json("callback", "list", "--merchant", "demo") if row["id"] == got.webhook_id]
    assert [(row["order_no"], row["type"], row["state"]) for row in listed] == [
        (order_no, "order.completed", "delivered")
    ]
    assert json.loads(flask_json("callback", "show", got.webhook_id)["body"]) == got.event


def test_a_new_secret_is_whsec_and_32_bytes(flask_json):
    made = [flask_json("merchant", "add", key)["callback_secret"] for key in ("one", "two")]
    made.append(flask_json("merchant", "rotate", "one", "--callback")["callback_secret"])
    assert len(set(made)) == 3
    for secret in made:
        assert secret.startswith("whsec_")
        assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32


@pytest.mark.parametrize(
    ("events", "outcome", "events_sent"),
    [
        (None, "success", ["completed"]),
        (None, "fail", ["cancelled"]),
        ("", "success", ["completed"]),
        ("paid", "success", ["completed", "paid"]),
        ("confirmed", "success", ["completed", "confirmed"]),
        ("paid,confirmed", "success", ["completed", "confirmed", "paid"]),
        ("paid,confirmed", "fail", ["cancelled"]),
    ],
)
def test_a_merchant_gets_the_results_and_what_it_subscribes_to(events, outcome, events_sent, api, shop, due, flask):
    if events is not None:
        flask("merchant", "set", "demo", "--events", events)
    bought(api, outcome)
    due.callbacks()
    assert sorted(got.event["type"] for got in shop.got) == [f"order.{status}" for status in events_sent]


def test_each_event_shows_the_order_as_it_was_then(api, shop, due, flask, ahead):
    flask("merchant", "set", "demo", "--events", "paid,confirmed")
    deposit, withdrawal = bought(api), paid_out(api, flask, due, ahead)
    due.callbacks()
    events = [got.event for got in shop.got]
    assert sorted((event["data"]["order_no"], event["type"]) for event in events) == sorted(
        (order_no, f"order.{status}")
        for order_no in (deposit, withdrawal)
        for status in ("paid", "confirmed", "completed")
    )
    assert all(event["type"] == f"order.{event['data']['status']}" for event in events)
    assert all(set(event["data"]) == QUERY_FIELDS for event in events)


def test_a_rejected_withdrawal_and_an_expired_deposit_have_a_callback(api, shop, due, flask, ahead):
    rejected, expired = api.sell().data["order_no"], api.buy().data["order_no"]
    flask("order", "reject", rejected, "--reason", "wrong card")
    ahead(901)
    due()
    due.callbacks()
    assert [(got.event["data"]["order_no"], got.event["type"]) for got in shop.got] == [
        (rejected, "order.cancelled"), (expired, "order.cancelled"),
    ]  # fmt: skip


@pytest.mark.parametrize("outcome", ["duplicate", "wrong_amount", "late"])
def test_no_event_is_sent_twice_or_without_its_cause(outcome, api, shop, due):
    events_sent = {"duplicate": ["order.completed"], "wrong_amount": [], "late": ["order.cancelled"]}[outcome]
    order_no = bought(api, outcome)
    api.play(order_no, outcome)
    due.callbacks()
    assert [got.event["type"] for got in shop.got] == events_sent


def test_a_cookie_of_a_merchants_server_is_never_sent_back(api, shop, due):
    shop.answers(200, headers={"Set-Cookie": "session=theirs; Path=/"})
    for _ in range(2):
        bought(api)
        due.callbacks()
    assert [received.headers.get("Cookie") for received in shop.got] == [None, None]


def test_each_merchant_gets_its_own_orders_once_signed_with_its_own_secret(api, other, shop, other_shop, due, ahead):
    mine, theirs = bought(api), bought(other)
    due.callbacks()
    ahead(86_400)
    assert due.callbacks() == 0
    assert [got.event["data"]["order_no"] for got in shop.got] == [mine]
    assert [got.event["data"]["order_no"] for got in other_shop.got] == [theirs]


def test_two_signatures_during_a_rotation_of_the_callback_secret(api, shop, due, flask_json, ahead):
    old = shop.secret
    new = flask_json("merchant", "rotate", "demo", "--callback", "--keep-hours", "1")["callback_secret"]
    bought(api)
    due.callbacks()
    (during,) = shop.got
    assert len(during.headers["Webhook-Signature"].split()) == 2
    for secret in (old, new):
        assert Webhook(secret).verify(during.body, during.headers)["type"] == "order.completed"

    ahead(3601)
    shop.secret = new
    bought(api)
    due.callbacks()
    after = shop.got[-1]
    assert after.event["type"] == "order.completed"
    assert len(after.headers["Webhook-Signature"].split()) == 1


def test_a_status_never_changes_without_its_callback(instance, api, shop, due, balances, flask_json):
    order_no = api.buy().data["order_no"]
    with raw(instance) as other:
        other.execute("ALTER TABLE callback RENAME TO away")
    assert api.play(order_no, "success").status >= 500
    assert api.status(order_no) == "pending"
    assert balances() == (1_000_000, 0)
    with raw(instance) as other:
        other.execute("ALTER TABLE away RENAME TO callback")
    assert [step["to"] for step in flask_json("order", "show", order_no)["history"]] == ["pending"]

    api.play(order_no, "success")
    due.callbacks()
    assert [got.event["data"]["status"] for got in shop.got] == ["completed"]


# --- events that can happen several times for an order


@pytest.fixture
def enqueue(api):
    """`enqueue(event, about)`: write that event of a completed deposit into the outbox."""
    order = Order.get(Order.order_no == bought(api))
    return transaction(lambda event="", about=None: outbox.enqueue(order, event, about))


@pytest.fixture
def types(flask_json):
    """`types()`: the types of all callbacks."""
    return lambda: sorted(row["type"] for row in flask_json("callback", "list"))


def test_each_exception_has_one_callback_for_subscribers(enqueue, flask, types, shop, due):
    enqueue("order.credited", 1)
    assert types() == ["order.completed"]
    flask("merchant", "set", "demo", "--events", "credited")
    for event, about in (("order.credited", 1), ("order.credited", 2), ("order.refunded", 3)):
        enqueue(event, about)
    assert types() == ["order.completed", "order.credited", "order.credited"]
    enqueue()
    enqueue("order.credited", 1)
    assert types() == ["order.completed", "order.credited", "order.credited"], "it is in the outbox already"
    due.callbacks()
    assert {got.event["data"]["status"] for got in shop.got} == {"completed"}
