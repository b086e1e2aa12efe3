"""Paging by `before`: a list that new orders cannot shift."""

import pytest

from models.queries import search
from models.tables.order import STATUSES

PLACED = 12
FILTERS = [
    {},
    {"order_type": 1},
    {"status": "pending"},
    {"merchant_order_no": "a-"},
    {"merchant_order_no": "part-a"},
    {"merchant_order_no": "part-a", "order_type": 2},
]


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 1_000_000, "short_searches": 1_000_000}


@pytest.fixture
def placed(api):
    """The numbers of some orders, the newest first; half of them are in the search index."""
    numbers = []
    for count in range(PLACED):
        place = api.sell if count % 3 == 0 else api.buy
        numbers.append(place("1.00", merchant_order_no=f"part-a-{count}").data["order_no"])
        if count == PLACED // 2:
            search.index_more(100)
    return numbers[::-1]


def pages(api, limit, **filters):
    """All pages, by the last order of each."""
    page = api.listed(limit=limit, **filters).data["list"]
    while page:
        yield page
        page = api.listed(limit=limit, before=page[-1]["order_no"], **filters).data["list"]


def test_the_pages_together_are_all_orders_once_and_each_has_the_total(api, placed):
    for filters in FILTERS:
        whole = api.listed(limit=100, **filters).data
        assert len(whole["list"]) >= PLACED // 3
        for limit in (1, 5):
            together = [order for page in pages(api, limit, **filters) for order in page]
            assert together == whole["list"], (filters, limit)
        totals = {api.listed(before=order_no, **filters).data["total"] for order_no in placed}
        assert totals == {whole["total"]}, filters


def test_new_orders_do_not_shift_the_pages(api, placed):
    first = api.listed(limit=5).data["list"]
    api.buy()
    second = api.listed(limit=5, before=first[-1]["order_no"]).data
    assert [order["order_no"] for order in first + second["list"]] == placed[:10]
    assert (second["total"], second["page"], second["limit"]) == (PLACED + 1, 1, 5)


def test_orders_of_one_second_keep_their_places(api, time_machine):
    time_machine.move_to(1_800_000_000, tick=False)
    numbers = [api.buy().data["order_no"] for _ in range(5)][::-1]
    assert [order["order_no"] for order in api.listed(before=numbers[1]).data["list"]] == numbers[2:]


def test_it_is_combined_with_filters_that_may_exclude_its_order(api, placed):
    cancelled = api.listed(status="cancelled", before=placed[5]).data
    assert (cancelled["list"], cancelled["total"]) == ([], 0)
    at = api.detail(order_no=placed[3]).data["createtime"]
    found = api.listed(before=placed[3], end_time=at, start_time=at - 100).data
    assert [order["order_no"] for order in found["list"]] == placed[4:]
    assert found["total"] == len(api.listed(end_time=at).data["list"])
    assert api.listed(before=placed[3], end_time=at - 1_000).data == {"list": [], "total": 0, "page": 1, "limit": 20}


def test_an_unknown_or_foreign_order_is_40401(api, other):
    theirs = other.buy().data["order_no"]
    for order_no in ("1" * 24, "x", "0", theirs):
        for filters in ({}, {"end_time": 1}, {"status": STATUSES[0]}):
            answer = api.listed(before=order_no, **filters)
            assert (answer.status, answer.code, answer.data) == (404, 40401, None)


def test_a_page_above_one_is_refused_with_it(api, placed):
    assert [api.listed(before=placed[0], page=page).code for page in (None, 1)] == [1, 1]
    for page in (2, 1_000):
        answer = api.listed(before=placed[0], page=page)
        assert (answer.code, answer.data) == (42200, {"page": ["Must be 1 if before is sent."]})


def test_a_value_that_is_not_an_order_number_is_42200(api):
    for value in (1, True, ["1"], {}, "1" * 65):
        answer = api.listed(before=value)
        assert (answer.code, list(answer.data)) == (42200, ["before"]), value
