"""What a list may add to its rows: selected rows with actions, tabs, and the oldest row first."""

import re

import pytest

from blueprints.console.list_page import BulkAction
from blueprints.console.pages import orders
from services.console import lists
from services.console.order_list import Orders
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
