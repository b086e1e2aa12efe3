"""Retries of callbacks, their end, the record of each attempt, and manual redelivery."""

import threading
import time
from datetime import datetime

import pytest
from werkzeug import Response

from tests.support import completed, free_port

PAUSES = (5, 300, 1_800, 7_200, 18_000, 36_000, 36_000)


@pytest.fixture
def ahead(clock):
    """`ahead(60)` sets the clock a minute ahead. It does not tick: no retry becomes due because a machine is slow."""
    passed = []

    def shift(seconds):
        passed.append(seconds)
        clock(sum(passed))

    return shift


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


def test_eight_attempts_by_the_schedule_with_the_same_bytes_and_eight_more_after_a_redelivery(
    api, shop, fail_until_dead, callback, ahead, due, flask, flask_json
):
    shop.answers(500)
    completed(api)
    for attempts in (8, 16):
        waits = fail_until_dead()
        for waited, pause in zip(waits, PAUSES, strict=True):
            assert round(pause * 0.9) <= waited <= round(pause * 1.1)
        assert (callback()["state"], len(shop.got), len(callback()["tries"])) == ("dead", attempts, attempts)
        assert [row["id"] for row in flask_json("callback", "list", "--state", "dead")] == [callback()["id"]]
        ahead(1_000_000)
        assert due.callbacks() == 0
        flask("callback", "redeliver", callback()["id"])
    assert all(got.event for got in shop.got), "each is verified on receipt, at the time of that day"
    assert len({(got.webhook_id, got.body) for got in shop.got}) == 1
    assert len({got.headers["Webhook-Timestamp"] for got in shop.got}) == 16


DELIVERED = (200, 201, 202, 204, 299)
TRIED_AGAIN = (300, 301, 302, 303, 304, 307, 308, 400, 401, 404, 409, 429, 500, 502, 503)


def test_the_status_decides_whether_a_callback_is_sent_again(
    api, shop, other_shop, due, ahead, flask, flask_json, tries
):
    states = {}
    for status in (*DELIVERED, *TRIED_AGAIN, 410):
        shop.answers(status, headers={"Location": other_shop.url})
        completed(api)
        due.callbacks()
        newest = flask_json("callback", "list", "--limit", "1")[0]
        states[status] = newest["state"]
        assert (newest["due_at"] is not None) is (newest["state"] == "pending"), status
        assert [attempt["status"] for attempt in tries()] == [status]
    assert states == dict.fromkeys(DELIVERED, "delivered") | dict.fromkeys(TRIED_AGAIN, "pending") | {410: "dead"}
    assert other_shop.got == [], "redirects are not followed"

    shop.answers(500)
    ahead(6)
    due.callbacks()
    assert len({row["due_at"] for row in flask_json("callback", "list")}) > 5, "the pauses vary"
    shop.answers(200)
    ahead(331)
    assert due.callbacks() == len(TRIED_AGAIN)
    ended, *others = flask_json("callback", "list")
    assert (ended["state"], {row["state"] for row in others}) == ("dead", {"delivered"})
    flask("callback", "redeliver", ended["id"])
    due.callbacks()
    assert [attempt["status"] for attempt in tries()] == [410, 200]
    first, second = [got for got in shop.got if got.webhook_id == ended["id"]]
    assert (first.body, first.event["data"]["order_no"]) == (second.body, ended["order_no"])


def test_an_unreachable_server_is_tried_again(api, flask, due, callback):
    flask("merchant", "set", "demo", "--callback-url", f"http://127.0.0.1:{free_port()}/hook")
    completed(api)
    due.callbacks()
    (attempt,) = callback()["tries"]
    assert attempt["status"] is None
    assert attempt["answer"]
    assert callback()["state"] == "pending"


@pytest.mark.parametrize(
    ("text", "headers", "kept"),
    [
        ("x" * 5000, {}, "x" * 1024),
        ("收" * 2000, {}, "收" * 341),
        (["it ", "failed ", "because"], {}, "it failed because"),
        ("not packed at all", {"Content-Encoding": "gzip"}, None),
    ],
    ids=["a long one", "a long one in Chinese", "in pieces", "unreadable"],
)
def test_the_first_kibibyte_of_the_response_is_stored_with_time_and_duration(
    text, headers, kept, api, shop, due, tries
):
    def slowly(request):
        threading.Event().wait(0.05)
        return Response(iter([text] if isinstance(text, str) else text), 200, headers)

    shop.answer = slowly
    completed(api)
    due.callbacks()
    (attempt,) = tries()
    assert abs(attempt["at"] - time.time()) < 60
    assert 50 <= attempt["milliseconds"] < 60_000
    assert attempt["status"] == 200
    assert kept is None or attempt["answer"].rstrip("\ufffd") == kept


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


def test_delivered_callbacks_of_a_merchant_in_a_time_range_are_redelivered_only_if_asked_for(
    api, other, shop, other_shop, flask, due, ahead
):
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
    lost = ("callback", "redeliver", "--merchant", "demo", "--since", since, "--until", until)
    flask(*lost, fails=True)
    flask(*lost, "--state", "delivered")
    due.callbacks()
    assert [got.event["data"]["order_no"] for got in shop.got] == [orders[1][0]]
    assert other_shop.got == []


def test_a_redelivery_of_nothing_is_refused(flask):
    for arguments in ((), ("msg_unknown",), ("--merchant", "nobody"), ("--merchant", "other")):
        flask("callback", "redeliver", *arguments, fails=True)
    flask("callback", "redeliver", "msg_unknown", "--merchant", "demo", fails=True)
