"""Parts of lists: selected rows with actions, tabs with counts, quick time ranges, saved views; odd addresses."""

import re

import pytest
from peewee import fn

from blueprints.console.list_page import BulkAction
from blueprints.console.pages import orders
from models.tables.order import STATUSES, Order
from services.console import saved_views
from services.sandbox import seeded_orders
from tests.all_interfaces import LISTS


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 1_000_000}


@pytest.fixture
def selectable(monkeypatch):
    """The list of orders with one action on selected rows, which opens the list of callbacks."""
    action = BulkAction("callbacks.index", "Check", "primary")
    monkeypatch.setitem(orders.ORDERS.__dict__, "bulk", (action,))


def test_rows_name_their_page_and_selected_ones_are_sent_to_that_of_the_action(page, viewer, api, selectable):
    order_no = api.buy("12.34").data["order_no"]
    shown = page("orders/")
    assert f'<tr data-href="/console/order/{order_no}">' in shown.html
    assert '<tr data-href="/console/merchant/demo">' in page("merchants/").html
    box = re.search(r'<input type="checkbox" name="order_no"[^>]*>', shown.html)[0]
    assert f'value="{order_no}" form="bulk" data-amount="1234"' in box
    assert "checked" not in box
    assert '<form class="bulk" id="bulk" method="get"' in shown.html
    assert 'formaction="/console/callbacks/"' in shown.html
    assert 'name="order_no"' not in page("orders/", client=viewer).html


@pytest.fixture
def through_months(app, clock, api):
    """One order each, so many days before noon of 1 May 2026, which is now."""
    for days in (40, 31, 15, 6, 1, 0):
        clock(-days * 86_400)
        api.buy(merchant_order_no=f"DAYS-{days}")


def found(page, query="", **reader):
    return [number.split()[-1] for number in page(f"orders/{query}", **reader).column("Order number")]


def test_quick_ranges_are_whole_days_of_the_reader(through_months, page, console, export):
    links = page("orders/").links

    def within(label):
        return found(page, links[label].removeprefix("/console/orders/"))

    assert {label: within(label) for label in ("Today", "Yesterday", "Last 7 days", "This month", "Last month")} == {
        "Today": ["DAYS-0"],
        "Yesterday": ["DAYS-1"],
        "Last 7 days": ["DAYS-0", "DAYS-1", "DAYS-6"],
        "This month": ["DAYS-0"],
        "Last month": ["DAYS-1", "DAYS-6", "DAYS-15"],
    }
    assert len(within("Any time")) == 6
    _, row = export("orders/export?flt_since=yesterday&flt_until=yesterday").text.splitlines()
    assert "DAYS-1" in row
    console.set_cookie("console_zone", "Pacific/Kiritimati", path="/console")  # 14 hours ahead: already 2 May
    assert within("This month") == ["DAYS-0", "DAYS-1"]


def test_a_quick_range_keeps_the_other_filters_and_is_marked(through_months, page):
    today = page("orders/?flt_type=buy&flt_status=pending").links["Today"]
    assert today.startswith("/console/orders/?flt_type=buy&flt_status=pending&flt_since=")
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


def tabs(shown):
    """The texts of a page's tabs with their counts."""
    links = re.search(r'<nav class="tabs".*?</nav>', shown.html, re.DOTALL)[0]
    found = re.findall(r'<a href="[^"]*"( aria-current="page")?>([^<]+?)(?: <b class="much">([\d,]+)</b>)?</a>', links)
    return {label: count for _, label, count in found}, [label for current, label, _ in found if current]


@pytest.fixture
def many(app):
    """Hundreds of orders of both merchants, over months."""
    seeded_orders.seed_orders(400)


def test_tabs_count_the_orders_of_each_status(page, many):
    for query, condition in (
        ("", Order.id > 0),
        ("flt_type=sell", Order.order_type == 2),
        ("flt_merchant=other&flt_status=paid", Order.merchant == 2),
        ("flt_since=2026-03-05", Order.createtime >= 1772668800),
        (
            "flt_since=2026-03-05&flt_until=2026-06-01T08:30&flt_type=buy",
            Order.createtime.between(1772668800, 1780302659) & (Order.order_type == 1),
        ),
    ):
        counts, _ = tabs(page(f"orders/?{query}"))
        every = Order.select(Order.status, fn.COUNT(Order.id)).where(condition).group_by(Order.status)
        expected = dict(every.tuples())
        statuses = [expected.get(status, 0) for status in STATUSES]
        assert [int(count.replace(",", "")) for count in counts.values()] == [sum(statuses), *statuses], query


def test_tabs_keep_the_other_filters_and_count_nothing_if_that_is_slow(page, many, monkeypatch):
    shown = page("orders/?flt_least=5&flt_status=completed")
    counts, current = tabs(shown)
    assert (set(counts.values()), current) == ({""}, ["Completed"])
    addresses = {"/console/orders/?flt_status=cancelled&flt_least=5", "/console/orders/?flt_least=5"}
    assert addresses <= set(shown.addresses)
    monkeypatch.setattr("services.console.order_list.MOST_SPANS", 1)  # in a time range, of so many merchants
    assert set(tabs(page("orders/?flt_since=2026-03-05"))[0].values()) == {""}
    assert tabs(page("orders/?flt_since=2026-03-05&flt_merchant=demo"))[0]["All"]


def test_the_filter_form_keeps_the_tab(page):
    shown = page("exceptions/?flt_state=settled")
    assert (tabs(shown)[1], shown.fields["flt_state"]) == (["Resolved"], "settled")
    for path, tab in (
        ("exceptions/", "Open"),
        ("exceptions/?flt_state=all", "All"),
        ("callbacks/?flt_state=dead", "Failed"),
    ):
        assert tabs(page(path))[1] == [tab]


# Saved views


@pytest.fixture
def save(send):
    """`save("flt_type=sell", "My view")`: save these filters of the list of orders."""
    return lambda query, title, **more: send(f"orders/views?{query}", name=title, **more)


def views(shown):
    return {name: url for name, url in shown.links.items() if name in ("My view", "Open <b>")}


def test_filters_are_saved_and_opened_by_their_name_replaced_and_deleted(save, send, page):
    answer = save("flt_type=sell&flt_since=2026-01-02&before=7", "My view")
    assert (answer.status_code, answer.location) == (303, "/console/orders/?flt_type=sell&flt_since=2026-01-02")
    assert views(page("orders/")) == {"My view": "/console/orders/?flt_type=sell&flt_since=2026-01-02"}
    assert not views(page("payouts/")), "a view belongs to one list"
    save("flt_type=sell&flt_status=paid", "My view")
    query = "flt_type=sell&flt_status=paid"
    assert views(page("orders/")) == {"My view": f"/console/orders/?{query}"}
    assert "Delete this view" in page(f"orders/?{query}").sends
    assert send(f"orders/views/delete?{query}", name="My view").location == f"/console/orders/?{query}"
    assert not views(page("orders/"))


def test_a_view_has_a_valid_name_and_their_number_is_limited(save, page, monkeypatch):
    monkeypatch.setattr(saved_views, "MOST", 1)
    for title in ("", " ", "x" * 41, "a\u202eb"):
        save("flt_type=sell", title)
        assert "A view's name has 1 to 40 characters." in page("orders/").text
    save("flt_type=buy", "My view")
    save("flt_type=sell", "Open <b>")
    shown = page("orders/")
    assert ("at most 1 saved views" in shown.text, list(views(shown))) == (True, ["My view"])


def test_a_view_is_escaped_and_belongs_to_its_author_who_may_be_a_viewer(save, page, viewer):
    assert save("search=%22%3E%3Cb%3E&other=1", "Open <b>", client=viewer).status_code == 303
    shown = page("orders/", client=viewer)
    assert views(shown) == {"Open <b>": "/console/orders/?search=%22%3E%3Cb%3E"}
    assert "Open <b>" not in shown.html
    assert not views(page("orders/"))


# Addresses and cookies that no page of the console makes

ODD = (
    *("before=abc", "before=-1", f"before={2**70}", f"after={2**70}"),
    *(f"page={2**70}&page_size=-1&sort=99&desc=x", "flt_since=9999-99", "flt_since=0001-01-01", "flt_until=9999-12-31"),
    *(
        "search=%00",
        "search=%FF%FE",
        "jump=1&search=%00",
        f"search={'x' * 10_000}",
        "flt_merchant=%00&flt_channel=%D9%A1",
    ),
    *("endpoint=x", "self=x", "_method=POST"),
)


@pytest.mark.parametrize("name", LISTS)
def test_any_address_of_a_list_gets_a_response(name, console, export):
    answers = {odd: console.get(f"/console/{name}/?{odd}").status_code for odd in ODD}
    answers |= {f"export?{odd}": export(f"{name}/export?{odd}", buffered=True).status_code for odd in ODD}
    assert {path: status for path, status in answers.items() if status not in (200, 422)} == {}


def test_an_argument_of_the_address_does_not_change_links(page, api):
    for _ in range(51):
        api.buy()
    shown = page("orders/?_external=1&_scheme=javascript&_anchor=x&flt_type=buy")
    assert shown.sends["Export as CSV"] == "/console/orders/export?flt_type=buy"
    assert re.fullmatch(r"/console/orders/\?flt_type=buy&before=\d+", shown.links["Older"])
    assert {each.partition("/")[0] for each in shown.addresses} == {"", "#main"}


def test_an_impossible_row_is_not_found(page):
    for path in (
        *(f"channel/{2**70}", f"operators/{2**70}/password", f"reconciliation/{2**70}", "merchant/%00", "order/%00"),
        *("statements/?month=9999-12", "statements/?month=0001-01"),
    ):
        page(path, status=404)


def test_times_are_utc_for_a_browser_of_unknown_zone(console):
    for zone in ("No/Where", "Asia", "", "../../etc/passwd", "/etc/passwd", "x" * 3_000, "é", "UTC\x01"):
        console.set_cookie("console_zone", zone, path="/console")
        assert 'data-zone="UTC"' in console.get("/console/orders/").text, zone
