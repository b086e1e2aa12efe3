"""Querying orders by page and filter over HTTP."""

import pytest

from tests.blueprints.api.test_order_detail import QUERIED
from tests.support import types_of


def numbers(answer):
    return [order["merchant_order_no"] for order in answer.data["list"]]


def test_the_response_has_exactly_the_fields_of_the_contract(api):
    api.buy()
    api.sell()
    answer = api.listed()
    assert list(answer.json) == ["code", "msg", "data"]
    assert types_of(answer.data) == {"list": list, "total": int, "page": int, "limit": int}
    assert [types_of(order) for order in answer.data["list"]] == [QUERIED, QUERIED]


def test_without_orders_the_page_is_empty(api):
    assert api.listed().data == {"list": [], "total": 0, "page": 1, "limit": 20}


def test_an_order_is_shown_as_by_the_detail_query(api):
    order_no = api.buy("12.30", merchant_order_no="A-1").data["order_no"]
    assert api.listed().data["list"] == [api.detail(order_no=order_no).data]


def test_within_a_second_the_last_created_is_first(api, time_machine):
    time_machine.move_to(1_800_000_000, tick=False)
    placed = [api.buy().data["order_no"] for _ in range(5)]
    assert [order["order_no"] for order in api.listed().data["list"]] == placed[::-1]


def test_the_times_filter_the_creation_not_the_update(api, ahead):
    placed = api.buy().data
    ahead(100)
    api.play(placed["order_no"], "success")
    assert api.detail(order_no=placed["order_no"]).data["updatetime"] >= placed["createtime"] + 100
    assert api.listed(start_time=placed["createtime"] + 50).data["total"] == 0
    assert api.listed(end_time=placed["createtime"] + 50).data["total"] == 1


def test_a_merchant_sees_its_own_orders_only(api, other):
    api.buy(merchant_order_no="ours")
    other.buy(merchant_order_no="theirs")
    assert numbers(api.listed()) == ["ours"]
    assert numbers(other.listed()) == ["theirs"]
    assert api.listed(merchant_order_no="theirs").data["total"] == 0


WRONG_NUMBERS = (-1, 1.5, "1.0", "x", " 1", True, [1], {}, 2**63, 10**40)
INVALID = {
    "page": (0, *WRONG_NUMBERS),
    "limit": (0, 101, *WRONG_NUMBERS),
    "order_type": (0, 3, *WRONG_NUMBERS),
    "start_time": WRONG_NUMBERS,
    "end_time": WRONG_NUMBERS,
    "status": ("done", "PENDING", "pending,paid", 1, ["pending"], {}),
    "merchant_order_no": (1, True, ["A"], {}),
}


@pytest.mark.parametrize("field", INVALID)
def test_an_invalid_filter_is_named_and_a_null_counts_as_absent(api, field):
    api.buy()
    assert api.listed(**{field: None}).data["total"] == 1
    for value in INVALID[field]:
        answer = api.listed(**{field: value})
        assert (answer.status, answer.code, list(answer.data)) == (422, 42200, [field]), value


def test_all_errors_are_reported_together(api):
    wrong = {"page": 0, "limit": 101, "status": "x", "order_type": 3, "start_time": -1, "end_time": "x"}
    wrong |= {"merchant_order_no": 1, "order_no": "1", "colour": "red"}
    assert api.listed(**wrong).data.keys() == wrong.keys()
