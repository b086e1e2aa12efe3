"""Retries of callbacks, their end, the record of each attempt, and manual redelivery."""

import threading
import time
from datetime import datetime

import pytest
from werkzeug import Response

from tests.support import free_port

PAUSES = (5, 300, 1_800, 7_200, 18_000, 36_000, 36_000)


@pytest.fixture
def callback(flask_json):
    """`callback()`: the newest callback with all its attempts."""

    def newest():
        return flask_json("callback", "show", flask_json("callback", "list", "--limit", "1")[0]["id"])

    return newest


@pytest.fixture
def fail_until_dead(due, ahead, callback):
    """Try the newest callback until its retries are exhausted; return the seconds between its attempts."""

    def run():
        waits = []
        due.callbacks()
        while callback()["state"] == "pending":
            waits.append(callback()["due_at"] - callback()["tries"][-1]["at"])
            assert due.callbacks() == 0
            ahead(waits[-1])
            assert due.callbacks() == 1
        return waits

    return run


def completed(api):
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    return order_no


def test_eight_attempts_by_the_schedule_and_then_failed(api, shop, fail_until_dead, callback, ahead, due, flask_json):
    shop.answers(500)
    completed(api)
    waits = fail_until_dead()
    assert len(waits) == len(PAUSES)
    for waited, pause in zip(waits, PAUSES, strict=True):
        assert round(pause * 0.9) <= waited <= round(pause * 1.1)
    assert (callback()["state"], len(shop.got)) == ("dead", 8)
    assert [row["id"] for row in flask_json("callback", "list", "--state", "dead")] == [callback()["id"]]
    ahead(1_000_000)
    assert due.callbacks() == 0


def test_every_attempt_has_the_same_id_and_bytes_and_its_own_time(api, shop, fail_until_dead):
    shop.answers(503)
    completed(api)
    fail_until_dead()
    assert all(got.event for got in shop.got)  # each verified on receipt, at the time of that day
    assert len({got.webhook_id for got in shop.got}) == 1
    assert len({got.body for got in shop.got}) == 1
    assert len({got.headers["Webhook-Timestamp"] for got in shop.got}) == 8


def test_the_pauses_vary(api, shop, due, ahead, flask_json):
    shop.answers(500)
    for _ in range(15):
        completed(api)
    due.callbacks()
    ahead(6)
    due.callbacks()
    assert len({row["due_at"] for row in flask_json("callback", "list")}) > 3


def test_a_callback_that_fails_first_is_delivered_later(api, shop, due, ahead, callback):
    shop.answers(500)
    completed(api)
    due.callbacks()
    shop.answers(200)
    ahead(6)
    due.callbacks()
    assert callback()["state"] == "delivered"
    assert [attempt["status"] for attempt in callback()["tries"]] == [500, 200]


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_delivered(status, api, shop, due, callback):
    shop.answers(status)
    completed(api)
    due.callbacks()
    assert callback()["state"] == "delivered"
    assert [attempt["status"] for attempt in callback()["tries"]] == [status]


@pytest.mark.parametrize("status", [300, 304, 400, 401, 404, 409, 429, 500, 502, 503])
def test_any_other_status_is_tried_again(status, api, shop, due, callback):
    shop.answers(status)
    completed(api)
    due.callbacks()
    assert callback()["state"] == "pending"
    assert callback()["due_at"] is not None
    assert [attempt["status"] for attempt in callback()["tries"]] == [status]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_is_not_followed(status, api, shop, other_shop, due, callback):
    shop.answers(status, headers={"Location": other_shop.url})
    completed(api)
    due.callbacks()
    assert callback()["state"] == "pending"
    assert callback()["tries"][0]["status"] == status
    assert other_shop.got == []


def test_410_ends_it(api, shop, due, ahead, callback):
    shop.answers(410)
    completed(api)
    due.callbacks()
    assert callback()["state"] == "dead"
    ahead(1_000_000)
    due.callbacks()
    assert len(shop.got) == 1


def test_an_unreachable_server_is_tried_again(api, flask, due, callback):
    flask("merchant", "set", "demo", "--callback-url", f"http://127.0.0.1:{free_port()}/hook")
    completed(api)
    due.callbacks()
    (attempt,) = callback()["tries"]
    assert attempt["status"] is None
    assert attempt["answer"]
    assert callback()["state"] == "pending"


def test_a_2xx_with_an_unreadable_text_is_delivered(api, shop, due, callback):
    shop.answers(200, "not packed at all", {"Content-Encoding": "gzip"})
    completed(api)
    due.callbacks()
    assert callback()["state"] == "delivered"


def test_each_attempt_is_stored_with_its_time_and_duration(api, shop, due, callback):
    def slowly(request):
        threading.Event().wait(0.05)
        return Response("later", 500)

    shop.answer = slowly
    completed(api)
    due.callbacks()
    (attempt,) = callback()["tries"]
    assert abs(attempt["at"] - time.time()) < 60
    assert 50 <= attempt["milliseconds"] < 60_000
    assert (attempt["status"], attempt["answer"]) == (500, "later")


@pytest.mark.parametrize("text", ["x" * 5000, "收" * 2000])
def test_the_first_kibibyte_of_the_response_is_stored(text, api, shop, due, callback):
    shop.answers(500, text)
    completed(api)
    due.callbacks()
    kept = callback()["tries"][0]["answer"].rstrip("\ufffd")
    assert text.startswith(kept)
    assert 1021 <= len(kept.encode()) <= 1024


def test_a_response_in_pieces_is_stored_complete(api, shop, due, callback):
    shop.answer = lambda request: Response(iter(["it ", "failed ", "because"]), 500)
    completed(api)
    due.callbacks()
    assert callback()["tries"][0]["answer"] == "it failed because"


def test_a_failed_callback_can_be_redelivered_manually(api, shop, flask, due, callback):
    shop.answers(410)
    completed(api)
    due.callbacks()
    shop.answers(200)
    flask("callback", "redeliver", callback()["id"])
    due.callbacks()
    assert callback()["state"] == "delivered"
    assert [attempt["status"] for attempt in callback()["tries"]] == [410, 200]
    assert shop.got[0].body == shop.got[1].body
    assert shop.got[0].webhook_id == shop.got[1].webhook_id


def test_a_redelivered_callback_has_eight_attempts_again(api, shop, flask, fail_until_dead, callback):
    shop.answers(500)
    completed(api)
    fail_until_dead()
    flask("callback", "redeliver", callback()["id"])
    assert len(fail_until_dead()) == len(PAUSES)
    assert len(callback()["tries"]) == 16


def test_a_redelivery_requested_during_an_attempt_is_not_lost_with_it(api, shop, flask, due, callback):
    def answer(_request):
        flask("callback", "redeliver", callback()["id"])
        shop.answers(200)
        return Response("no", 500)

    shop.answer = answer
    completed(api)
    due.callbacks()
    assert (callback()["state"], len(callback()["tries"])) == ("pending", 1)
    assert due.callbacks() == 1  # immediately, not after the pause that follows a failure
    assert (callback()["state"], len(shop.got)) == ("delivered", 2)


def test_an_attempt_overtaken_by_a_redelivery_in_the_same_second_does_not_count(api, shop, flask, due, clock, callback):
    again, gone_on, sweeps = threading.Event(), threading.Event(), []

    def answer(_request):
        if len(shop.got) == 1:
            return Response("not yet", 500)
        if len(shop.got) == 2:
            flask("callback", "redeliver", callback()["id"])
            sweeps.append(threading.Thread(target=due.callbacks, daemon=True))
            sweeps[0].start()
            assert again.wait(20)
            return Response("no", 500)
        again.set()
        assert gone_on.wait(20)
        return Response("yes")

    shop.answer = answer
    completed(api)
    due.callbacks()
    clock(10)
    due.callbacks()
    gone_on.set()
    sweeps[0].join(20)
    assert (callback()["state"], len(callback()["tries"])) == ("delivered", 3)


def test_all_callbacks_of_a_merchant_in_a_time_range_are_redelivered(api, other, shop, other_shop, flask, due, ahead):
    orders = []
    for _ in range(3):
        completed(other)
        orders.append((completed(api), datetime.now()))
        due.callbacks()
        ahead(3600)
    shop.got.clear()
    other_shop.got.clear()
    at = orders[1][1]
    since, until = (at.fromtimestamp(at.timestamp() + seconds).isoformat(timespec="seconds") for seconds in (-60, 60))
    flask("callback", "redeliver", "--merchant", "demo", "--since", since, "--until", until)
    due.callbacks()
    assert [got.event["data"]["order_no"] for got in shop.got] == [orders[1][0]]
    assert other_shop.got == []


@pytest.mark.parametrize(
    "arguments",
    [(), ("msg_unknown",), ("--merchant", "nobody"), ("--merchant", "other"), ("msg_unknown", "--merchant", "demo")],
)
def test_a_redelivery_of_nothing_is_refused(arguments, flask):
    flask("callback", "redeliver", *arguments, fails=True)
