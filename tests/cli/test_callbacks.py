"""`tillbook callback`: the callbacks to merchants, each attempt, and redelivery."""

import json
from datetime import datetime

import pytest


def _complete(api):
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    return order_no


def test_a_callback_is_listed_with_its_state(flask_json, api, due, shop):
    order_no = _complete(api)
    (waiting,) = flask_json("callback", "list")
    assert (waiting["state"], waiting["attempts"], waiting["order_no"]) == ("pending", 0, order_no)
    due.callbacks()
    (delivered,) = flask_json("callback", "list")
    assert (delivered["state"], delivered["attempts"], delivered["due_at"]) == ("delivered", 1, None)
    assert (delivered["merchant"], delivered["type"]) == ("demo", "order.completed")


def test_show_prints_the_body_and_every_attempt(flask, flask_json, api, due, shop, ahead):
    _complete(api)
    shop.answers(500, "not now 稍后")
    due.callbacks()
    shop.answers(204)
    ahead(10)
    due.callbacks()
    webhook_id = flask_json("callback", "list")[0]["id"]
    shown = flask_json("callback", "show", webhook_id)
    assert [(attempt["status"], attempt["answer"]) for attempt in shown["tries"]] == [(500, "not now 稍后"), (204, "")]
    assert shown["body"].encode() == shop.got[0].body
    assert json.loads(shown["body"])["type"] == "order.completed"
    people = flask("callback", "show", webhook_id).output
    assert all(text in people for text in (webhook_id, "500", "204", "not now 稍后"))


def test_an_attempt_that_was_redirected_says_where_to_and_what_to_do(flask, flask_json, api, due, shop):
    _complete(api)
    shop.answers(301, "moved", headers={"Location": "https://www.shop.example/hook?token=sesame"})
    due.callbacks()
    webhook_id = flask_json("callback", "list")[0]["id"]
    (attempt,) = flask_json("callback", "show", webhook_id)["tries"]
    said = "The server redirects to https://www.shop.example/hook?token=***. Redirects are not followed: "
    assert (attempt["status"], attempt["problem"]) == (301, f"{said}enter the final address.")
    assert attempt["answer"] == "Location: https://www.shop.example/hook?token=***\nmoved"
    assert said in flask("callback", "show", webhook_id).output


@pytest.mark.parametrize(
    ("status", "location", "problem"),
    [
        (302, "/login", "redirects to {url}/login."),
        (308, "//www.shop.example/hook", "redirects to http://www.shop.example/hook."),
        (307, "mailto:owner@shop.example", "The server redirects. "),
        (303, None, "The server redirects. "),
        (304, "/login", ""),
        (500, "/login", ""),
    ],
)
def test_a_redirect_is_named_with_or_without_a_usable_target(flask_json, api, due, shop, status, location, problem):
    _complete(api)
    shop.answers(status, "moved", headers={"Location": location} if location else None)
    due.callbacks()
    (attempt,) = flask_json("callback", "show", flask_json("callback", "list")[0]["id"])["tries"]
    assert problem.format(url=shop.url.removesuffix("/demo")) in attempt["problem"]
    assert bool(attempt["problem"]) is bool(problem)


def test_redelivering_sends_the_same_id_and_the_same_bytes(flask, flask_json, api, due, shop):
    _complete(api)
    due.callbacks()
    webhook_id = flask_json("callback", "list")[0]["id"]
    assert "1 callbacks queued" in flask("callback", "redeliver", webhook_id).output
    due.callbacks()
    first, second = shop.got
    assert (first.body, first.headers["Webhook-Id"]) == (second.body, second.headers["Webhook-Id"])
    assert len(flask_json("callback", "show", webhook_id)["tries"]) == 2


def test_a_failed_callback_is_listed_and_can_be_redelivered(flask, flask_json, api, due, shop):
    _complete(api)
    shop.answers(410)
    due.callbacks()
    (dead,) = flask_json("callback", "list", "--state", "dead")
    shop.answers(200)
    flask("callback", "redeliver", dead["id"])
    due.callbacks()
    assert flask_json("callback", "list")[0]["state"] == "delivered"


def test_all_of_a_merchant_in_a_time_range_are_redelivered(flask, api, other, due, shop, ahead):
    _complete(api)
    ahead(3600)
    since = datetime.now().strftime("%Y-%m-%d %H:%M:%S")
    inside = _complete(api)
    _complete(other)
    ahead(3600)
    until = datetime.now().strftime("%Y-%m-%dT%H:%M:%S")
    ahead(3600)
    _complete(api)
    due.callbacks()
    shop.got.clear()
    said = flask("callback", "redeliver", "--merchant", "demo", "--since", since, "--until", until).output
    due.callbacks()
    assert "1 callbacks queued" in said
    assert [each.event["data"]["order_no"] for each in shop.got] == [inside]


def test_only_failed_callbacks_are_redelivered_if_requested(flask, api, due, shop):
    _complete(api)
    due.callbacks()
    shop.answers(410)
    dead = _complete(api)
    due.callbacks()
    shop.got.clear()
    flask("callback", "redeliver", "--merchant", "demo", "--state", "dead")
    due.callbacks()
    assert [each.event["data"]["order_no"] for each in shop.got] == [dead]


@pytest.mark.parametrize(
    ("filters", "count"),
    [((), 2), (("--merchant", "demo"), 1), (("--state", "delivered"), 0), (("--limit", "1"), 1)],
)
def test_the_list_is_filtered(flask_json, api, other, filters, count):
    for merchant in (api, other):
        _complete(merchant)
    assert len(flask_json("callback", "list", *filters)) == count


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "either WEBHOOK_ID or --merchant"),
        (("msg_x",), "Callback not found."),
        (("msg_x", "--merchant", "demo"), "either WEBHOOK_ID or --merchant"),
        (("--merchant", "nobody"), "no merchant nobody"),
        (("--merchant", "demo", "--since", "yesterday"), "--since"),
        (("--merchant", "demo", "--until", "2000-01-01"), "Callback not found."),
        (("--merchant", "demo", "--state", "lost"), "--state"),
    ],
)
def test_a_redelivery_that_names_nothing_is_refused(refuses, flask_json, api, due, arguments, words):
    _complete(api)
    before = flask_json("callback", "list")
    assert words in refuses("callback", "redeliver", *arguments)
    assert flask_json("callback", "list") == before


def test_an_unknown_callback_is_refused(refuses):
    assert "no callback msg_x" in refuses("callback", "show", "msg_x")


def test_a_merchants_response_cannot_control_the_operators_terminal(flask, flask_json, api, due, shop):
    _complete(api)
    shop.answers(500, "\x1b[2J\x1b[31mgone\r\nsecond line\x07")
    due.callbacks()
    shown = flask("callback", "show", flask_json("callback", "list")[0]["id"]).output
    assert "gone" in shown
    assert [char for char in shown if not char.isprintable() and char != "\n"] == []
    assert len(shown.split("\nattempts\n")[1].splitlines()) == 2  # the heading, and the one attempt
