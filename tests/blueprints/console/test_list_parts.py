"""Parts of lists: selected rows with actions, tabs with counts, quick time ranges, and the oldest row first."""

import re

import pytest
from peewee import fn

from blueprints.console.list_page import BulkAction
from blueprints.console.pages import orders
from models.tables.order import STATUSES, Order
from services.console import lists
from services.console.order_list import Orders
from services.sandbox import seeded_orders
from tests.support import completed


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 1_000_000}


@pytest.fixture
def selectable(monkeypatch):
    """The list of orders with one action on selected rows, which opens the list of callbacks."""
    action = BulkAction("callbacks.index", "Check", "primary")
    monkeypatch.setitem(orders.ORDERS.__dict__, "bulk", (action,))


@pytest.fixture
def hundred(api):
    """The ids of a hundred and one orders, oldest first."""
    return [api.buy(merchant_order_no=f"O-{at}").data["order_no"] for at in range(101)]


def test_selected_rows_are_sent_to_the_page_of_the_action(page, api, selectable):
    order_no = api.buy("12.34").data["order_no"]
    shown = page("orders/")
    box = re.search(r'<input type="checkbox" name="order_no"[^>]*>', shown.html)[0]
    assert f'value="{order_no}" form="bulk" data-amount="1234"' in box
    assert "checked" not in box
    assert '<form class="bulk" id="bulk" method="get"' in shown.html
    assert 'formaction="/console/callbacks/"' in shown.html


def test_a_link_selects_all_rows_of_a_page_without_script(page, api, selectable):
    for _ in range(3):
        api.buy()
    shown = page(page("orders/?flt_type=buy").links["Select all on this page"].removeprefix("/console/"))
    assert len(re.findall(r'name="order_no"[^>]* checked>', shown.html)) == len(shown.rows) == 3


def test_a_viewer_cannot_select_rows(page, viewer, api, selectable):
    api.buy()
    assert 'name="order_no"' not in page("orders/", client=viewer).html


def test_a_row_names_its_page(page, api):
    order_no = completed(api)
    assert f'<tr data-href="/console/order/{order_no}">' in page("orders/").html
    assert '<tr data-href="/console/merchant/demo">' in page("merchants/").html


def test_a_list_can_start_with_the_oldest_row(hundred):
    def at(**place):
        found = lists.find(Orders(), **place, oldest_first=True)
        return [row.order_no for row in found.rows], found

    first, found = at()
    assert first == hundred[:50]
    second, found = at(after=found.newer)
    assert second == hundred[50:100]
    last, found = at(after=found.newer)
    assert last == hundred[100:]
    assert found.newer is None
    again, found = at(before=found.older)
    assert again == hundred[50:100]
    again, found = at(before=found.older)
    assert again == hundred[:50]
    assert found.older is None


RANGES = ("Any time", "Today", "Yesterday", "Last 7 days", "This month", "Last month")


@pytest.fixture
def through_months(app, clock, api):
    """One order each, so many days before noon of 1 May 2026, which is now."""
    for days in (40, 31, 15, 6, 1, 0):
        clock(-days * 86_400)
        api.buy(merchant_order_no=f"DAYS-{days}")


def found(page, query="", **reader):
    return [number.split()[-1] for number in page(f"orders/{query}", **reader).column("Order number")]


def test_quick_ranges_are_whole_days_of_the_reader(through_months, page, console):
    shown = page("orders/")
    links = {label: shown.links[label].removeprefix("/console/orders/") for label in RANGES}
    assert found(page, links["Today"]) == ["DAYS-0"]
    assert found(page, links["Yesterday"]) == ["DAYS-1"]
    assert found(page, links["Last 7 days"]) == ["DAYS-0", "DAYS-1", "DAYS-6"]
    assert found(page, links["This month"]) == ["DAYS-0"]
    assert found(page, links["Last month"]) == ["DAYS-1", "DAYS-6", "DAYS-15"]
    assert len(found(page, links["Any time"])) == 6
    console.set_cookie("console_zone", "Pacific/Kiritimati", path="/console")  # 14 hours ahead: already 2 May
    assert found(page, links["This month"]) == ["DAYS-0", "DAYS-1"]


def test_a_quick_range_keeps_the_other_filters_and_is_marked(through_months, page):
    today = page("orders/?flt_status=pending&flt_type=buy").links["Today"]
    assert today.startswith("/console/orders/?flt_status=pending&flt_type=buy&flt_since=")
    shown = page(today.removeprefix("/console/"))
    assert re.findall(r'aria-current="true">([^<]+)<', shown.html) == ["Today"]
    assert "Remove filter: From" not in shown.html
    assert shown.fields["flt_since"] == "2026-05-01T00:00"


def test_a_saved_view_with_a_quick_range_moves_with_the_date(through_months, page, send, clock, sign_in):
    assert send("orders/views?flt_since=yesterday&flt_until=yesterday", name="The day before").status_code == 303
    view = page("orders/").links["The day before"].removeprefix("/console/orders/")
    assert found(page, view) == ["DAYS-1"]
    clock(86_400)
    assert found(page, view, client=sign_in("demo")) == ["DAYS-0"]


def test_an_export_takes_a_quick_range(through_months, export):
    rows = export("orders/export?flt_since=yesterday&flt_until=yesterday").text.splitlines()
    assert len(rows) == 2
    assert "DAYS-1" in rows[1]


def tabs(shown):
    """The texts of a page's tabs with their counts."""
    links = re.search(r'<nav class="tabs".*?</nav>', shown.html, re.DOTALL)[0]
    found = re.findall(r'<a href="[^"]*"( aria-current="page")?>([^<]+?)(?: <b class="much">([\d,]+)</b>)?</a>', links)
    return {label: count for _, label, count in found}, [label for current, label, _ in found if current]


@pytest.fixture
def many(app):
    """Hundreds of orders of both merchants, over months."""
    seeded_orders.seed_orders(400)


def counted(condition):
    every = Order.select(Order.status, fn.COUNT(Order.id)).where(condition).group_by(Order.status).tuples()
    return dict(every)


@pytest.mark.parametrize(
    ("query", "condition"),
    [
        ("", Order.id > 0),
        ("flt_type=sell", Order.order_type == 2),
        ("flt_merchant=other&flt_status=paid", Order.merchant == 2),
        ("flt_since=2026-03-05", Order.createtime >= 1772668800),
        (
            "flt_since=2026-03-05&flt_until=2026-06-01T08:30&flt_type=buy",
            Order.createtime.between(1772668800, 1780302659) & (Order.order_type == 1),
        ),
    ],
)
def test_tabs_count_the_orders_of_each_status(page, many, query, condition):
    counts, _ = tabs(page(f"orders/?{query}"))
    expected = counted(condition)
    statuses = [expected.get(status, 0) for status in STATUSES]
    assert [int(count.replace(",", "")) for count in counts.values()] == [sum(statuses), *statuses]


def test_tabs_keep_the_other_filters_and_count_nothing_if_that_is_slow(page, many):
    shown = page("orders/?flt_least=5&flt_status=completed")
    counts, current = tabs(shown)
    assert set(counts.values()) == {""}
    assert current == ["Completed"]
    assert "/console/orders/?flt_status=cancelled&flt_least=5" in shown.addresses
    assert "/console/orders/?flt_least=5" in shown.addresses


def test_in_a_time_range_orders_of_many_merchants_are_not_counted_by_status(page, many, monkeypatch):
    monkeypatch.setattr("services.console.order_list.MOST_SPANS", 1)
    assert set(tabs(page("orders/?flt_since=2026-03-05"))[0].values()) == {""}
    assert tabs(page("orders/?flt_since=2026-03-05&flt_merchant=demo"))[0]["All"]


def test_the_filter_form_keeps_the_tab(page, many):
    shown = page("exceptions/?flt_state=settled")
    assert tabs(shown)[1] == ["Resolved"]
    assert shown.fields["flt_state"] == "settled"
    assert tabs(page("exceptions/"))[1] == ["Open"]
    assert tabs(page("exceptions/?flt_state=all"))[1] == ["All"]
    assert tabs(page("callbacks/?flt_state=dead"))[1] == ["Failed (retries exhausted)"]


def test_an_export_records_the_tab_among_its_filters(page, export, many):
    assert export("orders/export?flt_status=paid").status_code == 200
    assert "status: " in page("audit/").rows[0]["Details"]


def test_an_oldest_first_list_pages_towards_the_newest(page, hundred):
    first = page("orders/?flt_sort=-created")
    assert [row["Order number"].split()[0] for row in first.rows] == hundred[:50]
    second = page(first.links["Newer"].removeprefix("/console/"))
    assert [row["Order number"].split()[0] for row in second.rows] == hundred[50:100]
    assert second.links["Oldest"] == "/console/orders/?flt_sort=-created"
    assert page(second.links["Older"].removeprefix("/console/")).rows == first.rows
