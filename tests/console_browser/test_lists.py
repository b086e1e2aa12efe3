"""Lists in a browser: time ranges, tabs, filters, rows, callbacks to resend, and a phone."""

import json

import pytest
from selenium.webdriver.common.by import By

from tests.all_interfaces import LISTS
from tests.browser import NEEDS_CHROMIUM, PHONE
from tests.console_browser.operator import SIZES

pytestmark = NEEDS_CHROMIUM


def at(operator):
    return operator.chrome.current_url.split("/console/")[1]


@SIZES
def test_a_quick_range_and_a_tab_narrow_a_list_together(size, operator, running):
    placed = running.api.buy("31.01").data
    operator.sits_at(size, "en")
    operator.goes_to("orders/?flt_type=buy")
    operator.presses("Today")
    operator.waits_for(lambda: "flt_since" in at(operator))
    operator.find('.tabs a[href*="flt_status=pending"]').click()
    operator.waits_for(lambda: "flt_status=pending" in at(operator))
    assert {"flt_type=buy", "flt_status=pending"} < set(at(operator).partition("?")[2].split("&"))
    operator.reads(placed["order_no"])
    operator.presses("Any time")
    operator.waits_for(lambda: "flt_since" not in at(operator))
    assert "flt_status=pending" in at(operator)
    assert not operator.scrolls_sideways


@SIZES
def test_filters_are_folded_and_removed_one_by_one(size, operator, running):
    placed, other = running.api.buy("31.02").data, running.api.sell("31.03").data
    operator.sits_at(size, "en")
    operator.goes_to("orders/?flt_status=pending")
    operator.presses("Filter")
    operator.find("[name=flt_least]").send_keys("31.02")
    operator.find("[name=flt_most]").send_keys("31.02")
    operator.presses("Apply")
    operator.waits_for(lambda: other["order_no"] not in operator.text)
    assert placed["order_no"] in operator.text
    operator.presses("Remove filter: Maximum amount")
    operator.reads(other["order_no"])
    assert "flt_status=pending" in at(operator)
    assert not operator.scrolls_sideways


def test_the_current_tab_is_in_view_on_a_phone(operator):
    operator.sits_at(PHONE, "en")
    operator.goes_to("orders/?flt_status=cancelled")
    tab = operator.find(".tabs [aria-current]").rect
    assert (tab["x"] >= 0, tab["x"] + tab["width"] <= 390) == (True, True)


def test_a_click_on_a_row_opens_its_page(operator, running):
    placed = running.api.buy("31.04").data
    operator.goes_to(f"orders/?search={placed['order_no']}")
    operator.find("tbody td.col-amount").click()
    operator.waits_for(lambda: at(operator) == f"order/{placed['order_no']}")


def test_a_screen_shows_about_twenty_rows_under_a_header_that_stays(operator, running):
    running.flask("seed", "--orders", "60")
    operator.sits_at((1440, 900, False), "en")
    operator.goes_to("orders/")
    ends = "return [...document.querySelectorAll('tbody tr')].map(row => row.getBoundingClientRect().bottom)"
    assert sum(end <= 900 for end in operator.chrome.execute_script(ends)) >= 19
    assert not operator.scrolls_sideways
    operator.chrome.execute_script("scrollTo(0, 700)")
    assert operator.find("thead th").rect["y"] - 700 < 80
    assert operator.find("thead th").is_displayed()


def test_on_a_phone_an_order_has_two_lines(operator, running):
    placed = running.api.buy("31.05").data
    operator.sits_at(PHONE, "en")
    operator.goes_to(f"orders/?search={placed['order_no']}")
    shown = [cell for cell in operator.chrome.find_elements(By.CSS_SELECTOR, "tbody td") if cell.is_displayed()]
    texts = {cell.get_attribute("data-label") for cell in shown}
    assert texts == {"Order number", "Amount (¥)", "Type", "Merchant", "Created", "Status"}
    assert operator.find("tbody tr").rect["height"] < 70
    assert not operator.scrolls_sideways


def test_failed_callbacks_are_resent_in_three_clicks(operator, running):
    running.flask("merchant", "set", "demo", "--callback-url", "")  # so that they fail
    for _ in range(40):
        running.api.play(running.api.buy().data["order_no"], "success")
    running.flask("merchant", "set", "demo", "--callback-url", f"{running.url}/sandbox/inbox")
    list_failed = ("callback", "list", "--state", "dead", "--limit", "1000", "--json")
    failed = len(json.loads(running.flask(*list_failed).stdout))
    assert failed >= 40
    operator.goes_to("")
    operator.presses("View callbacks")
    operator.presses(f"Resend all {failed}")
    operator.presses(f"Resend {failed} callbacks")
    operator.reads(f"{failed} callbacks will be resent.")
    operator.waits_for(lambda: not json.loads(running.flask(*list_failed).stdout))


def test_a_checkbox_is_large_enough_for_a_finger(operator, running):
    running.api.play(running.api.buy().data["order_no"], "success")
    running.api.sell("31.06")
    operator.sits_at(PHONE, "en")
    for path in ("callbacks/", "payouts/?flt_state=approve"):
        operator.goes_to(path)
        box, card = operator.find("tbody input[type=checkbox]"), operator.find("tbody tr:has(input)").rect
        target = operator.find("tbody td.col-select label").rect
        assert min(box.rect["width"], box.rect["height"]) >= 24, path
        assert min(target["width"], target["height"]) >= 44, path
        assert card["x"] <= target["x"] <= card["x"] + card["width"] - target["width"], path
        box.click()
        operator.reads("1 selected")
        assert not operator.scrolls_sideways, path


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_no_list_cuts_its_headings_or_scrolls_sideways_on_a_screen(language, operator, running):
    running.flask("seed", "--orders", "60")
    for number in range(6):
        placed = running.api.buy("100.00", channel=2, merchant_order_no=f"LIST-{language}-{number:06}").data
        running.api.notice(placed["order_no"], 10_100, reference=placed["order_no"])
    cut = "return [...document.querySelectorAll('main th')].filter(each => each.scrollWidth > each.clientWidth).length"
    wide = "return [...document.querySelectorAll('main .table')].some(each => each.scrollWidth > each.clientWidth)"
    every = (*LISTS, "refunds", "batches", "reconciliations", "statements", "ledger", "exceptions/?flt_channel=2&")
    for path in every:
        operator.sits_at((1440, 900, False), language)
        operator.goes_to(path if "?" in path else f"{path}/")
        for width in (1366, 1440, 1920):
            operator.sits_at((width, 900, False), language)
            seen = operator.chrome.execute_script(cut), operator.chrome.execute_script(wide), operator.scrolls_sideways
            assert seen == (0, False, False), (path, width)


def test_a_view_is_saved_opened_and_deleted_on_a_phone(operator, running):
    operator.sits_at(PHONE, "en")
    operator.goes_to("orders/?flt_since=today&flt_until=today&flt_type=sell")
    operator.presses("Save this view")
    operator.find(".views input[name=name]").send_keys("Payouts today")
    assert not operator.scrolls_sideways
    operator.presses("Save")
    operator.waits_for(lambda: operator.find('.views a[aria-current="page"]').text == "Payouts today")
    operator.goes_to("orders/")
    operator.presses("Payouts today")
    operator.waits_for(lambda: "flt_type=sell" in at(operator))
    operator.presses("Delete this view")
    operator.waits_for(lambda: "Payouts today" not in operator.text)
    assert not operator.scrolls_sideways
