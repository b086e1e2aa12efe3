"""Events that can happen several times for an order: one callback for each exception, to subscribers only."""

import pytest

from models.db.writer import transaction
from models.tables.order import Order
from services.callbacks import outbox
from tests.support import completed


@pytest.fixture
def enqueue(api):
    """`enqueue(event, about)`: write that event of a completed deposit into the outbox."""
    order = Order.get(Order.order_no == completed(api))
    return transaction(lambda event="", about=None: outbox.enqueue(order, event, about))


@pytest.fixture
def types(flask_json):
    """`types()`: the types of all callbacks."""
    return lambda: sorted(row["type"] for row in flask_json("callback", "list"))


def test_each_exception_has_a_callback_of_its_own_for_subscribers(enqueue, flask, types, shop, due):
    enqueue("order.credited", 1)
    assert types() == ["order.completed"]
    flask("merchant", "set", "demo", "--events", "credited")
    enqueue("order.credited", 1)
    enqueue("order.credited", 2)
    enqueue("order.refunded", 3)
    assert types() == ["order.completed", "order.credited", "order.credited"]
    due.callbacks()
    assert {got.event["data"]["status"] for got in shop.got} == {"completed"}


def test_an_event_that_is_in_the_outbox_is_not_written_again(enqueue, flask, types):
    flask("merchant", "set", "demo", "--events", "credited")
    enqueue()
    enqueue("order.credited", 1)
    enqueue("order.credited", 1)
    assert types() == ["order.completed", "order.credited"]
