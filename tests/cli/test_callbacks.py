"""`tillbook callback`: the callbacks to merchants, each attempt, and redelivery."""

import json
from datetime import datetime

import pytest

from services.operations import redelivery
from tests.support import completed


@pytest.fixture
def newest(flask_json):
    """`newest()`: the newest callback, as `callback show` prints it."""
    return lambda: flask_json("callback", "show", flask_json("callback", "list")[0]["id"])


@pytest.fixture
def most(monkeypatch):
    """Three callbacks in one redelivery, two in one statement."""
    monkeypatch.setattr(redelivery, "MOST", 3)
    monkeypatch.setattr(redelivery, "AT_ONCE", 2)


def test_a_callback_is_listed_with_its_state_and_shown_with_its_body_and_every_attempt(
    flask, flask_json, newest, api, due, shop, ahead
):
    order_no = completed(api)
    (waiting,) = flask_json("callback", "list")
    assert (waiting["state"], waiting["attempts"], waiting["order_no"]) == ("pending", 0, order_no)
    shop.answers(500, "not now 稍后")
    due.callbacks()
    shop.answers(204)
    ahead(10)
    due.callbacks()
    (delivered,) = flask_json("callback", "list")
    assert (delivered["state"], delivered["attempts"], delivered["due_at"]) == ("delivered", 2, None)
    assert (delivered["merchant"], delivered["type"]) == ("demo", "order.completed")
    shown = newest()
    assert [(attempt["status"], attempt["answer"]) for attempt in shown["tries"]] == [(500, "not now 稍后"), (204, "")]
    assert shown["body"].encode() == shop.got[0].body
    assert json.loads(shown["body"])["type"] == "order.completed"
    people = flask("callback", "show", delivered["id"]).output
    assert all(text in people for text in (delivered["id"], "500", "204", "not now 稍后"))


def test_an_attempt_that_was_redirected_says_where_to_and_what_to_do(flask, newest, api, due, shop):
    completed(api)
    shop.answers(301, "moved", headers={"Location": "https://www.shop.example/hook?token=sesame"})
    due.callbacks()
    (attempt,) = newest()["tries"]
    said = "The server redirects to https://www.shop.example/hook?token=***. Redirects are not followed: "
    assert (attempt["status"], attempt["problem"]) == (301, f"{said}enter the final address.")
    assert attempt["answer"] == "Location: https://www.shop.example/hook?token=***\nmoved"
    assert said in flask("callback", "show", newest()["id"]).output


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
def test_a_redirect_is_named_with_or_without_a_usable_target(newest, api, due, shop, status, location, problem):
    completed(api)
    shop.answers(status, "moved", headers={"Location": location} if location else None)
    due.callbacks()
    (attempt,) = newest()["tries"]
    assert problem.format(url=shop.url.removesuffix("/demo")) in attempt["problem"]
    assert bool(attempt["problem"]) is bool(problem)


def test_redelivering_sends_the_same_id_and_the_same_bytes(flask, newest, api, due, shop):
    completed(api)
    due.callbacks()
    assert "1 callbacks queued" in flask("callback", "redeliver", newest()["id"]).output
    due.callbacks()
    first, second = shop.got
    assert (first.body, first.webhook_id) == (second.body, second.webhook_id)
    assert len(newest()["tries"]) == 2


def test_a_failed_callback_is_listed_and_can_be_redelivered(flask, flask_json, api, due, shop):
    completed(api)
    due.callbacks()
    shop.answers(410)
    failed = completed(api)
    due.callbacks()
    (dead,) = flask_json("callback", "list", "--state", "dead")
    assert dead["order_no"] == failed
    shop.got.clear()
    shop.answers(200)
    flask("callback", "redeliver", "--merchant", "demo", "--state", "dead")
    due.callbacks()
    assert [each.event["data"]["order_no"] for each in shop.got] == [failed]
    assert [row["state"] for row in flask_json("callback", "list")] == ["delivered", "delivered"]


def test_delivered_ones_of_a_merchant_in_a_time_range_are_redelivered_if_the_command_names_their_state(
    flask, refuses, api, other, due, shop, ahead
):
    completed(api)
    ahead(3600)
    since = datetime.now().strftime("%Y-%m-%d %H:%M:%S")
    inside = completed(api)
    completed(other)
    ahead(3600)
    until = datetime.now().strftime("%Y-%m-%dT%H:%M:%S")
    ahead(3600)
    completed(api)
    due.callbacks()
    shop.got.clear()
    selected = ("--merchant", "demo", "--since", since, "--until", until)
    assert "No callbacks to resend." in refuses("callback", "redeliver", *selected)
    said = flask("callback", "redeliver", *selected, "--state", "delivered").output
    due.callbacks()
    assert "1 callbacks queued" in said
    assert [each.event["data"]["order_no"] for each in shop.got] == [inside]


def test_those_of_one_event_or_of_one_order_are_redelivered(flask, refuses, api, due, shop):
    shop.answers(410)
    first, second = completed(api), completed(api)
    due.callbacks()
    shop.got.clear()
    shop.answers(200)
    assert "No callbacks to resend." in refuses("callback", "redeliver", "--event", "order.cancelled")
    assert "No callbacks to resend." in refuses("callback", "redeliver", "--order", first, "--event", "order.paid")
    for selected, order_no in ((("--order", first), first), (("--event", "order.completed"), second)):
        assert "1 callbacks queued" in flask("callback", "redeliver", *selected).output
        due.callbacks()
        assert shop.got[-1].event["data"]["order_no"] == order_no
    assert len(shop.got) == 2


def test_failed_and_waiting_ones_of_all_merchants_are_redelivered(flask, api, other, due, shop, other_shop):
    shop.answers(410)
    other_shop.answers(500)
    failed, waiting = completed(api), completed(other)
    due.callbacks()
    shop.answers(200)
    other_shop.answers(200)
    new = completed(api)
    said = flask("callback", "redeliver", "--since", "2000-01-01").output
    assert "2 callbacks queued" in said, "the new one is queued already"
    for each in (shop, other_shop):
        each.got.clear()
    due.callbacks()
    assert {each.event["data"]["order_no"] for each in shop.got} == {failed, new}
    assert [each.event["data"]["order_no"] for each in other_shop.got] == [waiting]


def test_callbacks_without_an_address_are_left_out_with_the_reason(flask, api, other, due, shop):
    shop.answers(410)
    flask("merchant", "set", "other", "--callback-url", "")
    for merchant in (api, other):
        completed(merchant)
    due.callbacks()
    said = flask("callback", "redeliver", "--state", "dead").output
    assert "1 callbacks left out: other has no callback URL. Set one first." in said
    assert "1 callbacks queued" in said


def test_more_than_one_redelivery_are_sent_oldest_first_and_the_rest_is_named(flask, flask_json, api, due, shop, most):
    shop.answers(410)
    orders = [completed(api) for _ in range(5)]
    due.callbacks()
    assert "More callbacks match. Repeat the command" in flask("callback", "redeliver", "--state", "dead").output
    queued = [row["order_no"] for row in flask_json("callback", "list", "--state", "pending")]
    assert sorted(queued) == sorted(orders[:3])
    assert "More" not in flask("callback", "redeliver", "--state", "dead").output
    assert not flask_json("callback", "list", "--state", "dead")


def test_the_list_is_filtered(flask_json, api, other):
    for merchant in (api, other):
        completed(merchant)
    filters = {(): 2, ("--merchant", "demo"): 1, ("--state", "delivered"): 0, ("--limit", "1"): 1}
    assert {each: len(flask_json("callback", "list", *each)) for each in filters} == filters


def test_a_redelivery_that_names_nothing_is_refused(refuses, api, rows):
    completed(api)
    before = rows()
    for arguments, words in (
        (("--state", "dead"), "No callbacks to resend."),
        ((), "either WEBHOOK_ID or at least one"),
        (("msg_x",), "Callback not found."),
        (("msg_x", "--merchant", "demo"), "either WEBHOOK_ID or at least one"),
        (("--merchant", "nobody"), "no merchant nobody"),
        (("--merchant", "demo", "--since", "yesterday"), "--since"),
        (("--merchant", "demo", "--until", "2000-01-01"), "No callbacks to resend."),
        (("--merchant", "demo", "--state", "lost"), "--state"),
        (("--event", "order.lost"), "--event"),
        (("msg_x", "--order", "1"), "either WEBHOOK_ID or at least one"),
    ):
        assert words in refuses("callback", "redeliver", *arguments), arguments
    assert "no callback msg_x" in refuses("callback", "show", "msg_x")
    before["AuditEntry"] = rows()["AuditEntry"]
    assert rows() == before


def test_a_merchants_response_cannot_control_the_operators_terminal(flask, newest, api, due, shop):
    completed(api)
    shop.answers(500, "\x1b[2J\x1b[31mgone\r\nsecond line\x07")
    due.callbacks()
    shown = flask("callback", "show", newest()["id"]).output
    assert "gone" in shown
    assert [char for char in shown if not char.isprintable() and char != "\n"] == []
    assert len(shown.split("\nattempts\n")[1].splitlines()) == 2  # the heading, and the one attempt
