"""The sandbox's two tools: choosing an order's outcome, and the inbox that shows callbacks."""

import json
from datetime import UTC, datetime
from urllib.parse import urlencode

import pytest
from standardwebhooks import Webhook

from app import create_app
from models.db.base import database
from models.tables.order import Order
from services.sandbox import seeding
from tests.databases import settings_of
from tests.support import through_flask

PAY, INBOX = "/sandbox/pay", "/sandbox/inbox"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
BROWSER = FORM | {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
ORDER = {"order_no": "1"}


@pytest.fixture
def pay(http):
    """`pay(fields, headers)` posts the form."""
    return lambda fields, headers=FORM: http("POST", PAY, urlencode(fields).encode(), headers)


@pytest.fixture
def deliver(http):
    """`deliver(body, secret, headers)` posts a callback to the inbox as the service would, or a forger."""

    def send(body, secret=seeding.CALLBACK_SECRETS["demo"], **headers):
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
        now = datetime.now(UTC)
        sign = Webhook(secret).sign("msg_1", now, text)
        own = {"webhook-id": "msg_1", "webhook-timestamp": str(int(now.timestamp())), "webhook-signature": sign}
        return http("POST", INBOX, text.encode(), {"Content-Type": "application/json"} | own | headers)

    return send


STATUSES = {"success": "completed", "duplicate": "completed", "fail": "cancelled", "late": "cancelled"}
STATUSES |= dict.fromkeys(("silent", "timeout", "wrong_amount"), "pending")


@pytest.mark.parametrize("outcome", STATUSES)
def test_a_script_gets_the_orders_state(outcome, api, pay):
    status = STATUSES[outcome]
    order_no = api.buy().data["order_no"]
    for accept in ("*/*", "application/json", "application/json, text/html;q=0.5"):
        answer = pay({"order_no": order_no, "outcome": outcome}, FORM | {"Accept": accept})
        assert (answer.status, answer.code) == (200, 1)
        assert answer.data == {"order_no": order_no, "outcome": outcome, "status": status}
    assert api.status(order_no) == status


def test_a_browser_returns_to_the_payment_page(api, pay, http):
    order_no = api.buy().data["order_no"]
    answer = pay({"order_no": order_no, "outcome": "success"}, BROWSER)
    assert answer.status == 303
    assert answer.headers["Location"] == f"/addons/paychannel/pay/index?order_no={order_no}&played=success"
    assert "Payment complete" in http("GET", answer.headers["Location"]).text


def test_an_unknown_outcome_or_order_is_refused(api, pay, http):
    order_no = api.buy().data["order_no"]
    for outcome in ({}, {"outcome": ""}, {"outcome": "paid"}, {"outcome": "SUCCESS"}, {"outcome": "success "}):
        answer = pay({"order_no": order_no} | outcome)
        assert (answer.status, answer.code, set(answer.data)) == (422, 42200, {"outcome"}), outcome
    for fields in ({}, {"order_no": ""}, ORDER, {"order_no": "\x00"}, {"order_no": "订单"}):
        answer = pay(fields | {"outcome": "success"})
        assert (answer.status, answer.code, answer.data) == (404, 40401, None), fields
    whole = {"order_no": order_no, "outcome": "success"}
    assert http("POST", f"{PAY}?{urlencode(whole)}", b"", FORM).code == 42200
    json_body = {"Content-Type": "application/json"}
    assert http("POST", PAY, json.dumps(whole).encode(), json_body).status in (415, 422)
    assert api.status(order_no) == "pending"


def test_an_order_of_a_real_channel_cannot_be_played(api, flask_json, pay):
    config = ("--config", "pid=1", "--config", "key=secret", "--config", "base_url=https://pay.example.com/")
    added = flask_json("channel", "add", "--driver", "epay", "--category", "gateway_b", "--name", "Shop", *config)
    order_no = api.buy(channel=3).data["order_no"]
    Order.update(channel=added["id"]).execute()
    answer = pay({"order_no": order_no, "outcome": "success"})
    assert answer.code == 42200
    assert "provider epay" in answer.data["order_no"][0]
    assert api.status(order_no) == "pending"


@pytest.mark.parametrize(("kind", "commands"), [("buy", ["paid"]), ("sell", ["approve", "paid"])])
def test_a_manual_order_is_refused_with_the_commands_that_confirm_it(api, flask, pay, kind, commands):
    order_no = getattr(api, kind)("10.00", channel=3).data["order_no"]
    answer = pay({"order_no": order_no, "outcome": "success"})
    shown = " && ".join(f"tillbook order {command} {order_no}" for command in commands)
    text = f"The channel Manual C is manual: confirm the order on the console, or run {shown}"
    assert (answer.code, answer.data) == (42200, {"order_no": [text]})
    for command in commands:
        flask("order", command, order_no)
    assert api.status(order_no) == "completed"


def test_the_endpoints_exist_in_demo_mode_only(any_database, tmp_path):
    app = create_app(settings_of(tmp_path / "real"))
    runner = app.test_cli_runner()
    runner.invoke(args=["merchant", "add", "shop"])
    runner.invoke(args=["channel", "add", "--category", "gateway_c", "--driver", "manual", "--name", "Bank"])
    send = through_flask(app.test_client())
    for method, path in (("POST", PAY), ("GET", INBOX), ("POST", INBOX)):
        answer = send(method, path, urlencode(ORDER | {"outcome": "success"}).encode(), FORM)
        assert (answer.status, answer.code) == (404, 40404)
    database.close()


def event_of(api):
    order_no = api.buy().data["order_no"]
    return {"type": "order.completed", "timestamp": "2026-01-01T00:00:00Z", "data": {"order_no": order_no}}


def test_a_genuine_callback_is_shown_as_verified_each_time(api, deliver, http):
    event = event_of(api)
    for times in (1, 2):
        assert deliver(event).status == 200
        page = http("GET", INBOX).text
        assert (page.count("<article"), page.count("Signature valid")) == (times, times)
        for text in ("order.completed", event["data"]["order_no"], "msg_1"):
            assert text in page


def test_a_forged_callback_is_shown_as_not_valid(api, deliver, http):
    forgeries = [
        {"secret": seeding.CALLBACK_SECRETS["other"]},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,AAAA"},
        {"webhook-timestamp": "1"},
        {"webhook-timestamp": "now"},
        {"webhook-timestamp": "²"},
        {"webhook-id": "msg_2"},
    ]
    for number, forged in enumerate(forgeries, 1):
        assert deliver(event_of(api), **forged).status == 200
        assert http("GET", INBOX).text.count("Signature invalid") == number, forged
    deliver({"type": "order.completed", "data": {"order_no": "1"}})  # of an unknown order
    page = http("GET", INBOX).text
    assert page.count("Signature invalid") == len(forgeries) + 1
    assert "Signature valid" not in page


def test_a_body_that_is_not_a_callback_is_refused_and_not_shown(deliver, http):
    event = '{"type": "x", "data": {"order_no": "1", "n": %s}}' % ("1" * 5_000)  # too long a number for Python
    objects = ('{"type": "x"}', '{"type": "x", "data": []}', '{"type": "x", "data": 1}', event)
    for body in ("", "{}", "[]", "null", "no json", "[" * 5000, *objects):
        answer = deliver(body)
        assert answer.status in (400, 422), body[:60]
        assert answer.code // 100 == answer.status
    assert "No callbacks yet" in http("GET", INBOX).text


def test_a_hostile_callback_is_escaped(deliver, http):
    for text in ("<script>alert(1)</script>", '"><img src=x>', "{{ 7*7 }}", "\ud800"):
        for fields in ({"type": text, "order_no": "1"}, {"type": "order.completed", "order_no": text}):
            answer = deliver(json.dumps({"type": fields["type"], "data": {"order_no": fields["order_no"]}}))
            assert answer.status < 500
            page = http("GET", INBOX)
            assert page.status == 200
            assert "<script>alert" not in page.text
            assert "<img" not in page.text


def test_the_inbox_has_a_strict_policy_and_the_readers_language(http):
    answer = http("GET", INBOX, headers={"Accept-Language": "zh-CN"})
    assert "暂无回调" in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "no-store" in answer.headers["Cache-Control"]


def test_the_newest_hundred_are_kept(api, deliver, http):
    event = event_of(api)
    for number in range(105):
        deliver(event | {"type": f"order.number{number}"})
    page = http("GET", INBOX).text
    assert page.count("<article") == 100
    assert page.index("order.number104") < page.index("order.number103")
    assert "order.number4<" not in page
