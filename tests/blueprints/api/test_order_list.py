"""Querying orders by page and filter over HTTP."""

from tests.blueprints.api.test_order_detail import QUERIED
from tests.support import types_of


def numbers(answer):
    return [order["merchant_order_no"] for order in answer.data["list"]]


def test_an_order_is_shown_as_by_the_detail_query(api):
    assert api.listed().data == {"list": [], "total": 0, "page": 1, "limit": 20}
    order_no, sold = api.buy("12.30", merchant_order_no="A-1").data["order_no"], api.sell().data["order_no"]
    answer = api.listed()
    assert list(answer.json) == ["code", "msg", "data"]
    shown = [api.detail(order_no=number).data for number in (sold, order_no)]
    assert answer.data == {"list": shown, "total": 2, "page": 1, "limit": 20}
    assert [types_of(order) for order in shown] == [QUERIED, QUERIED]


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


# Values of a wrong type and other numbers: `test_hostile_bodies.py`, `test_numbers.py`.
INVALID = {
    "page": (0, -1),
    "limit": (0, 101),
    "order_type": (0, 3),
    "start_time": (-1, 2**63),
    "end_time": ("x",),
    "status": ("done", "PENDING", "pending,paid"),
    "merchant_order_no": (1,),
}


def test_an_invalid_filter_is_named_and_a_null_counts_as_absent(api):
    api.buy()
    for field, values in INVALID.items():
        assert api.listed(**{field: None}).data["total"] == 1
        for value in values:
            answer = api.listed(**{field: value})
            assert (answer.status, answer.code, list(answer.data)) == (422, 42200, [field]), value
    wrong = {field: values[0] for field, values in INVALID.items()} | {"order_no": "1", "colour": "red"}
    assert api.listed(**wrong).data.keys() == wrong.keys()
