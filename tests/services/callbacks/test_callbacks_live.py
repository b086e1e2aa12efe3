"""The running service sends each callback at least once, whatever kills it."""

import json
import threading

import pytest
from werkzeug import Response

from tests.support import until


@pytest.fixture
def merchant_server(service, receiver):
    """The running service with the merchant's callback address."""
    service.flask("merchant", "set", "demo", "--callback-url", receiver.url)
    return receiver


def paid(service):
    order_no = service.api.buy("100.00").data["order_no"]
    assert service.api.notice(order_no, 10_000).status == 200
    assert service.api.status(order_no) == "completed"
    return order_no


def test_a_payment_causes_a_callback_automatically(service, merchant_server):
    order_no = paid(service)
    until(lambda: merchant_server.got)
    (got,) = merchant_server.got
    assert got.event["type"] == "order.completed"
    assert got.event["data"] == service.api.detail(order_no=order_no).data


def test_kill_9_right_after_the_status_changed_loses_no_callback(service, merchant_server, request):
    order_no = paid(service)
    service.kill()
    # If it was about to be sent, its claim must expire first.
    ahead, due = request.getfixturevalue("ahead"), request.getfixturevalue("due")
    ahead(60)
    due.callbacks()
    assert {got.event["data"]["order_no"] for got in merchant_server.got} == {order_no}
    assert len({got.webhook_id for got in merchant_server.got}) == 1
    assert request.getfixturevalue("api").status(order_no) == "completed"


def test_kill_9_during_a_slow_response_repeats_the_callback(service, merchant_server, request):
    leave = threading.Event()

    def slowly(_request):
        leave.wait(30)
        return Response("too late, for nobody listens")

    merchant_server.answer = slowly
    order_no = paid(service)
    until(lambda: merchant_server.got)
    service.kill()
    leave.set()
    merchant_server.answers(200)

    # The killed attempt's claim must expire first, so the clock of the remaining work is set an hour ahead.
    ahead, due = request.getfixturevalue("ahead"), request.getfixturevalue("due")
    ahead(60)
    due.callbacks()
    assert [got.event["data"]["order_no"] for got in merchant_server.got] == [order_no, order_no]
    assert merchant_server.got[0].webhook_id == merchant_server.got[1].webhook_id
    assert merchant_server.got[0].body == merchant_server.got[1].body
    assert due.callbacks() == 0


def test_a_response_in_progress_is_awaited_on_sigterm(service, merchant_server):
    asked, leave = threading.Event(), threading.Event()

    def slowly(_request):
        asked.set()
        leave.wait(30)
        return Response("thank you")

    merchant_server.answer = slowly
    paid(service)
    assert asked.wait(20)
    service.process.terminate()
    leave.set()
    assert service.process.wait(40) == 0
    (row,) = json.loads(service.flask("callback", "list", "--json").stdout)
    assert (row["state"], row["attempts"]) == ("delivered", 1)
