"""Querying orders by page and filter over HTTP."""

import pytest

from models.tables.order import STATUSES
from tests.blueprints.api.test_order_detail import QUERIED
from tests.support import types_of

SEEDED = 150


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 1_000_000}


@pytest.fixture
def seeded_orders(demo, flask, api):
    """All of the merchant's orders, of the demo content with orders, as the list shows them."""
    flask("seed", "--orders", SEEDED)
    api.buy()  # a pending one
    pages = [api.listed(limit=100, page=page).data["list"] for page in (1, 2)]
    return [order for page in pages for order in page]


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


def test_the_first_page_has_twenty_orders_by_default(api, seeded_orders):
    data = api.listed().data
    assert data["list"] == seeded_orders[:20]
    assert (data["page"], data["limit"], data["total"]) == (1, 20, len(seeded_orders))


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_the_pages_together_are_all_orders_once(api, seeded_orders, limit):
    pages = -(-len(seeded_orders) // limit)
    together = [order for page in range(1, pages + 1) for order in api.listed(page=page, limit=limit).data["list"]]
    assert together == seeded_orders
    assert len({order["order_no"] for order in together}) == len(together)


def test_a_page_past_the_end_is_empty_and_has_the_total(api, seeded_orders):
    data = api.listed(page=1_000_000, limit=100).data
    assert data == {"list": [], "total": len(seeded_orders), "page": 1_000_000, "limit": 100}


def test_the_newest_order_is_first(seeded_orders):
    times = [order["createtime"] for order in seeded_orders]
    assert times == sorted(times, reverse=True)


def test_within_a_second_the_last_created_is_first(api, time_machine):
    time_machine.move_to(1_800_000_000, tick=False)
    placed = [api.buy().data["order_no"] for _ in range(5)]
    assert [order["order_no"] for order in api.listed().data["list"]] == placed[::-1]


@pytest.mark.parametrize(
    "filters",
    [
        *({"status": status} for status in STATUSES),
        {"order_type": 1},
        {"order_type": 2},
        {"order_type": "2"},
        {"status": "completed", "order_type": 1},
        {"status": "cancelled", "order_type": 2},
    ],
)
def test_a_filter_returns_only_full_matches(api, seeded_orders, filters):
    wanted = [
        order for order in seeded_orders if all(str(order[name]) == str(value) for name, value in filters.items())
    ]
    data = api.listed(limit=100, **filters).data
    assert wanted
    assert data["total"] == len(wanted)
    assert data["list"] == wanted[:100]


def test_start_and_end_are_both_inclusive(api, seeded_orders):
    newest, oldest = seeded_orders[10]["createtime"], seeded_orders[30]["createtime"]
    for start, end in (
        (oldest, newest),
        (oldest + 1, newest),
        (oldest, newest - 1),
        (newest, newest),
        (newest, oldest),
    ):
        wanted = [order for order in seeded_orders if start <= order["createtime"] <= end]
        assert api.listed(start_time=start, end_time=end, limit=100).data["list"] == wanted


def test_each_end_of_the_time_range_works_alone(api, seeded_orders):
    edge = seeded_orders[10]["createtime"]
    newer, older = api.listed(start_time=edge, limit=100).data, api.listed(end_time=edge).data
    assert newer["list"] == [order for order in seeded_orders if order["createtime"] >= edge]
    assert older["total"] == sum(order["createtime"] <= edge for order in seeded_orders)


def test_the_times_filter_the_creation_not_the_update(api, ahead):
    placed = api.buy().data
    ahead(100)
    api.play(placed["order_no"], "success")
    assert api.detail(order_no=placed["order_no"]).data["updatetime"] >= placed["createtime"] + 100
    assert api.listed(start_time=placed["createtime"] + 50).data["total"] == 0
    assert api.listed(end_time=placed["createtime"] + 50).data["total"] == 1


OWN_NUMBERS = ["AB%c", "abXc", "A_B", "a\\b", "订单-1", "Äpfel", "100", ""]


@pytest.mark.parametrize(
    ("sought", "found"),
    [
        ("ab", ["AB%c", "abXc"]),
        ("AB", ["AB%c", "abXc"]),
        ("%", ["AB%c"]),
        ("_", ["A_B"]),
        ("a_b", ["A_B"]),
        ("\\", ["a\\b"]),
        ("b%C", ["AB%c"]),
        ("订单", ["订单-1"]),
        ("Ä", ["Äpfel"]),
        ("ä", []),
        ("PFEL", ["Äpfel"]),
        ("0", ["100"]),
        ("*", []),
        ("nothing", []),
        (None, OWN_NUMBERS),
    ],
)
def test_a_merchant_number_is_searched_literally_without_ascii_case(api, sought, found):
    for number in OWN_NUMBERS:
        api.buy(merchant_order_no=number)
    answer = api.listed(merchant_order_no=sought)
    assert sorted(numbers(answer)) == sorted(found)
    assert answer.data["total"] == len(found)


def test_a_merchant_sees_its_own_orders_only(api, other):
    api.buy(merchant_order_no="ours")
    other.buy(merchant_order_no="theirs")
    assert numbers(api.listed()) == ["ours"]
    assert numbers(other.listed()) == ["theirs"]
    assert api.listed(merchant_order_no="theirs").data["total"] == 0


@pytest.mark.parametrize(
    "name", ["page", "limit", "status", "order_type", "merchant_order_no", "start_time", "end_time"]
)
def test_a_null_filter_counts_as_absent(api, name):
    api.buy()
    assert api.listed(**{name: None}).data["total"] == 1


WRONG_NUMBERS = [-1, 1.5, "1.0", "x", " 1", True, [1], {}, 2**63, 10**40]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((name, value) for name in ("page", "limit", "order_type") for value in (0, *WRONG_NUMBERS)),
        *((name, value) for name in ("start_time", "end_time") for value in WRONG_NUMBERS),
        ("limit", 101),
        ("order_type", 3),
        *(("status", value) for value in ("done", "PENDING", "pending,paid", 1, ["pending"], {})),
        *(("merchant_order_no", value) for value in (1, True, ["A"], {})),
        ("order_no", "1"),
    ],
)
def test_an_invalid_field_is_named(api, field, value):
    answer = api.listed(**{field: value})
    assert (answer.status, answer.code) == (422, 42200)
    assert list(answer.data) == [field]


def test_all_errors_are_reported_together(api):
    wrong = {
        "page": 0,
        "limit": 101,
        "status": "x",
        "order_type": 3,
        "start_time": -1,
        "end_time": "x",
        "colour": "red",
    }
    assert set(api.listed(**wrong, merchant_order_no=1).data) == {*wrong, "merchant_order_no"}
