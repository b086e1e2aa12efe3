"""The same payment asked for, chosen or closed by several requests at the same time."""

import json
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from threading import Barrier

import pytest

from tests.epay_shop import FORM, Shop, number_in
from tests.pages import CHOOSE
from tests.support import through_flask

MANY, ROUNDS = 24, 12


@pytest.fixture
def busy_shop(service, web_server):
    """A shop at the service in a process of its own."""
    types = ["--type", "alipay=2", "--type", "wxpay=1", "--type", "wxpay=2"]
    made = service.flask("epay", "enable", "demo", "--host", "localhost", "--host", "127.0.0.1", *types, "--json")
    return Shop(service.api.send, web_server, json.loads(made.stdout))


def at_once(call):
    """The results of many calls at the same time."""
    with ThreadPoolExecutor(MANY) as pool:
        return list(pool.map(lambda _: call(), range(MANY)))


@pytest.mark.parametrize("kind", ["alipay", None])
def test_one_payment_is_created(kind, busy_shop, service):
    answers = at_once(lambda: busy_shop.mapi(type=kind))
    assert {answer["code"] for answer in answers} == {1}
    assert len({answer["trade_no"] for answer in answers}) == 1
    assert service.api.listed(merchant_order_no="SHOP-1").data["total"] == (1 if kind else 0)
    assert len(busy_shop.api("orders")["data"]) == 1


def test_one_choice_counts(busy_shop, service):
    number = busy_shop.mapi(type="wxpay")["trade_no"]
    choices = iter(["1-wxpay", "2-wxpay"] * MANY)
    pages = at_once(
        lambda: service.api.send("POST", CHOOSE, f"order_no={number}&choice={next(choices)}".encode(), FORM)
    )
    assert {number_in(page.headers["Location"]) for page in pages} == {number}
    assert service.api.listed(merchant_order_no="SHOP-1").data["total"] == 1


def test_an_expired_payment_is_either_closed_or_ordered_again(rsa_shop, app, api, later):
    """Its shop closes it while its payer starts it again."""
    numbers = [f"S-{each}" for each in range(ROUNDS)]
    for number in numbers:
        assert rsa_shop.v2("pay/create", **rsa_shop.fields(out_trade_no=number))["code"] == 0
    later(901)
    start = Barrier(2)

    def connected():
        own = copy(rsa_shop)
        own.send = through_flask(app.test_client())
        start.wait()
        return own

    with ThreadPoolExecutor(2) as pool:
        for number in numbers:
            closing = pool.submit(lambda number=number: connected().v2("pay/close", out_trade_no=number)["code"])
            submitting = pool.submit(lambda number=number: connected().submit(out_trade_no=number).status)
            assert submitting.result() in (303, 400)
            closed = closing.result() == 0
            orders = api.listed(merchant_order_no=number).data["list"]
            statuses = {order["status"] for order in orders if order["merchant_order_no"] == number}
            assert statuses == ({"cancelled"} if closed else {"cancelled", "pending"})
