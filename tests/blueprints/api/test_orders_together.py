"""Orders in the same commit over HTTP: each has the same result as alone."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests import postgres
from tests.databases import impatient, orders_held_up
from tests.support import Api, signed, through_flask
from tests.turns import together

KEY = {"Idempotency-Key": "key-1"}


@pytest.fixture
def client(app):
    """`client()`: the merchant `demo` (or another) on a connection of its own."""
    return lambda key="demo": Api(through_flask(app.test_client()), key)


def order(order_type, amount="1.00"):
    """A signed request for an order, to be sent repeatedly."""
    fields = {"order_type": order_type, "cny_amount": amount, "paychannel_id": 2}
    return json.dumps(signed("createOrder", fields | {"paychannel_paymethod": "bank"})).encode()


def test_orders_placed_at_once_are_numbered_in_turn_for_each_merchant(api, other, client, rows):
    answers = together(*((client(key).buy, "1.00") for key in ("demo", "other", "demo", "demo", "other")))
    assert [answer.code for answer in answers] == [1] * 5
    numbers = [answer.data["order_no"] for answer in answers]
    for listed, own in ((api.listed().data, (3, 2, 0)), (other.listed().data, (4, 1))):
        assert [each["order_no"] for each in listed["list"]] == [numbers[at] for at in own]
        assert listed["total"] == len(own)
    tables = rows()
    assert len(tables["History"]) == 5
    assert len(tables["Nonce"]) == 5 + 2 * postgres.IN_USE  # there, including those of queries


def test_withdrawals_beyond_the_balance_fail_alone(api, client, balances):
    answers = together(*((client().sell, amount) for amount in ("6000.00", "6000.00", "1000.00")), (client().buy,))
    assert [answer.code for answer in answers] == [1, 40901, 1, 1]
    assert api.listed().data["total"] == 3
    assert sum(balances()) == 1_000_000


@pytest.mark.parametrize("amount", ["1.00", "99000.00"])
def test_a_request_sent_twice_simultaneously_counts_once(api, client, amount):
    body = order(2, amount)
    answers = together((client().post, "createOrder", body), (client().sell, "1.00"))
    assert api.post("createOrder", body).code == 40104
    assert [answer.code for answer in answers] == [1 if amount == "1.00" else 40901, 1]


@pytest.mark.parametrize("order_type", [1, 2])
def test_of_two_requests_with_one_key_the_second_is_refused_and_its_nonce_is_used(api, client, order_type):
    first, second = order(order_type), order(order_type)
    answers = together(*((client().post, "createOrder", body, KEY) for body in (first, second)))
    assert [answer.code for answer in answers] == [1, 40902]
    assert api.listed().data["total"] == 1
    assert [api.post("createOrder", body, KEY).code for body in (first, second)] == [40104, 40104]


@pytest.mark.parametrize("make", [Api.buy, Api.sell])
def test_while_the_database_is_locked_each_is_50300_and_none_is_stored(instance, api, client, make):
    with impatient(), orders_held_up(instance), ThreadPoolExecutor() as pool:
        answers = list(pool.map(make, [client() for _ in range(3)]))
    assert {(answer.status, answer.code) for answer in answers} == {(503, 50300)}
    assert all(int(answer.headers["Retry-After"]) >= 1 for answer in answers)
    assert api.listed().data["total"] == 0
    assert make(api).code == 1
