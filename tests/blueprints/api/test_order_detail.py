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


@pytest.mark.parametrize("place", ["buy", "sell"])
def test_the_response_has_exactly_the_fields_of_the_contract(api, place):
    order_no = getattr(api, place)().data["order_no"]
    answer = api.detail(order_no=order_no)
    assert (answer.status, answer.json["msg"]) == (200, "success")
    assert list(answer.json) == ["code", "msg", "data"]
    assert types_of(answer.data) == QUERIED


def test_a_deposit_is_shown_as_it_was_created(api):
    placed = api.buy("12.3", merchant_order_no="A-1").data
    shown = api.detail(order_no=placed["order_no"]).data
    assert shown == {
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
    assert (shown["order_type"], shown["status"], shown["merchant_order_no"]) == (2, "pending", "")
    assert (shown["service_rate"], shown["service_amount"], shown["merchant_actual_amount"]) == ("0.30", 4, 1_233)


def test_the_update_time_is_that_of_the_last_step(api, ahead):
    placed = api.buy().data
    ahead(60)
    api.play(placed["order_no"], "success")
    shown = api.detail(order_no=placed["order_no"]).data
    assert shown["status"] == "completed"
    assert shown["updatetime"] >= shown["createtime"] + 60


def test_an_order_is_found_by_each_of_the_three(api, orders):
    assert api.detail(id=id_of(orders[1])).data["order_no"] == orders[1]
    assert api.detail(id=str(id_of(orders[1]))).data["order_no"] == orders[1]
    assert api.detail(order_no=orders[1]).data["order_no"] == orders[1]
    assert api.detail(merchant_order_no="B").data["order_no"] == orders[1]


def test_the_oldest_of_several_with_one_merchant_number_is_returned(api, orders):
    assert api.detail(merchant_order_no="A").data["order_no"] == orders[0]


@pytest.mark.parametrize("number", ["a", "A ", "%", "_", "A%"])
def test_a_merchant_number_must_match_exactly(api, orders, number):
    assert api.detail(merchant_order_no=number).code == 40401


def test_the_id_has_priority_over_the_order_number_and_that_over_the_merchants(api, orders):
    _, second, third = orders
    assert api.detail(id=id_of(third), order_no=second, merchant_order_no="A").data["order_no"] == third
    assert api.detail(order_no=second, merchant_order_no="A").data["order_no"] == second
    assert api.detail(id=id_of(third), merchant_order_no="B").data["order_no"] == third


def test_only_the_first_of_the_three_is_used_although_another_would_match(api, orders):
    assert api.detail(id=9_999, order_no=orders[0], merchant_order_no="A").code == 40401
    assert api.detail(order_no="1" * 24, merchant_order_no="A").code == 40401


def test_a_null_counts_as_absent(api, orders):
    assert api.detail(id=None, order_no=orders[1], merchant_order_no=None).data["order_no"] == orders[1]


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


@pytest.mark.parametrize("by", [{}, {"id": None}, {"id": None, "order_no": None, "merchant_order_no": None}])
def test_one_of_the_three_must_be_sent(api, by):
    answer = api.detail(**by)
    assert (answer.status, answer.code) == (422, 42200)
    assert set(answer.data) == {"id", "order_no", "merchant_order_no"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("id", value) for value in (0, -1, 1.5, "1.0", "x", True, [], {}, 2**63, 10**40)),
        *(("order_no", value) for value in (1, True, ["1"], {})),
        *(("merchant_order_no", value) for value in (1, True, ["A"], {}, "x" * 256)),
        ("status", "pending"),
    ],
)
def test_an_invalid_field_is_named(api, field, value):
    answer = api.detail(**{"order_no": "1"} | {field: value})
    assert (answer.status, answer.code) == (422, 42200)
    assert list(answer.data) == [field]


def test_all_errors_are_reported_together(api):
    assert set(api.detail(id=True, order_no=1, merchant_order_no=[], page=1).data) == {
        "id",
        "order_no",
        "merchant_order_no",
        "page",
    }
