"""Querying one order over HTTP."""

from itertools import pairwise

import pytest

from models.tables.order import Order
from tests.support import types_of

QUERIED = {
    "order_no": str,
    "merchant_order_no": str,
    "order_type": int,
    "cny_amount": str,
    "merchant_actual_amount": int,
    "service_rate": str,
    "service_amount": int,
    "status": str,
    "createtime": int,
    "updatetime": int,
}


def test_no_number_follows_from_another(api):
    tails = sorted(int(api.buy("1.00").data["order_no"][8:]) for _ in range(8))
    assert min(later - earlier for earlier, later in pairwise(tails)) > 10**6


def id_of(order_no):
    return Order.get(Order.order_no == order_no).id


@pytest.fixture
def orders(api):
    """The numbers of three deposits: A, B, and a second A."""
    return [api.buy("1.00", merchant_order_no=number).data["order_no"] for number in ("A", "B", "A")]


def test_a_deposit_is_shown_as_it_was_created(api):
    placed = api.buy("12.3", merchant_order_no="A-1").data
    answer = api.detail(order_no=placed["order_no"])
    assert (answer.status, answer.json["msg"], list(answer.json)) == (200, "success", ["code", "msg", "data"])
    assert answer.data == {
        "order_no": placed["order_no"],
        "merchant_order_no": "A-1",
        "order_type": 1,
        "cny_amount": "12.30",
        "merchant_actual_amount": 1_223,
        "service_rate": "0.60",
        "service_amount": 7,
        "status": "pending",
        "createtime": placed["createtime"],
        "updatetime": placed["createtime"],
    }


def test_a_withdrawal_is_shown_as_it_was_created(api):
    placed = api.sell("12.30").data
    shown = api.detail(order_no=placed["order_no"]).data
    assert types_of(shown) == QUERIED
    assert (shown["order_type"], shown["status"], shown["merchant_order_no"]) == (2, "pending", "")
    assert (shown["service_rate"], shown["service_amount"], shown["merchant_actual_amount"]) == ("0.30", 4, 1_233)


def test_the_update_time_is_that_of_the_last_step(api, ahead):
    placed = api.buy().data
    ahead(60)
    api.play(placed["order_no"], "success")
    shown = api.detail(order_no=placed["order_no"]).data
    assert shown["status"] == "completed"
    assert shown["updatetime"] >= shown["createtime"] + 60


def test_an_order_is_found_by_the_first_of_the_three_that_is_sent(api, orders):
    first, second, third = orders
    number = id_of(second)
    for by in ({"id": number}, {"id": str(number)}, {"order_no": second}, {"merchant_order_no": "B"}):
        assert api.detail(**by).data["order_no"] == second, by
    assert api.detail(id=None, order_no=second, merchant_order_no=None).data["order_no"] == second
    assert api.detail(id=id_of(third), order_no=second, merchant_order_no="A").data["order_no"] == third
    assert api.detail(order_no=second, merchant_order_no="A").data["order_no"] == second
    assert api.detail(id=id_of(third), merchant_order_no="B").data["order_no"] == third
    # Although another of the three would match:
    assert api.detail(id=9_999, order_no=first, merchant_order_no="A").code == 40401
    assert api.detail(order_no="1" * 24, merchant_order_no="A").code == 40401


def test_a_merchant_number_must_match_exactly_and_finds_the_oldest_of_several(api, orders):
    assert api.detail(merchant_order_no="A").data["order_no"] == orders[0]
    for number in ("a", "A ", "%", "_", "A%"):
        assert api.detail(merchant_order_no=number).code == 40401, number


def test_an_absent_or_foreign_order_has_the_same_response(api, other):
    foreign = other.buy(merchant_order_no="theirs").data["order_no"]
    absent = api.detail(order_no="1" * 24)
    assert (absent.status, absent.code, absent.data) == (404, 40401, None)
    for by in ({"order_no": foreign}, {"id": id_of(foreign)}, {"merchant_order_no": "theirs"}, {"id": 2**63 - 1}):
        assert api.detail(**by).text == absent.text


def test_each_merchant_finds_its_own_order_under_a_shared_number(api, other):
    theirs = other.buy(merchant_order_no="shared").data["order_no"]
    ours = api.buy(merchant_order_no="shared").data["order_no"]
    assert api.detail(merchant_order_no="shared").data["order_no"] == ours
    assert other.detail(merchant_order_no="shared").data["order_no"] == theirs


def test_one_of_the_three_must_be_sent_and_all_errors_are_reported_together(api):
    for by in ({}, {"id": None}, {"id": None, "order_no": None, "merchant_order_no": None}):
        answer = api.detail(**by)
        assert (answer.status, answer.code) == (422, 42200)
        assert set(answer.data) == {"id", "order_no", "merchant_order_no"}
    wrong = {"id": True, "order_no": 1, "merchant_order_no": "x" * 256, "page": 1}
    assert api.detail(**wrong).data.keys() == wrong.keys()
    for name, value in wrong.items():
        assert list(api.detail(**{"order_no": "1"} | {name: value}).data) == [name]
