"""The same payment asked for, or chosen, by many requests at the same time: one order."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.epay_shop import FORM, Shop, number_in
from tests.pages import CHOOSE

MANY = 24


@pytest.fixture
def shop(service, web_server):
    """A shop at the service in a process of its own."""
    types = ["--type", "alipay=2", "--type", "wxpay=1", "--type", "wxpay=2"]
    made = service.flask("epay", "enable", "demo", "--host", "localhost", "--host", "127.0.0.1", *types, "--json")
    return Shop(service.api.send, web_server, json.loads(made.stdout))


def at_once(call):
    """The results of many calls at the same time."""
    with ThreadPoolExecutor(MANY) as pool:
        return list(pool.map(lambda _: call(), range(MANY)))


@pytest.mark.parametrize("kind", ["alipay", None])
def test_one_payment_is_created(kind, shop, service):
    answers = at_once(lambda: shop.mapi(type=kind))
    assert {answer["code"] for answer in answers} == {1}
    assert len({answer["trade_no"] for answer in answers}) == 1
    assert service.api.listed(merchant_order_no="SHOP-1").data["total"] == (1 if kind else 0)
    assert len(shop.api("orders")["data"]) == 1


def test_one_choice_counts(shop, service):
    number = shop.mapi(type="wxpay")["trade_no"]
    choices = iter(["1-wxpay", "2-wxpay"] * MANY)
    pages = at_once(
        lambda: service.api.send("POST", CHOOSE, f"order_no={number}&choice={next(choices)}".encode(), FORM)
    )
    assert {number_in(page.headers["Location"]) for page in pages} == {number}
    assert service.api.listed(merchant_order_no="SHOP-1").data["total"] == 1
