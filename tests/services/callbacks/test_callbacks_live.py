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


@pytest.mark.parametrize("when", ["right after the status changed", "during a slow response"])
def test_kill_9_loses_no_callback(when, service, merchant_server, request):
    leave = threading.Event()
    if when == "during a slow response":
        merchant_server.answer = lambda _request: leave.wait(30) and Response("too late, for nobody listens")
    order_no = paid(service)
    if when == "during a slow response":
        until(lambda: merchant_server.got)
    service.kill()
    leave.set()
    merchant_server.answers(200)
    # The claim of a killed attempt must expire first, so the clock of the remaining work is set ahead.
    ahead, due = request.getfixturevalue("ahead"), request.getfixturevalue("due")
    ahead(60)
    due.callbacks()
    assert len(merchant_server.got) >= (2 if when == "during a slow response" else 1)
    assert {got.event["data"]["order_no"] for got in merchant_server.got} == {order_no}
    assert len({(got.webhook_id, got.body) for got in merchant_server.got}) == 1
    assert (request.getfixturevalue("api").status(order_no), due.callbacks()) == ("completed", 0)


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
