"""The callbacks to a merchant, their content, and their timing with each change of status."""

import base64
import json
import re
import time
from datetime import datetime

import pytest
from standardwebhooks import Webhook

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


def test_a_paid_deposit_arrives_as_a_signed_event(api, shop, due):
    order_no = bought(api, merchant_order_no="SHOP-1 中文")
    due.callbacks()
    (got,) = shop.got
    assert got.method == "POST"
    assert got.headers["Content-Type"].startswith("application/json")
    assert set(got.event) == {"type", "timestamp", "data"}
    assert got.event["type"] == "order.completed"
    assert set(got.event["data"]) == QUERY_FIELDS
    assert got.event["data"] == api.detail(order_no=order_no).data


def test_the_time_of_the_event_is_rfc_3339(api, shop, due):
    bought(api)
    due.callbacks()
    text = shop.got[0].event["timestamp"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", text)
    assert abs(datetime.fromisoformat(text).timestamp() - time.time()) < 60


def test_the_headers_are_those_of_standard_webhooks(api, shop, due):
    bought(api)
    due.callbacks()
    headers = shop.got[0].headers
    assert re.fullmatch(r"v1,[A-Za-z0-9+/]{43}=", headers["Webhook-Signature"])
    assert headers["Webhook-Timestamp"].isdigit()
    assert abs(int(headers["Webhook-Timestamp"]) - time.time()) < 60
    assert re.fullmatch(r"[A-Za-z0-9_-]{16,64}", headers["Webhook-Id"])


def test_every_event_has_an_id_of_its_own(api, shop, due):
    bought(api)
    bought(api)
    due.callbacks()
    assert len({got.webhook_id for got in shop.got}) == 2


def test_the_secret_is_that_of_the_merchant_and_no_other(api, shop, due, flask_json):
    shop.secret = flask_json("merchant", "show", "other")["callback_secret"]
    bought(api)
    due.callbacks()
    assert shop.got[0].event is None
    assert Webhook(flask_json("merchant", "show", "demo")["callback_secret"]).verify(
        shop.got[0].body, shop.got[0].headers
    )


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


def test_each_event_shows_the_order_as_it_was_then(api, shop, due, flask):
    flask("merchant", "set", "demo", "--events", "paid,confirmed")
    bought(api)
    due.callbacks()
    assert len(shop.got) == 3
    assert all(got.event["type"] == f"order.{got.event['data']['status']}" for got in shop.got)


def test_a_withdrawal_has_the_same_callbacks(api, shop, due, flask, ahead):
    flask("merchant", "set", "demo", "--events", "paid,confirmed")
    order_no = paid_out(api, flask, due, ahead)
    due.callbacks()
    assert sorted(got.event["type"] for got in shop.got) == ["order.completed", "order.confirmed", "order.paid"]
    assert {got.event["data"]["order_no"] for got in shop.got} == {order_no}
    assert all(set(got.event["data"]) == QUERY_FIELDS for got in shop.got)


def test_a_rejected_withdrawal_has_a_callback(api, shop, due, flask):
    flask("order", "reject", api.sell().data["order_no"], "--reason", "wrong card")
    due.callbacks()
    assert [got.event["type"] for got in shop.got] == ["order.cancelled"]


def test_an_expired_deposit_has_a_callback(api, shop, due, ahead):
    api.buy()
    ahead(901)
    due()
    due.callbacks()
    assert [got.event["type"] for got in shop.got] == ["order.cancelled"]


@pytest.mark.parametrize("outcome", ["duplicate", "wrong_amount", "late"])
def test_no_event_is_sent_twice_or_without_its_cause(outcome, api, shop, due):
    events_sent = {"duplicate": ["order.completed"], "wrong_amount": [], "late": ["order.cancelled"]}[outcome]
    order_no = bought(api, outcome)
    api.play(order_no, outcome)
    due.callbacks()
    assert [got.event["type"] for got in shop.got] == events_sent


def test_a_delivered_callback_is_not_sent_again(api, shop, due, ahead):
    bought(api)
    due.callbacks()
    ahead(86_400)
    assert due.callbacks() == 0
    assert len(shop.got) == 1


def test_each_merchant_gets_its_own_orders_signed_with_its_own_secret(api, other, shop, other_shop, due):
    mine, theirs = bought(api), bought(other)
    due.callbacks()
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


def test_a_command_shows_what_was_sent(api, shop, due, flask_json):
    order_no = bought(api)
    due.callbacks()
    (listed,) = flask_json("callback", "list", "--merchant", "demo")
    assert (listed["order_no"], listed["type"], listed["state"]) == (order_no, "order.completed", "delivered")
    shown = flask_json("callback", "show", listed["id"])
    assert shown["id"] == shop.got[0].webhook_id
    assert json.loads(shown["body"]) == shop.got[0].event
